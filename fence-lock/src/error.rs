//! What can go wrong, and what the caller must do about it.

use std::time::Duration;

use fence_core::{ClassName, Epoch, RevisionRangeError, TierName, Ttl, TtlError};

use crate::loss::Loss;

/// A request to the store that brought no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store could not be reached, or the connection went. What was sent may have landed.
    #[error("the lock store at {endpoints} cannot be reached")]
    Unreachable {
        /// The endpoints that were tried.
        endpoints: String,
        /// What the client said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No answer came in time. What was sent may have landed.
    #[error("the lock store at {endpoints} did not answer within {after:?}")]
    TimedOut {
        /// The endpoints that were tried.
        endpoints: String,
        /// How long the answer was waited for.
        after: Duration,
    },
    /// The store answered with an error. Read it; nothing was changed unless it says so.
    #[error("the lock store refused the request")]
    Refused {
        /// The store's answer.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another transaction of the store was in the way for too long. Try again; nothing was changed.
    #[error("the lock store was busy with another request")]
    Busy {
        /// The store's answer.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database does not hold the lock store. Install it, or correct the address; nothing was changed.
    #[error(
        "the lock store is not installed in this database: run its files, fence-lock/sql/*.sql, there in order"
    )]
    NotInstalled {
        /// The database's answer.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The session's lease is gone. Open a new session; nothing was changed.
    #[error("the session's lease does not exist any more")]
    LeaseGone,
    /// The store answered from an older history than it showed before: it was restored, or a member lags. Nothing is
    /// minted from such an answer. After a restore, raise the epoch.
    #[error("the lock store went back from revision {seen} to {answered}")]
    Regressed {
        /// The highest revision that this process had seen when it asked.
        seen: u64,
        /// The revision of the answer.
        answered: u64,
    },
    /// The store holds something under this prefix that this crate did not write. Use a prefix of its own.
    #[error("the lock store holds an unreadable record at {key:?}")]
    Foreign {
        /// The key of the record.
        key: String,
        /// Why it cannot be read.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Why a store grants nothing until an operator has looked at it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealReason {
    /// The cluster is not the one that the epoch record was written in: it was restored or replaced, or for PostgreSQL, it
    /// failed over. Raise the epoch.
    #[error("its epoch record names cluster {recorded}, but it is cluster {found}")]
    OtherCluster {
        /// The cluster id in the record: etcd's in hexadecimal, or `fence_lock.identity()` of PostgreSQL.
        recorded: String,
        /// The cluster id of the answers, likewise.
        found: String,
    },
    /// The record belongs to another tier: two tiers share a prefix, or an endpoint is wrong. Correct the configuration.
    #[error("its epoch record is of tier {recorded}, not {asked}")]
    OtherTier {
        /// The tier in the record.
        recorded: TierName,
        /// The tier that this store was opened for.
        asked: TierName,
    },
    /// Another cluster, in an epoch that was seen in the one before: the address leads elsewhere, or the store was made anew
    /// without a higher epoch. Correct the address, or raise the epoch. The store itself was left as it is.
    #[error("epoch {epoch} was in force in cluster {seen}, and this is cluster {found}")]
    Stranger {
        /// The epoch that was seen.
        epoch: Epoch,
        /// The cluster that it was seen in.
        seen: String,
        /// The cluster in the record now.
        found: String,
    },
    /// The store lost history: whoever compared it with what they remember saw that. Raise the epoch.
    #[error("it lost history: {loss}")]
    Lost {
        /// What shows it.
        loss: Loss,
    },
    /// The store was sealed before, by whoever saw that it had lost history. Raise the epoch.
    #[error("it was sealed in epoch {epoch}: {reason}")]
    Sealed {
        /// The epoch that was in force.
        epoch: Epoch,
        /// What showed the loss.
        reason: String,
    },
}

/// No lock was granted.
#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// The store has no epoch record. A new store is initialised once, by an operator; a store that had one has lost its
    /// history, and then the epoch must be a higher one.
    #[error(
        "the lock store has no epoch record: run `fence epoch init` for tier {tier} if it is new, \
         `fence epoch advance` if it ever had one (in PostgreSQL: SELECT fence_lock.init('{tier}', EPOCH, 'REASON'))"
    )]
    NotInitialised {
        /// The tier of the store.
        tier: TierName,
    },
    /// The store is sealed. An operator must look at it; retrying does not help.
    #[error(
        "the lock store is sealed and grants nothing: see `fence epoch show`, then `fence epoch advance`"
    )]
    Sealed(#[source] SealReason),
    /// The store grants placed classes only, and this one is not placed in its tier. A class is placed, and moved, by an
    /// advance of the epoch that names it; or the configuration names the wrong tier.
    #[error(
        "class {class} is not placed in tier {tier}: `fence epoch advance --tier {tier} --class {class}` places or moves it"
    )]
    Unplaced {
        /// The class that was asked for.
        class: ClassName,
        /// The tier of the store.
        tier: TierName,
    },
    /// The session is over: its lease lapsed or was revoked, or the session was closed. Open a new one.
    #[error("the session is over")]
    SessionOver,
    /// The lock was granted, and lost again before it could be handed out. Acquire again.
    #[error("the grant was lost before it could be confirmed")]
    NotConfirmed,
    /// The lock was not free in time. The attempt was given up, and never lands later.
    #[error("the lock was not granted within {after:?}")]
    TimedOut {
        /// How long was waited.
        after: Duration,
    },
    /// The attempt was given up by another task. Acquire again.
    #[error("the attempt was given up")]
    GivenUp,
    /// The store cannot grant so many keys in one step. Ask for fewer; nothing was sent.
    #[error("the lock store grants at most {most} keys at once, {asked} were asked for")]
    TooManyKeys {
        /// How many were asked for.
        asked: usize,
        /// How many it grants at once.
        most: usize,
    },
    /// The store's revision does not fit a token. The store needs a new epoch.
    #[error("the store's revision fits no token")]
    Revision(#[source] RevisionRangeError),
    /// The store did not answer. The attempt is given up in the background; acquire again when the store is back.
    #[error("the lock store did not grant")]
    Store(#[source] StoreError),
}

impl From<StoreError> for AcquireError {
    fn from(error: StoreError) -> AcquireError {
        match error {
            StoreError::LeaseGone => AcquireError::SessionOver,
            error => AcquireError::Store(error),
        }
    }
}

/// No session was opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// With this interval an unanswered keepalive would be noticed only after the deadline, or not at all. Renew more
    /// often, or choose a longer TTL.
    #[error(
        "keepalives every {every:?} leave no room before the deadline: with a TTL of {ttl} they must be at most {most:?} \
         apart and at least 50 ms"
    )]
    KeepaliveInterval {
        /// The interval that was asked for.
        every: Duration,
        /// The TTL.
        ttl: Ttl,
        /// The longest interval for this TTL: TTL - TTL/3 - margin, exclusive.
        most: Duration,
    },
    /// The store granted a shorter life than was asked for, so that no deadline holds. The lease was given back.
    #[error("the lock store granted a TTL of {granted:?}, not {asked}")]
    ShortTtl {
        /// What was asked for.
        asked: Ttl,
        /// What was granted.
        granted: Duration,
    },
    /// The store granted a TTL that no session can use. The lease was given back.
    #[error("the lock store granted an unusable TTL")]
    UnusableTtl(#[source] TtlError),
    /// The lease was so slow to come that its deadline had passed. Look at the store's load, or choose a longer TTL.
    #[error("the lease arrived after its own deadline")]
    TooLate,
    /// The store did not answer.
    #[error("the lock store opened no session")]
    Store(#[source] StoreError),
}

/// A keepalive that failed.
#[derive(Debug, thiserror::Error)]
pub enum RenewError {
    /// The store says that the lease is gone. The session is over.
    #[error("the lease does not exist any more")]
    Gone,
    /// No answer came in time. The session drains and tries again, on a new stream, until its deadline.
    #[error("the keepalive was not answered within {after:?}")]
    Unanswered {
        /// How long the answer was waited for.
        after: Duration,
    },
    /// The stream could not be started, ended, or answered with an error. The session drains and tries again until its
    /// deadline.
    #[error("the keepalive failed")]
    Failed(#[source] StoreError),
}
