//! One request to etcd: bounded, its answer checked, its error sorted.

use std::io;
use std::sync::atomic::Ordering;

use etcd_client::{Error, GetOptions, GetResponse, ResponseHeader, Txn, TxnResponse};

use super::EtcdStore;
use crate::error::StoreError;

impl EtcdStore {
    /// A transaction whose answer is not older than anything this process has seen.
    pub(super) async fn txn(&self, txn: Txn) -> Result<TxnResponse, StoreError> {
        let seen = self.inner.seen.load(Ordering::SeqCst);
        let answer = self.txn_unchecked(txn).await?;
        self.check_revision(seen, answer.header())?;
        Ok(answer)
    }

    /// A transaction whose answer's age does not matter, or is looked at by the caller.
    pub(super) async fn txn_unchecked(&self, txn: Txn) -> Result<TxnResponse, StoreError> {
        for _ in 1..self.inner.members.count() {
            let mut client = self.keys_in_turn().await?;
            match self.bounded(client.txn(txn.clone())).await {
                // Nothing was sent, and the next member may be there.
                Err(error) if never_sent(&error) => {}
                answer => return answer,
            }
        }
        let mut client = self.keys_in_turn().await?;
        self.bounded(client.txn(txn)).await
    }

    /// A linearizable read, under the same check.
    pub(super) async fn get(
        &self,
        key: String,
        options: Option<GetOptions>,
    ) -> Result<GetResponse, StoreError> {
        let seen = self.inner.seen.load(Ordering::SeqCst);
        let answer = self.get_unchecked(key, options).await?;
        self.check_revision(seen, answer.header())?;
        Ok(answer)
    }

    pub(super) async fn get_unchecked(
        &self,
        key: String,
        options: Option<GetOptions>,
    ) -> Result<GetResponse, StoreError> {
        for _ in 1..self.inner.members.count() {
            let mut client = self.keys_in_turn().await?;
            match self.bounded(client.get(key.clone(), options.clone())).await {
                // A read may be asked again, of the next member.
                Err(StoreError::Unreachable { .. }) => {}
                answer => return answer,
            }
        }
        let mut client = self.keys_in_turn().await?;
        self.bounded(client.get(key, options)).await
    }

    pub(super) fn check_revision(
        &self,
        seen: u64,
        header: Option<&ResponseHeader>,
    ) -> Result<(), StoreError> {
        // An answer of another cluster, to which an address led meanwhile, says nothing about this one's revisions.
        if self.is_of_another_cluster(header) {
            self.inner.doubt.raise();
            return Ok(());
        }
        self.not_below(seen, revision(header))
    }

    pub(super) fn not_below(&self, seen: u64, answered: u64) -> Result<(), StoreError> {
        if answered < seen {
            self.inner.doubt.raise();
            return Err(StoreError::Regressed { seen, answered });
        }
        self.inner.seen.fetch_max(answered, Ordering::SeqCst);
        Ok(())
    }

    /// Waits for an answer, for so long. After none, or a connection that went, the next request is sent to the next
    /// member, or over a new connection: the old one may be dead without saying so.
    pub(super) async fn bounded<T>(
        &self,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, StoreError> {
        let turn = self.inner.members.turn();
        let outcome = match tokio::time::timeout(self.inner.timeout, request).await {
            Ok(answer) => answer.map_err(|error| self.sort(error)),
            Err(_) => Err(StoreError::TimedOut {
                endpoints: self.endpoints(),
                after: self.inner.timeout,
            }),
        };
        if let Err(StoreError::Unreachable { .. } | StoreError::TimedOut { .. }) = &outcome {
            self.inner.doubt.raise();
            self.inner.members.suspect(turn);
        }
        outcome
    }

    /// Sorts an error. After one of the connection, the store that is reached next may not be the same.
    pub(super) fn sort(&self, error: Error) -> StoreError {
        let error = self.sorted(error);
        if matches!(error, StoreError::Unreachable { .. }) {
            self.inner.doubt.raise();
        }
        error
    }

    fn sorted(&self, error: Error) -> StoreError {
        match error {
            Error::GRpcStatus(status) if status.message().contains("requested lease not found") => {
                StoreError::LeaseGone
            }
            // UNAVAILABLE, CANCELLED, DEADLINE_EXCEEDED and UNKNOWN come from the connection as well as from etcd while it
            // has no leader; what was sent may have landed.
            Error::GRpcStatus(status) if matches!(i32::from(status.code()), 1 | 2 | 4 | 14) => {
                let source = std::error::Error::source(&status);
                StoreError::Unreachable {
                    endpoints: self.endpoints(),
                    source: match refused(source) {
                        Some(refused) => refused.into(),
                        None => reason(status.message(), source).into(),
                    },
                }
            }
            Error::GRpcStatus(status) => StoreError::Refused {
                source: Box::new(status),
            },
            error => StoreError::Unreachable {
                endpoints: self.endpoints(),
                source: Box::new(error),
            },
        }
    }

    pub(super) fn endpoints(&self) -> String {
        self.inner.members.names()
    }
}

/// The revision of an answer, 0 for none.
pub(super) fn revision(header: Option<&ResponseHeader>) -> u64 {
    header
        .and_then(|header| u64::try_from(header.revision()).ok())
        .unwrap_or(0)
}

/// What lies at the bottom of a failed call, in words; the status's own message where nothing does. Shown whole, a status is
/// a dump of everything above that.
fn reason(message: &str, mut source: Option<&(dyn std::error::Error + 'static)>) -> String {
    let mut reason = message.to_owned();
    while let Some(error) = source {
        reason = error.to_string();
        source = error.source();
    }
    reason
}

/// A connection that was refused, at the bottom of a failed call: nothing was sent over it.
fn refused(mut source: Option<&(dyn std::error::Error + 'static)>) -> Option<io::Error> {
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>()
            && REFUSED.contains(&error.kind())
        {
            return Some(io::Error::new(error.kind(), error.to_string()));
        }
        source = error.source();
    }
    None
}

/// Whether a request failed before any of it was sent.
fn never_sent(error: &StoreError) -> bool {
    let StoreError::Unreachable { source, .. } = error else {
        return false;
    };
    source
        .downcast_ref::<io::Error>()
        .is_some_and(|error| REFUSED.contains(&error.kind()))
}

/// What only the opening of a connection can end in.
const REFUSED: [io::ErrorKind; 3] = [
    io::ErrorKind::ConnectionRefused,
    io::ErrorKind::HostUnreachable,
    io::ErrorKind::NetworkUnreachable,
];
