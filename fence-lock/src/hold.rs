//! A live grant on the holder's side.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use fence_core::{BootInstant, Claim, ClassName, Grant, GrantId, Key, Phase, Token};
use tokio_util::sync::CancellationToken;

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
    /// Cancelled once the session is fenced, or this hold is over by itself.
    lost: CancellationToken,
    /// When it has lasted as long as a hold may.
    until: Option<BootInstant>,
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
    /// The hold has lasted for as long as its session allows. Stop; acquire again. Where work needs longer than that, allow
    /// longer holds.
    #[error("the hold has lasted longer than its session allows")]
    Overlong,
}

impl Hold {
    pub(crate) fn new(
        session: Arc<Inner>,
        attempt: Arc<Attempt>,
        grant: Grant,
        granted: BootInstant,
    ) -> Hold {
        let lost = session.state.lost().child_token();
        let until = session.longest_hold.map(|longest| granted.after(longest));
        Hold {
            session,
            attempt,
            grant,
            lost,
            until,
            settled: false,
        }
    }

    /// The token, for work that starts now.
    ///
    /// # Errors
    ///
    /// [`NotHeld`] after a keepalive failed, and for good after the deadline, whichever task looks first.
    pub fn token(&self) -> Result<Token, NotHeld> {
        self.held().and(Ok(self.grant.token))
    }

    /// What a request of work that starts now presents: class, key, token and grant id.
    ///
    /// # Errors
    ///
    /// [`NotHeld`], as for [`Hold::token`].
    pub fn claim(&self) -> Result<Claim, NotHeld> {
        self.held().map(|()| self.grant.claim())
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

    /// Resolves when a keepalive has failed, or the hold is over: no new work should start. A keepalive that is answered before
    /// the deadline ends the draining; then ask anew. The future may outlive the hold and move to another task.
    pub fn draining(&self) -> impl Future<Output = ()> + Send + use<> {
        let (draining, lost) = (self.session.state.draining_token(), self.lost.clone());
        async move {
            tokio::select! {
                () = draining.cancelled() => {}
                () = lost.cancelled() => {}
            }
        }
    }

    /// The session's draining as a token, cancelled once: at the first keepalive that fails from now on, or at the deadline.
    pub fn draining_token(&self) -> CancellationToken {
        self.session.state.draining_token()
    }

    /// Resolves when the hold is over: fenced, overlong, or released. Work under it should stop then; the future may outlive
    /// the hold and move to another task.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        self.lost.clone().cancelled_owned()
    }

    /// [`Hold::lost`] as a token. Cancelling it ends nothing.
    pub fn lost_token(&self) -> CancellationToken {
        self.lost.child_token()
    }

    /// Runs `work` while the hold lasts, and drops it at its next await once the hold is over. The work reads its token from
    /// the hold, and starts nothing new while that says no; work that blocks between two awaits is stopped late, which
    /// [`Session::overruns`](crate::Session::overruns) counts.
    ///
    /// # Errors
    ///
    /// [`NotHeld`] when the hold was draining or over before the work began, or was over before the work ended: `Fenced` or
    /// `Overlong`. What the work had sent may have landed.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, NotHeld> {
        self.held()?;
        let mut work = pin!(work);
        let mut lost = pin!(self.lost.cancelled());
        poll_fn(|cx| {
            if let Some(over) = self.over() {
                return Poll::Ready(Err(over));
            }
            let polled = work.as_mut().poll(cx);
            let over = self.over();
            if over.is_some() {
                self.session.state.count_overrun();
            }
            match (polled, over) {
                (Poll::Ready(output), _) => Poll::Ready(Ok(output)),
                (Poll::Pending, Some(over)) => Poll::Ready(Err(over)),
                (Poll::Pending, None) => lost
                    .as_mut()
                    .poll(cx)
                    .map(|()| Err(self.over().unwrap_or(NotHeld::Fenced))),
            }
        })
        .await
    }

    /// Frees the lock, if this grant still holds it; a later grant of the same lock is never touched. Await the work
    /// under the hold first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store did not answer. The hold is over all the same, and its session goes on trying to
    /// free the lock until it succeeds or ends.
    pub async fn release(mut self) -> Result<Release, StoreError> {
        self.lost.cancel();
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

    /// Ends the hold when it has lasted as long as a hold may.
    pub(crate) fn watch_length(&self) {
        if let Some(until) = self.until {
            let (attempt, lost) = (Arc::clone(&self.attempt), self.lost.clone());
            self.session.end_overlong(attempt, self.minted(), lost, until);
        }
    }

    /// Whether new work may start, by the clock and not by what a timer has done yet.
    fn held(&self) -> Result<(), NotHeld> {
        let phase = self.session.state.phase();
        match (self.over_in(phase), phase) {
            (Some(over), _) => Err(over),
            (None, Phase::Draining) => Err(NotHeld::Draining),
            (None, Phase::Live | Phase::Fenced) => Ok(()),
        }
    }

    /// Why the hold is over, if it is.
    fn over(&self) -> Option<NotHeld> {
        self.over_in(self.session.state.phase())
    }

    fn over_in(&self, phase: Phase) -> Option<NotHeld> {
        if phase == Phase::Fenced {
            return Some(NotHeld::Fenced);
        }
        let now = || self.session.state.clock.now();
        let overlong = self
            .until
            .is_some_and(|until| self.lost.is_cancelled() || now() >= until);
        overlong.then_some(NotHeld::Overlong)
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
            self.lost.cancel();
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
