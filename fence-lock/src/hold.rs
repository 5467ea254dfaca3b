//! A live grant on the holder's side.

use std::fmt;
use std::sync::Arc;

use fence_core::{Claim, ClassName, Grant, GrantId, Key, Phase, Token};
use tokio::sync::watch;

use crate::error::StoreError;
use crate::session::Inner;
use crate::store::{Attempt, Minted, Release};

/// A live grant. *Work starts when the token is read from it.*
///
/// A hold does not keep a late write out: a process may be paused right after it read the token. That is what the
/// resource's own refusal is for.
///
/// Release it with [`Hold::release`]. A hold that is dropped does no I/O, since work under it may still run: its session
/// frees the lock one full TTL later, as if it had lapsed, and counts it.
#[must_use = "a hold that is dropped keeps its lock for one full TTL"]
pub struct Hold {
    session: Arc<Inner>,
    attempt: Arc<Attempt>,
    grant: Grant,
    ended: watch::Sender<bool>,
    settled: bool,
}

/// No work may start under this hold now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotHeld {
    /// A keepalive has failed. Start no new work; what runs may end. Ask again: the next keepalive may succeed.
    #[error("the hold is draining: a keepalive has failed")]
    Draining,
    /// The deadline has passed or the lease is gone. Stop; acquire again under a new session.
    #[error("the hold is fenced: its deadline has passed or its lease is gone")]
    Fenced,
}

impl Hold {
    pub(crate) fn new(session: Arc<Inner>, attempt: Arc<Attempt>, grant: Grant) -> Hold {
        Hold {
            session,
            attempt,
            grant,
            ended: watch::Sender::new(false),
            settled: false,
        }
    }

    /// The token, for work that starts now.
    ///
    /// # Errors
    ///
    /// [`NotHeld`] after a keepalive failed, and for good after the deadline, whichever task looks first.
    pub fn token(&self) -> Result<Token, NotHeld> {
        match self.session.state.phase() {
            Phase::Live => Ok(self.grant.token),
            Phase::Draining => Err(NotHeld::Draining),
            Phase::Fenced => Err(NotHeld::Fenced),
        }
    }

    /// What a request of work that starts now presents: class, key, token and grant id.
    ///
    /// # Errors
    ///
    /// [`NotHeld`], as for [`Hold::token`].
    pub fn claim(&self) -> Result<Claim, NotHeld> {
        self.token().map(|_| self.grant.claim())
    }

    /// The class of the lock.
    pub fn class(&self) -> &ClassName {
        &self.grant.class
    }

    /// The key of the lock.
    pub fn key(&self) -> &Key {
        &self.grant.key
    }

    /// The id of this grant.
    pub fn grant_id(&self) -> &GrantId {
        &self.grant.grant_id
    }

    /// Where the hold stands now. Advice for people and logs: it may be untrue by the time it is looked at, and never
    /// permits to skip the token check at the resource.
    pub fn phase(&self) -> Phase {
        self.session.state.phase()
    }

    /// Resolves when the hold is over: fenced, or released. Work under it should stop then; the future may outlive the
    /// hold and move to another task.
    pub fn fenced(&self) -> impl Future<Output = ()> + Send + use<> {
        let session = self.session.state.fenced();
        let mut ended = self.ended.subscribe();
        async move {
            tokio::select! {
                () = session => {}
                // An error means that the hold was dropped.
                _ = ended.wait_for(|ended| *ended) => {}
            }
        }
    }

    /// Frees the lock, if this grant still holds it; a later grant of the same lock is never touched. Await the work
    /// under the hold first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store did not answer. The hold is over all the same, and its session goes on trying to
    /// free the lock until it succeeds or ends.
    pub async fn release(mut self) -> Result<Release, StoreError> {
        self.ended.send_replace(true);
        let outcome = self.session.store.release(&self.attempt, self.minted()).await;
        self.settled = true;
        match &outcome {
            Ok(_) => self.session.state.unregister(&self.attempt),
            Err(_) => self
                .session
                .release_again(Arc::clone(&self.attempt), self.minted()),
        }
        outcome
    }

    pub(crate) fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    fn minted(&self) -> Minted {
        Minted {
            token: self.grant.token,
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.settled {
            self.session
                .release_dropped(Arc::clone(&self.attempt), self.minted());
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("class", &self.grant.class)
            .field("key", &self.grant.key)
            .field("grant_id", &self.grant.grant_id)
            .finish_non_exhaustive()
    }
}
