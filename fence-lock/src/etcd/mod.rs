//! The lock store on etcd.

mod admin;
mod advance;
mod attend;
mod audit;
mod call;
mod check;
mod connect;
mod epoch;
mod grant;
mod layout;
mod lease;
mod lines;
mod look;
mod present;
mod queue;
mod release;
mod seal;
mod status;
mod version;
mod watch;

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fence_core::TierName;
use futures_util::future::BoxFuture;

use crate::error::{AcquireError, StoreError};
use crate::memory::StoreMemory;
use crate::store::{Attempt, LockStore, Minted, Release};

pub use admin::{Holder, Revoked};
pub use advance::{Advance, AdvanceError, Advanced};
pub use attend::{AttendError, Attended};
pub use audit::AuditEvent;
pub use connect::EtcdOptions;
pub use epoch::InitError;
pub use layout::EpochRecord;
pub use status::EpochStatus;
pub use version::{MemberVersion, VersionWarning};
pub use watch::{GrantEvent, GrantWatch, WatchError};

pub(crate) use layout::epoch_number;

use connect::Members;
use epoch::InForce;
use layout::Layout;

/// The lock store on etcd, 3.4 or newer: one tier, under one prefix of its own. Clones share connections.
///
/// etcd below 3.4.38, 3.5.23 and 3.6.5 can confirm a renewal falsely when its leader changes, and below 3.4.42, 3.5.28 and
/// 3.6.9 can serve stale reads around a pause. Then a hold may be live after its lease was given away; the resource's
/// refusal covers that, as it covers a revoke.
///
/// # Key layout
///
/// Under the prefix `P`, for a class `C` and a key `K` in which every byte but `A-Z a-z 0-9 - _ . : ~` is written `%XX`
/// (so that no lock's keys are a prefix of another's), with JSON values:
///
/// | key | value | lease | there |
/// |---|---|---|---|
/// | `P/epoch` | `{"epoch", "cluster_id", "tier", "reason"}`, and `"classes_placed": true` where they are | none | once initialised, unless sealed |
/// | `P/sealed` | `{"record", "why"}`: the epoch record, taken out of force | none | while the store is sealed |
/// | `P/intent` | `{"epoch", "reason"}` | none | while an advance is under way, or after one that was interrupted |
/// | `P/lineage` | `{"epoch", "generation", "random", "slack", "before"}` | none | once initialised |
/// | `P/class/C` | the tier's name, bare | none | while class `C` is placed here |
/// | `P/lock/C/K/held` | `{"class", "key", "grant_id", "session"}`, and `"at_ms"` for people | the session's | while a grant holds |
/// | `P/lock/C/K/queue/G` | the same | the session's | while attempt `G` waits |
/// | `P/lock/C/K/cancel/G` | the same | the session's | once attempt `G` was given up with a request on its way |
/// | `P/lock/C/K/released` | `{"grant_id", "session", "token"}` | the session's | after a release |
///
/// `session` is the lease id in 16 hexadecimal digits, `cluster_id` etcd's, likewise; `grant_id` (`G`) is fresh for each
/// attempt.
///
/// # Minting a token
///
/// Read `P/epoch` and remember its mod revision `M`; refuse to go on when it is absent, names another cluster than the
/// answer's header, or another tier. Then one transaction:
///
/// ```text
/// if   create_revision(held) = 0
///  and mod_revision(P/epoch) = M
///  and create_revision(cancel/G) = 0
///  and value(P/class/C) = the tier's name                (where the epoch record says that classes are placed)
///  and create_revision(every key under queue/) = 0
/// then put held with the session's lease
/// ```
///
/// When it succeeded, and only then, the token is `epoch * 2^48 + revision` with the transaction's revision, which is the
/// create revision of `held`. The grant counts if the answer came within 100 ms, or else if `held`, read again, is there with that
/// create revision and the session's lease. When it did not succeed, take a place, in a transaction of its own or as the `else` of
/// this one:
///
/// ```text
/// if   mod_revision(P/epoch) = M and create_revision(cancel/G) = 0 (and the class is placed)
/// then put queue/G with the session's lease
/// ```
///
/// With the place since revision `Q`, look for the last key under `queue/` that is older than it, and when there is none, for
/// `held`; wait for that key's deletion, and look again. When there is none of either, or `held` that was waited for is gone, try
/// again, with `create_revision(queue/G) = Q` in the place of the comparison of the whole queue, and delete `queue/G` as well:
/// whoever came since is behind.
///
/// To give up: put `cancel/G` unless everything sent was answered; then delete `queue/G`, and `held` if its value is this
/// attempt's. To release: one transaction that, if `held` has the token's create revision and this attempt's value, puts
/// `released` and deletes `held`. Several keys of a class are granted by one such transaction, with the comparisons and puts of
/// each: they share token and grant id, `held` and `queue/G` stand under every key and `cancel/G` under the first, and one
/// revision is the place in every queue, so that no two attempts wait for each other. Seen from a watch, a deletion of `held` without a `released` of the same revision is a
/// lease that expired or was revoked; those two cannot be told apart.
///
/// # Lost history
///
/// A store that came back from an earlier state issues its tokens again. It is looked at, at the start, before the next grant
/// after a request failed or an answer's revision was below one already seen, and every 10 s while a session renews:
///
/// - the cluster id is compared with that of the epoch record, and with the one seen before;
/// - how far the raft index of a member is ahead of its revision, which no unbroken history lowers, is compared with the
///   bound in `P/lineage` and with the one that this process saw: restored snapshots fall below it. A member that denies its
///   status, is a learner or has no leader is not judged, and one that may lag is asked again after a write through it;
/// - `P/lineage`, a chain of random links of which one is written every 10 s, is compared with the one that this process, or
///   a [`Witness`](crate::Witness), saw before. Only this sees a data directory that was put back, or a lagging member that was made a
///   cluster of its own; without anybody who saw more than the store remembers, nothing does.
///
/// Whoever sees a loss *seals* the store: one transaction deletes `P/epoch`, so that clients in every language stop, and keeps
/// it in `P/sealed`. It goes through the store's log and compares what was judged, so that no stale answer seals a healthy
/// store. [`EtcdStore::advance`] opens it again. Detection is best effort: advance the epoch after any restore.
#[derive(Clone)]
pub struct EtcdStore {
    inner: Arc<Shared>,
}

