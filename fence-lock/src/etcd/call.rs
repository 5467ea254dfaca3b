//! One request to etcd: bounded, its answer checked, its error sorted.

use std::sync::atomic::Ordering;

use etcd_client::{Client, ConnectOptions, Error, GetOptions, GetResponse, ResponseHeader, Txn, TxnResponse};

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
        let mut client = self.client();
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
        let mut client = self.client();
        self.bounded(client.get(key, options)).await
    }

    pub(super) fn check_revision(
        &self,
        seen: u64,
        header: Option<&ResponseHeader>,
    ) -> Result<(), StoreError> {
        let answered = revision(header);
        if answered < seen {
            return Err(StoreError::Regressed { seen, answered });
        }
        self.inner.seen.fetch_max(answered, Ordering::SeqCst);
        Ok(())
    }

    /// Waits for an answer, for so long. After a silence the next request gets a new connection: the old one may be dead
    /// without saying so.
    pub(super) async fn bounded<T>(
        &self,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(self.inner.timeout, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.sort(error)),
            Err(_) => {
                self.reconnect().await;
                Err(StoreError::TimedOut {
                    endpoints: self.endpoints(),
                    after: self.inner.timeout,
                })
            }
        }
    }

    pub(super) fn sort(&self, error: Error) -> StoreError {
        match error {
            Error::GRpcStatus(status) if status.message().contains("requested lease not found") => {
                StoreError::LeaseGone
            }
            // UNAVAILABLE, CANCELLED, DEADLINE_EXCEEDED and UNKNOWN come from the connection as well as from etcd while it
            // has no leader; what was sent may have landed.
            Error::GRpcStatus(status) if matches!(i32::from(status.code()), 1 | 2 | 4 | 14) => {
                StoreError::Unreachable {
                    endpoints: self.endpoints(),
                    source: reason(status.message(), std::error::Error::source(&status)).into(),
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

    pub(super) fn client(&self) -> Client {
        self.inner
            .client
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// A client with connections of its own. It connects at its first request.
    pub(super) async fn new_client(&self) -> Result<Client, StoreError> {
        connect(&self.inner.endpoints, self.inner.timeout)
            .await
            .map_err(|error| self.sort(error))
    }

    pub(super) fn endpoints(&self) -> String {
        self.inner.endpoints.join(", ")
    }

    async fn reconnect(&self) {
        // It fails for malformed endpoints alone, and those connected before.
        if let Ok(client) = connect(&self.inner.endpoints, self.inner.timeout).await {
            *self
                .inner
                .client
                .write()
                .unwrap_or_else(std::sync::PoisonError::into_inner) = client;
        }
    }
}

/// Makes a client; nothing is sent yet.
pub(super) async fn connect(endpoints: &[String], timeout: std::time::Duration) -> Result<Client, Error> {
    // A member without a leader answers with an error instead of silence.
    let options = ConnectOptions::new()
        .with_connect_timeout(timeout)
        .with_require_leader(true);
    Client::connect(endpoints, Some(options)).await
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
