//! The seam: what a lock store does for sessions and holds.
//!
//! A store is used through `dyn LockStore`, so its futures are boxed. Every method may be called from several tasks at once,
//! and every future may be dropped at any await.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fence_core::{ClassName, GrantId, Token, Ttl};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::error::{AcquireError, OpenError, RenewError, StoreError};
use crate::keys::Keys;

/// How long ago, at most, a store may have learned that a grant was there when it hands the grant out without another look:
/// 100 ms.
///
/// A hold is looked after by its session's deadline, which comes 250 ms at least before the lease can run out. So within this
/// time only a revoke can end a lease, as it can in the moment after the hold was handed out.
pub const FRESH_FOR: Duration = Duration::from_millis(100);

/// Leases: one for each process, however many holds attach to it.
pub trait SessionRegistry: Send + Sync {
    /// Opens a lease that lives `ttl` at least without a renewal.
    fn open(&self, ttl: Ttl) -> BoxFuture<'_, Result<Lease, OpenError>>;

    /// The renewals of a lease. Nothing is sent before the first [`Renewals::renew`], and after a failure the session asks
    /// for new ones, over a new connection where there is such a thing.
    fn renewals(&self, session: &SessionId) -> Box<dyn Renewals>;

    /// Ends the lease, and with it every hold that is still attached. Ending a lease that is gone is no error.
    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// One stream of renewals of one lease.
pub trait Renewals: Send {
    /// Sends one renewal and waits for its answer: the time to live that the lease has *from when the renewal was
    /// sent*. The session bounds the wait.
    fn renew(&mut self) -> BoxFuture<'_, Result<Ttl, RenewError>>;

    /// Resolves when the stream ends between two renewals; never, for a store that cannot tell.
    fn ended(&mut self) -> BoxFuture<'_, RenewError> {
        Box::pin(std::future::pending())
    }
}

/// Grants: a token for each, strictly increasing for each key.
///
/// An outside store can be held against these promises: the suite is public, behind the feature `conformance`.
pub trait LockStore: SessionRegistry {
    /// How many keys one attempt may ask for, at least 1. An `acquire` of more is refused with
    /// [`AcquireError::TooManyKeys`], and nothing is sent.
    fn most_keys(&self) -> usize;

    /// Waits for the locks of all the attempt's keys and grants them, all in one step and with one token, or none. While
    /// it waits it holds none of them. Waiters are served in the order in which they queued, key by key. The token comes from the one step that granted. Where the
    /// answer of that step took longer than [`FRESH_FOR`], the store looks, before it hands the token out, whether the grant is
    /// still there and belongs to the session's living lease.
    fn acquire<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Result<Minted, AcquireError>>;

    /// Makes sure that an attempt, whose `acquire` failed or was dropped, holds nothing and never will while the session
    /// lives: not even by a request that is still on its way.
    fn give_up<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Frees what this grant, and no other, holds.
    fn release<'a>(
        &'a self,
        attempt: &'a Attempt,
        minted: Minted,
    ) -> BoxFuture<'a, Result<Release, StoreError>>;
}

impl<S: SessionRegistry + ?Sized> SessionRegistry for Arc<S> {
    fn open(&self, ttl: Ttl) -> BoxFuture<'_, Result<Lease, OpenError>> {
        (**self).open(ttl)
    }

    fn renewals(&self, session: &SessionId) -> Box<dyn Renewals> {
        (**self).renewals(session)
    }

    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        (**self).close(session)
    }
}

impl<S: LockStore + ?Sized> LockStore for Arc<S> {
    fn most_keys(&self) -> usize {
        (**self).most_keys()
    }

    fn acquire<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Result<Minted, AcquireError>> {
        (**self).acquire(attempt)
    }

    fn give_up<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Result<(), StoreError>> {
        (**self).give_up(attempt)
    }

    fn release<'a>(
        &'a self,
        attempt: &'a Attempt,
        minted: Minted,
    ) -> BoxFuture<'a, Result<Release, StoreError>> {
        (**self).release(attempt, minted)
    }
}

/// A lease that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its name.
    pub session: SessionId,
    /// How long it lives without a renewal.
    pub ttl: Ttl,
}

/// What a grant's one step minted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Minted {
    /// The token.
    pub token: Token,
}

/// What a release found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Release {
    /// This grant held the lock, each of its keys, and holds it no longer.
    Released,
    /// This grant did not hold the lock any more: it had lapsed, was revoked, or was released before. No other grant was
    /// touched. Of several keys at least one was not held any more; what it still held is free.
    NotHeld,
}

/// One attempt at the locks of one or several keys of a class. Its grant id names it from the first request to the release.
#[derive(Debug)]
pub struct Attempt {
    session: SessionId,
    class: ClassName,
    keys: Keys,
    grant_id: GrantId,
    began_ms: u64,
    touched: AtomicBool,
    unanswered: AtomicBool,
}

impl Attempt {
    /// An attempt of `session` at the locks `class` / `keys`. A grant id is used once.
    pub fn new(session: SessionId, class: ClassName, keys: impl Into<Keys>, grant_id: GrantId) -> Attempt {
        Attempt {
            session,
            class,
            keys: keys.into(),
            grant_id,
            began_ms: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            touched: AtomicBool::new(false),
            unanswered: AtomicBool::new(false),
        }
    }

    /// The session that tries.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The class of the locks.
    pub fn class(&self) -> &ClassName {
        &self.class
    }

    /// The keys of the locks.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The id of the grant that this attempt becomes when it succeeds.
    pub fn grant_id(&self) -> &GrantId {
        &self.grant_id
    }

    /// When this attempt was made, by this machine's clock, in milliseconds since 1970: for people, and for nothing else.
    pub fn began_ms(&self) -> u64 {
        self.began_ms
    }

    /// The store is about to send something that changes state: from here on it may land at any time, …
    pub fn sending(&self) {
        self.touched.store(true, Ordering::SeqCst);
        self.unanswered.store(true, Ordering::SeqCst);
    }

    /// … until its definite answer is here.
    pub fn answered(&self) {
        self.unanswered.store(false, Ordering::SeqCst);
    }

    /// Whether anything was ever sent. Giving up an attempt that was never sent has nothing to do.
    pub fn was_sent(&self) -> bool {
        self.touched.load(Ordering::SeqCst)
    }

    /// Whether something that was sent may land yet.
    pub fn may_land(&self) -> bool {
        self.unanswered.load(Ordering::SeqCst)
    }
}

/// The name of a session in its store: 1 to 64 of `[A-Za-z0-9._:-]`. For etcd, the lease id in 16 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    /// Takes a text as the name of a session.
    ///
    /// # Errors
    ///
    /// [`SessionIdError`] when the text has not that form.
    pub fn new(text: impl Into<String>) -> Result<SessionId, SessionIdError> {
        let text = text.into();
        let valid = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
        if (1..=64).contains(&text.len()) && text.bytes().all(valid) {
            Ok(SessionId(text))
        } else {
            Err(SessionIdError {
                text: text.chars().take(80).collect(),
            })
        }
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SessionId {
    type Error = SessionIdError;

    fn try_from(text: String) -> Result<SessionId, SessionIdError> {
        SessionId::new(text)
    }
}

impl From<SessionId> for String {
    fn from(session: SessionId) -> String {
        session.0
    }
}

/// A text that names no session. Take the name as the store gave it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session is named by 1 to 64 of [A-Za-z0-9._:-], got {text:?}")]
pub struct SessionIdError {
    /// The text, cut at 80 characters.
    pub text: String,
}