struct Shared {
    members: Members,
    layout: Layout,
    tier: TierName,
    timeout: Duration,
    in_force: Mutex<Option<InForce>>,
    /// The highest revision seen in the epoch in force.
    seen: AtomicU64,
    /// What this process remembers of the store.
    memory: Mutex<Option<StoreMemory>>,
    doubt: check::Doubt,
    /// What this process waits for.
    lines: lines::Lines,
}

/// The store was not opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No endpoint was named. Name the cluster's client URLs.
    #[error("a lock store needs at least one endpoint")]
    NoEndpoint,
    /// The prefix has another form. Choose one that no other system writes under.
    #[error("a prefix is 1 to 128 of [A-Za-z0-9._/-], without / at either end, got {prefix:?}")]
    Prefix {
        /// The prefix, cut at 140 characters.
        prefix: String,
    },
    /// Some endpoints are `https://` and others are not, or TLS was asked for and an endpoint is `http://`. Make all of them
    /// `https://`.
    #[error("the endpoints {endpoints} are not all for TLS")]
    NotAllTls {
        /// The endpoints.
        endpoints: String,
    },
    /// The store did not answer.
    #[error("the lock store was not opened")]
    Store(#[from] StoreError),
}

impl EtcdStore {
    /// The most keys that one attempt may ask for. A grant of n keys compares 2 n + 3 things in one transaction, and etcd
    /// allows 128 operations there (`--max-txn-ops`). A cluster that is set to fewer refuses larger grants whole.
    pub const MOST_KEYS: usize = 60;

    /// How long one request may take.
    const TIMEOUT: Duration = Duration::from_secs(5);

    /// Connects to the etcd cluster of `tier`, such as `&["http://127.0.0.1:2379"]`, and reads the epoch record under
    /// `prefix`: 1 to 128 of `[A-Za-z0-9._/-]`, without `/` at either end. A store that was not initialised opens, so that
    /// it can be; it grants nothing.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] for a wrong endpoint or prefix, and when the cluster does not answer within 5 s.
    pub async fn connect<E: AsRef<str>>(
        endpoints: &[E],
        prefix: &str,
        tier: TierName,
    ) -> Result<EtcdStore, ConnectError> {
        EtcdStore::connect_with(EtcdOptions::new(endpoints, prefix, tier)).await
    }

    /// [`EtcdStore::connect`] with a user, with TLS, or both.
    ///
    /// # Errors
    ///
    /// As [`EtcdStore::connect`]; also when the server cannot be verified or does not know the user.
    pub async fn connect_with(options: EtcdOptions) -> Result<EtcdStore, ConnectError> {
        if options.endpoints.is_empty() {
            return Err(ConnectError::NoEndpoint);
        }
        if !is_prefix(&options.prefix) {
            return Err(ConnectError::Prefix {
                prefix: options.prefix.chars().take(140).collect(),
            });
        }
        let endpoints = options.endpoints.join(", ");
        if !options.fits() {
            return Err(ConnectError::NotAllTls { endpoints });
        }
        let members = Members::connect(&options, EtcdStore::TIMEOUT)
            .await
            .map_err(|source| StoreError::Unreachable {
                endpoints,
                source: Box::new(source),
            })?;
        let store = EtcdStore {
            inner: Arc::new(Shared {
                members,
                layout: Layout::new(&options.prefix),
                tier: options.tier,
                timeout: EtcdStore::TIMEOUT,
                in_force: Mutex::new(None),
                seen: AtomicU64::new(0),
                memory: Mutex::new(None),
                doubt: check::Doubt::new(),
                lines: lines::Lines::default(),
            }),
        };
        match store.look_again().await {
            // It opens, so that an operator can mend it; it grants nothing.
            Ok(()) | Err(AcquireError::NotInitialised { .. } | AcquireError::Sealed(_)) => Ok(store),
            Err(AcquireError::Store(error)) => Err(ConnectError::Store(error)),
            Err(error) => unreachable!("looking at a store acquires nothing: {error}"),
        }
    }

    /// The tier that this store serves.
    pub fn tier(&self) -> &TierName {
        &self.inner.tier
    }
}

impl LockStore for EtcdStore {
    fn most_keys(&self) -> usize {
        EtcdStore::MOST_KEYS
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

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore")
            .field("endpoints", &self.inner.members.names())
            .field("layout", &self.inner.layout)
            .field("tier", &self.inner.tier)
            .finish_non_exhaustive()
    }
}

fn is_prefix(prefix: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._/-".contains(&b);
    (1..=128).contains(&prefix.len())
        && prefix.bytes().all(allowed)
        && !prefix.starts_with('/')
        && !prefix.ends_with('/')
}
