//! Leases and their keepalives.

use std::time::Duration;

use etcd_client::{Client, LeaseKeepAliveStream, LeaseKeeper};
use fence_core::Ttl;
use futures_util::future::BoxFuture;

use super::EtcdStore;
use crate::error::{OpenError, RenewError, StoreError};
use crate::store::{Lease, Renewals, SessionId, SessionRegistry};

impl SessionRegistry for EtcdStore {
    fn open(&self, ttl: Ttl) -> BoxFuture<'_, Result<Lease, OpenError>> {
        Box::pin(async move {
            let seconds = i64::try_from(ttl.as_duration().as_millis().div_ceil(1000)).unwrap_or(i64::MAX);
            let mut asked = 0;
            let (mut client, granted) = loop {
                let mut client = self.client_in_turn().await.map_err(OpenError::Store)?;
                asked += 1;
                match self.bounded(client.lease_grant(seconds, None)).await {
                    Ok(granted) => break (client, granted),
                    // Of a lease that was granted all the same nobody hears, and it lapses.
                    Err(StoreError::Unreachable { .. }) if asked < self.inner.members.count() => {}
                    Err(error) => return Err(OpenError::Store(error)),
                }
            };
            match ttl_of(granted.ttl()) {
                Ok(ttl) => Ok(Lease {
                    session: session_id(granted.id()),
                    ttl,
                }),
                Err(error) => {
                    let _ = self.bounded(client.lease_revoke(granted.id())).await;
                    Err(OpenError::UnusableTtl(error))
                }
            }
        })
    }

    fn renewals(&self, session: &SessionId) -> Box<dyn Renewals> {
        Box::new(EtcdRenewals {
            store: self.clone(),
            lease: lease_id(session),
            turn: self.inner.members.turn(),
            waiting: false,
            stream: None,
        })
    }

    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.revoke_lease(lease_id(session)).await.map(|_| ()) })
    }
}

impl EtcdStore {
    /// Revokes a lease. `false` when it was gone already.
    pub(super) async fn revoke_lease(&self, lease: i64) -> Result<bool, StoreError> {
        let mut client = self.client_in_turn().await?;
        match self.bounded(client.lease_revoke(lease)).await {
            Ok(_) => Ok(true),
            Err(StoreError::LeaseGone) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The whole seconds that a lease has left and those it was granted; none when it is gone.
    pub(super) async fn lease_left(&self, lease: i64) -> Result<Option<Duration>, StoreError> {
        let mut client = self.client_in_turn().await?;
        let answer = self.bounded(client.lease_time_to_live(lease, None)).await?;
        // A lease with less than a second left answers 0; one that is gone, -1.
        Ok(u64::try_from(answer.ttl()).ok().map(Duration::from_secs))
    }
}

/// One keepalive stream, over a connection of its own, opened by the first renewal.
struct EtcdRenewals {
    store: EtcdStore,
    lease: i64,
    /// The member's turn, and whether it owes an answer.
    turn: usize,
    waiting: bool,
    stream: Option<Stream>,
}

struct Stream {
    keeper: LeaseKeeper,
    answers: LeaseKeepAliveStream,
    /// The stream lives on its connection.
    _client: Client,
}

impl Renewals for EtcdRenewals {
    fn renew(&mut self) -> BoxFuture<'_, Result<Ttl, RenewError>> {
        Box::pin(async move {
            self.waiting = true;
            let renewed = self.renew_on_stream().await;
            // With an error this stream is done with, and its member under suspicion.
            self.waiting = matches!(renewed, Err(RenewError::Failed(_)));
            if renewed.is_ok() {
                self.store.tend();
            }
            renewed
        })
    }

    fn ended(&mut self) -> BoxFuture<'_, RenewError> {
        Box::pin(async move {
            let Some(Stream { answers, .. }) = &mut self.stream else {
                return std::future::pending().await;
            };
            let error = match answers.message().await {
                Ok(Some(answer)) if answer.ttl() <= 0 => RenewError::Gone,
                // An answer that nobody waits for: the stream is out of step.
                Ok(_) => ended(&self.store),
                Err(error) => failed(&self.store, error),
            };
            self.waiting = matches!(error, RenewError::Failed(_));
            error
        })
    }
}

impl Drop for EtcdRenewals {
    fn drop(&mut self) {
        if self.waiting {
            self.store.inner.members.suspect(self.turn);
        }
    }
}

impl EtcdRenewals {
    async fn renew_on_stream(&mut self) -> Result<Ttl, RenewError> {
        let Some(Stream { keeper, answers, .. }) = &mut self.stream else {
            return self.start().await;
        };
        keeper
            .keep_alive()
            .await
            .map_err(|error| failed(&self.store, error))?;
        match answers.message().await {
            Ok(Some(answer)) if answer.ttl() <= 0 => Err(RenewError::Gone),
            Ok(Some(answer)) => usable(answer.ttl()),
            Ok(None) => Err(ended(&self.store)),
            Err(error) => Err(failed(&self.store, error)),
        }
    }

    /// Opens the stream. The client sends the first keepalive with it and waits for its answer.
    async fn start(&mut self) -> Result<Ttl, RenewError> {
        let mut client = self.store.new_client().await.map_err(RenewError::Failed)?;
        self.turn = self.store.inner.members.turn();
        match client.lease_keep_alive(self.lease).await {
            Ok((keeper, answers)) => {
                self.stream = Some(Stream {
                    keeper,
                    answers,
                    _client: client.clone(),
                });
            }
            Err(error) => return Err(self.why_not(error).await),
        }
        // The client keeps the first answer to itself, and etcd always answers with the granted TTL.
        let answer = client
            .lease_time_to_live(self.lease, None)
            .await
            .map_err(|error| failed(&self.store, error))?;
        match answer.ttl() {
            -1 => Err(RenewError::Gone),
            _ => usable(answer.granted_ttl()),
        }
    }

    /// A stream that could not be started: because the lease is gone, or for another reason.
    async fn why_not(&self, error: etcd_client::Error) -> RenewError {
        match (&error, self.store.lease_left(self.lease).await) {
            (etcd_client::Error::LeaseKeepAliveError(_), Ok(None)) => RenewError::Gone,
            _ => failed(&self.store, error),
        }
    }
}

fn usable(seconds: i64) -> Result<Ttl, RenewError> {
    ttl_of(seconds).map_err(|error| {
        RenewError::Failed(StoreError::Refused {
            source: Box::new(error),
        })
    })
}

fn ttl_of(seconds: i64) -> Result<Ttl, fence_core::TtlError> {
    Ttl::from_secs(u64::try_from(seconds).unwrap_or(0))
}

fn failed(store: &EtcdStore, error: etcd_client::Error) -> RenewError {
    match store.sort(error) {
        StoreError::LeaseGone => RenewError::Gone,
        error => RenewError::Failed(error),
    }
}

fn ended(store: &EtcdStore) -> RenewError {
    store.inner.doubt.raise();
    RenewError::Failed(StoreError::Unreachable {
        endpoints: store.endpoints(),
        source: "the keepalive stream ended".into(),
    })
}

/// etcd's lease ids are positive 63-bit numbers.
pub(super) fn session_id(lease: i64) -> SessionId {
    SessionId::new(format!("{lease:016x}")).expect("hexadecimal digits name a session")
}

/// 0, which no lease has, for a name that etcd did not give.
pub(super) fn lease_id(session: &SessionId) -> i64 {
    i64::from_str_radix(session.as_str(), 16).unwrap_or(0)
}
