//! The lock store on PostgreSQL.

mod acquire;
mod admin;
mod call;
mod lease;
mod listen;
mod pool;
mod sql;
mod tls;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fence_core::TierName;
use futures_util::future::BoxFuture;
use tokio_postgres::config::TargetSessionAttrs;

use crate::error::{AcquireError, StoreError};
use crate::store::{Attempt, LockStore, Minted, Release};
use crate::tls::Tls;
use listen::Listener;
use pool::Pool;
use tls::MakeTls;

pub use admin::{INSTALL, SqlFile};

/// The lock store on PostgreSQL, 14 or newer: one tier in each database, in its schema `fence_lock`. Clones share connections.
///
/// Its tables, views and functions stand in `fence-lock/sql/`, are installed by [`PostgresStore::install`] or `psql -f`, and
/// are written for people too: `SELECT * FROM fence_lock.held` shows who holds what. Every request is one message of
/// the simple protocol, which the server has whole or not at all, and which commits without another byte from here: a
/// process that is stopped keeps no row locked. No session state is kept on a connection, apart from the LISTEN.
///
/// # The grant
///
/// `fence_lock.acquire` locks the keys' rows, in one order, and only then, in later statements, looks who holds them, who is
/// ahead in the queue and whether the attempt was given up, and draws the token: `epoch * 2^48 +` the next value of a
/// sequence without a cache, granted above the rows' last tokens or not at all. `fence_lock.confirm` must see the grant
/// before it is handed out. Expiry needs no job in the background: whoever needs a lock ends the session that has expired, in
/// its own transaction, and a renewal on its way to commit wins.
///
/// # Clocks
///
/// Leases are counted on the server's clock, `clock_timestamp()`. A step forward by less than the margin that every holder
/// keeps, max(250 ms, TTL / 10), ends no lease before its holder's deadline; a larger one may, as a revoke does, and the
/// resource's refusal covers it. A step backward makes leases last longer and nothing worse. After a failover the other
/// server's clock counts: the difference between the two is such a step.
///
/// # Waiting
///
/// A waiter is woken by NOTIFY, on one channel and one connection for each store, and asks again after 5 s, or when the
/// lease ahead expires, whatever comes first. Behind a pooler that hands connections out by transaction LISTEN is lost: open
/// the store with [`PostgresStore::poll_every`]. Waiters behind such a pooler and others queue in one line.
///
/// # Losses
///
/// The epoch names the cluster's system identifier, its timeline and the database; where one of them is another, after a dump
/// and restore, a failover or a restore to a point in time, the store is sealed until a higher epoch begins
/// (`fence_lock.advance`). A data directory put back keeps all three and goes unnoticed, unless a row shows a token above the
/// sequence: after any restore, begin a new epoch. Renewals, grants and releases wait for the local disk, whatever the
/// database's `synchronous_commit`; an asynchronous replica that takes over has lost the last of them.
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<Shared>,
}

struct Shared {
    pool: Pool,
    tier: TierName,
    /// How waiters learn that it is their turn.
    waiting: Waiting,
}

enum Waiting {
    Listen(Box<Listener>),
    Poll(Duration),
}

/// The store was not opened.
#[derive(Debug, thiserror::Error)]
pub enum PostgresConnectError {
    /// The address has not the form of a connection string or URL of PostgreSQL. Correct it.
    #[error("not the address of a database")]
    Address(#[source] tokio_postgres::Error),
    /// A certificate or its key cannot be read. Give them in PEM.
    #[error("no certificate or key")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database did not answer, or refused the connection.
    #[error("the lock store was not opened")]
    Store(#[from] StoreError),
}

impl PostgresStore {
    /// How long one request may take.
    const TIMEOUT: Duration = Duration::from_secs(5);

    /// The most keys that one attempt may ask for. PostgreSQL itself sets no limit; each key costs some statements on the
    /// server while the others' rows are locked.
    pub const MOST_KEYS: usize = 1000;

    /// Connects to the database of `tier`, such as `postgres://holder@db.example/locks`, whose waiters are woken by NOTIFY.
    /// A database without the store opens, so that it can be installed; it grants nothing. A server on another machine is
    /// reached under TLS, verified by the authorities that this machine trusts, unless the address says `sslmode=disable`. Where
    /// the address has no password, the variable `PGPASSWORD` is asked for it, as libpq does.
    ///
    /// # Errors
    ///
    /// [`PostgresConnectError`] for an address that is none, and when the server does not answer within 5 s.
    pub async fn connect(address: &str, tier: TierName) -> Result<PostgresStore, PostgresConnectError> {
        PostgresStore::open(address, tier, None, None).await
    }

    /// [`PostgresStore::connect`] for a database behind a pooler, where nothing can be listened to: waiters ask again every
    /// `interval`, 10 ms at least.
    ///
    /// # Errors
    ///
    /// As [`PostgresStore::connect`].
    pub async fn poll_every(
        address: &str,
        tier: TierName,
        interval: Duration,
    ) -> Result<PostgresStore, PostgresConnectError> {
        PostgresStore::open(address, tier, Some(interval), None).await
    }

    /// [`PostgresStore::connect`] under TLS with authorities or a certificate of one's own. A `poll` interval is what
    /// [`PostgresStore::poll_every`] takes.
    ///
    /// # Errors
    ///
    /// As [`PostgresStore::connect`]; also when the server cannot be verified.
    pub async fn connect_with(
        address: &str,
        tier: TierName,
        tls: &Tls,
        poll: Option<Duration>,
    ) -> Result<PostgresStore, PostgresConnectError> {
        PostgresStore::open(address, tier, poll, Some(tls)).await
    }

    async fn open(
        address: &str,
        tier: TierName,
        poll: Option<Duration>,
        tls: Option<&Tls>,
    ) -> Result<PostgresStore, PostgresConnectError> {
        let mut config = tls::address(address, tls).map_err(PostgresConnectError::Address)?;
        let make_tls = MakeTls::new(&tls.cloned().unwrap_or_default()).map_err(PostgresConnectError::Tls)?;
        if config.get_hosts().len() > 1 {
            // A standby grants nothing.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        if let (None, Some(password)) = (config.get_password(), std::env::var_os("PGPASSWORD")) {
            config.password(password.as_encoded_bytes());
        }
        if config.get_application_name().is_none() {
            config.application_name("fence-lock");
        }
        let pool = Pool::new(config, make_tls, PostgresStore::TIMEOUT);
        let waiting = match poll {
            Some(interval) => Waiting::Poll(interval.max(Duration::from_millis(10))),
            None => Waiting::Listen(Box::new(Listener::new(pool.connector()))),
        };
        let store = PostgresStore {
            inner: Arc::new(Shared { pool, tier, waiting }),
        };
        store.inner.pool.ask("SELECT 1").await?;
        Ok(store)
    }

    /// The tier that this store serves.
    pub fn tier(&self) -> &TierName {
        &self.inner.tier
    }
}

impl LockStore for PostgresStore {
    fn most_keys(&self) -> usize {
        PostgresStore::MOST_KEYS
    }

    fn acquire<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Result<Minted, AcquireError>> {
        Box::pin(self.acquire_in_turn(attempt))
    }

    fn give_up<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.give_up_attempt(attempt))
    }

    fn release<'a>(
        &'a self,
        attempt: &'a Attempt,
        minted: Minted,
    ) -> BoxFuture<'a, Result<Release, StoreError>> {
        Box::pin(self.release_grant(attempt, minted))
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("server", &self.inner.pool.endpoints())
            .field("tier", &self.inner.tier)
            .finish_non_exhaustive()
    }
}
