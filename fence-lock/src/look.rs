//! Who holds and who waits, for people.

use std::time::SystemTime;

use fence_core::{ClassName, GrantId, Key, Token};

use crate::store::SessionId;

/// One lock that is held or waited for, as its store sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockState {
    /// The class of the lock.
    pub class: ClassName,
    /// The key of the lock.
    pub key: Key,
    /// Who holds it, if anybody does.
    pub held: Option<HeldBy>,
    /// Who waits for it, the first in line first.
    pub waiting: Vec<Waiting>,
}

/// A grant that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBy {
    /// Its token.
    pub token: Token,
    /// Its id.
    pub grant_id: GrantId,
    /// The session that it is attached to.
    pub session: SessionId,
    /// Since when, where that is known: by the holder's clock on etcd, by the server's on PostgreSQL.
    pub since: Option<SystemTime>,
}

/// An attempt that waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The id of the grant that it becomes.
    pub grant_id: GrantId,
    /// Its session.
    pub session: SessionId,
    /// Since when, where that is known.
    pub since: Option<SystemTime>,
}
