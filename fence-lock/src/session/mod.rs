//! One process's lease in the lock store, with one keepalive.

mod acquire;
mod state;
mod tasks;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fence_core::{BootInstant, ClassName, Key, Phase, Ttl};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::{BootClock, Clock};
use crate::error::{AcquireError, OpenError, StoreError};
use crate::hold::Hold;
use crate::hold_all::HoldAll;
use crate::keys::Keys;
use crate::store::{Attempt, LockStore, Minted, SessionId};
pub(crate) use state::State;

/// One process's lease in the lock store: one lease and one keepalive, however many holds attach to it.
///
/// Clones are the same session. It lives, and renews, until it is closed, until it is fenced, or until the last clone and the
/// last [`Hold`] are dropped; then the lease lapses by itself one TTL later.
///
/// # The deadline
///
/// It is counted from the moment when the last answered keepalive was *sent*, less a margin, on a clock that counts
/// suspended time. A keepalive has failed when its stream ended, when the store said that the lease is gone, when no answer
/// came within TTL / 3, or when it could not be started. At the first failure all holds are *draining*: no token can be
/// read from them, until a later keepalive is answered. At the deadline, or when the lease is gone, they are *fenced* for
/// good. Both come before the store can have given a lock to anyone else, unless the lease was revoked, a key deleted,
/// history lost or a clock jumped.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

/// How a session renews.
#[derive(Clone)]
pub struct SessionConfig {
    ttl: Ttl,
    keepalive_every: Option<Duration>,
    longest_hold: Option<Duration>,
    clock: Arc<dyn Clock>,
}

impl SessionConfig {
    /// A session whose lease lives `ttl` without a renewal, renewed every TTL / 3.
    pub fn new(ttl: Ttl) -> SessionConfig {
        SessionConfig {
            ttl,
            keepalive_every: None,
            longest_hold: None,
            clock: Arc::new(BootClock),
        }
    }

    /// Renews at another interval: 50 ms at least, and below TTL - TTL / 3 - margin, so that a keepalive that fails is
    /// noticed before the deadline.
    #[must_use]
    pub fn keepalive_every(mut self, every: Duration) -> SessionConfig {
        self.keepalive_every = Some(every);
        self
    }

    /// Ends each hold this long after its lock was granted, released or not: for tasks that hang in a process that still
    /// renews. Its token can no longer be read then and it is lost; the session frees its lock one full TTL later, as if
    /// it had lapsed, and counts it ([`Session::overlong_holds`]). Without this a hold lasts as long as its session.
    #[must_use]
    pub fn longest_hold(mut self, longest: Duration) -> SessionConfig {
        self.longest_hold = Some(longest);
        self
    }

    /// Counts deadlines on another clock than [`BootClock`]. A clock that stops while the machine is suspended makes every
    /// deadline of this session untrue; this is for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> SessionConfig {
        self.clock = Arc::new(clock);
        self
    }

    /// The interval between keepalives, checked against `ttl`.
    fn interval(&self, ttl: Ttl) -> Result<Duration, OpenError> {
        let every = self.keepalive_every.unwrap_or(ttl.as_duration() / 3);
        let most = ttl.as_duration() - ttl.keepalive_timeout() - ttl.margin();
        if every < Duration::from_millis(50) || every >= most {
            return Err(OpenError::KeepaliveInterval { every, ttl, most });
        }
        Ok(every)
    }
}

impl Session {
    /// Opens a session whose lease lives `ttl` without a renewal, 2 s to 1 h. Must be called on a tokio runtime with
    /// I/O and time enabled.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when the store does not answer or grants a life in which no deadline holds.
    pub async fn open(store: impl LockStore + 'static, ttl: Ttl) -> Result<Session, OpenError> {
        Session::open_with(store, SessionConfig::new(ttl)).await
    }

    /// Opens a session that renews as `config` says.
    ///
    /// # Errors
    ///
    /// [`OpenError`], also for an interval with which the deadline cannot hold; then nothing was sent.
    pub async fn open_with(
        store: impl LockStore + 'static,
        config: SessionConfig,
    ) -> Result<Session, OpenError> {
        config.interval(config.ttl)?;
        let sent = config.clock.now();
        let lease = store.open(config.ttl).await?;
        if lease.ttl < config.ttl {
            let _ = store.close(&lease.session).await;
            return Err(OpenError::ShortTtl {
                asked: config.ttl,
                granted: lease.ttl.as_duration(),
            });
        }
        let every = config.interval(lease.ttl)?;
        let longest_hold = config.longest_hold;
        let store: Arc<dyn LockStore> = Arc::new(store);
        let state = Arc::new(State::new(config.clock, sent, lease.ttl));
        if state.phase() == Phase::Fenced {
            let _ = store.close(&lease.session).await;
            return Err(OpenError::TooLate);
        }
        let runtime = Handle::current();
        let renewing = tasks::keep_alive(
            Arc::clone(&state),
            Arc::clone(&store),
            lease.session.clone(),
            every,
            sent,
        );
        // Whatever ends the keepalive, a panic included, ends the session.
        let fence_after = FenceOnDrop(Arc::clone(&state));
        let tasks = vec![
            runtime.spawn(async move {
                let _fence_after = fence_after;
                renewing.await;
            }),
            runtime.spawn(tasks::watch_deadline(Arc::clone(&state))),
        ];
        Ok(Session {
            inner: Arc::new(Inner {
                id: lease.session,
                store,
                state,
                longest_hold,
                runtime,
                tasks,
            }),
        })
    }

    /// Waits for the lock `class` / `key` and takes it.
    ///
    /// Waiters are served in the order in which they queued; a lock that comes free wakes one of them. Two tasks never
    /// both hold one lock, of one session or of two. Dropping the future gives the attempt up in the background: it never
    /// lands later on this session.
    ///
    /// # Errors
    ///
    /// [`AcquireError`]; nothing is held then, and the attempt never lands later.
    pub async fn acquire(&self, class: &ClassName, key: &Key) -> Result<Hold, AcquireError> {
        acquire::acquire(&self.inner, class, Keys::from(key.clone())).await
    }

    /// [`Session::acquire`] for `within` at most.
    ///
    /// # Errors
    ///
    /// [`AcquireError::TimedOut`] when the lock was not granted in time; the attempt never lands later.
    pub async fn acquire_within(
        &self,
        class: &ClassName,
        key: &Key,
        within: Duration,
    ) -> Result<Hold, AcquireError> {
        match tokio::time::timeout(within, self.acquire(class, key)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(AcquireError::TimedOut { after: within }),
        }
    }

    /// Waits for the locks of all the keys of `class` and takes them in one step, or none of them: they share one token and
    /// one grant id. While it waits it holds none, and stands in the queue of each; acquisitions that want the same keys in
    /// whatever order do not wait for each other in a circle. How many keys a store takes at once it says itself
    /// ([`LockStore::most_keys`]).
    ///
    /// # Errors
    ///
    /// [`AcquireError`], also [`AcquireError::TooManyKeys`]; nothing is held then, and the attempt never lands later.
    pub async fn acquire_all(&self, class: &ClassName, keys: Keys) -> Result<HoldAll, AcquireError> {
        let hold = acquire::acquire(&self.inner, class, keys).await?;
        Ok(HoldAll::new(hold))
    }

    /// The session's name in its store.
    pub fn id(&self) -> &SessionId {
        &self.inner.id
    }

    /// The time to live that the store granted.
    pub fn ttl(&self) -> Ttl {
        self.inner.state.ttl
    }

    /// Where the session stands now. Advice for people and logs: it may be untrue by the time it is looked at, and skips
    /// no token check.
    pub fn phase(&self) -> Phase {
        self.inner.state.phase()
    }

    /// Resolves when a keepalive has failed, or the session is fenced: no new work should start. A keepalive that is answered
    /// before the deadline ends the draining; then ask anew.
    pub fn draining(&self) -> impl Future<Output = ()> + Send + use<> {
        self.inner.state.draining_token().cancelled_owned()
    }

    /// [`Session::draining`] as a token, cancelled once.
    pub fn draining_token(&self) -> CancellationToken {
        self.inner.state.draining_token()
    }

    /// Resolves when the session is fenced: its deadline passed, its lease is gone, or it was closed.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        self.inner.state.lost().clone().cancelled_owned()
    }

    /// [`Session::lost`] as a token. Cancelling it ends nothing.
    pub fn lost_token(&self) -> CancellationToken {
        self.inner.state.lost().child_token()
    }

    /// Until when this session may believe in its lease, on its clock, as things stand; every keepalive that is answered
    /// moves it. The lease itself ends no earlier than [`Ttl::margin`] later, unless it is revoked.
    pub fn deadline(&self) -> BootInstant {
        self.inner.state.deadline()
    }

    /// How often work under [`Hold::run`] went on past the deadline, because it did not come to an await in time. What it
    /// sent there meets the next holder's mark.
    pub fn overruns(&self) -> u64 {
        self.inner.state.overruns()
    }

    /// How many holds were ended because they lasted longer than [`SessionConfig::longest_hold`].
    pub fn overlong_holds(&self) -> u64 {
        self.inner.state.overlong()
    }

    /// How many holds were dropped without a release. Each stays locked for one full TTL, so this should be 0.
    pub fn dropped_holds(&self) -> u64 {
        self.inner.state.dropped()
    }

    /// Fences every hold of this session, releases each, and ends the lease. Await the work that runs under the holds
    /// first: a write that is still on its way meets the next holder's mark.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the lease could not be ended. It is renewed no more, so that it lapses within one TTL; closing
    /// again tries again.
    pub async fn close(&self) -> Result<(), StoreError> {
        let inner = &self.inner;
        inner.state.fence();
        for (attempt, minted) in inner.state.take_holds() {
            // Ending the lease frees what a failed release leaves.
            let _ = inner.store.release(&attempt, minted).await;
        }
        inner.store.close(&inner.id).await
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.inner.id)
            .field("ttl", &self.inner.state.ttl)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SessionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionConfig")
            .field("ttl", &self.ttl)
            .field("keepalive_every", &self.keepalive_every)
            .field("longest_hold", &self.longest_hold)
            .finish_non_exhaustive()
    }
}

/// What the session's clones and holds keep alive together.
pub(crate) struct Inner {
    pub(crate) id: SessionId,
    pub(crate) store: Arc<dyn LockStore>,
    pub(crate) state: Arc<State>,
    pub(crate) longest_hold: Option<Duration>,
    runtime: Handle,
    tasks: Vec<JoinHandle<()>>,
}

impl Inner {
    /// A hold went without a release: it is freed one full TTL later, as if it had lapsed.
    pub(crate) fn release_dropped(&self, attempt: Arc<Attempt>, minted: Minted) {
        self.state.count_dropped();
        let due = self.state.clock.now().after(self.state.ttl.as_duration());
        self.release_at(attempt, minted, due);
    }

    /// A release failed: the grant is over for its holder, so the session goes on trying at once.
    pub(crate) fn release_again(&self, attempt: Arc<Attempt>, minted: Minted) {
        self.release_at(attempt, minted, self.state.clock.now());
    }

    /// Ends a hold at `until`, unless it has ended before.
    pub(crate) fn end_overlong(
        &self,
        attempt: Arc<Attempt>,
        minted: Minted,
        hold: CancellationToken,
        until: BootInstant,
    ) {
        let (state, store) = (Arc::clone(&self.state), Arc::clone(&self.store));
        self.runtime
            .spawn(tasks::end_overlong(state, store, attempt, minted, hold, until));
    }

    fn release_at(&self, attempt: Arc<Attempt>, minted: Minted, due: BootInstant) {
        let (state, store) = (Arc::clone(&self.state), Arc::clone(&self.store));
        self.runtime
            .spawn(tasks::release_at(state, store, attempt, minted, due));
    }

    fn give_up(&self, attempt: Arc<Attempt>) {
        let (state, store) = (Arc::clone(&self.state), Arc::clone(&self.store));
        self.runtime.spawn(tasks::give_up(state, store, attempt));
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.state.fence();
        for task in &self.tasks {
            task.abort();
        }
    }
}

struct FenceOnDrop(Arc<State>);

impl Drop for FenceOnDrop {
    fn drop(&mut self) {
        self.0.fence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_leaves_no_room_before_the_deadline_is_refused() {
        let ttl = Ttl::from_secs(2).expect("2 s is a TTL");
        // 2 s - 666 ms - 250 ms
        let most = ttl.as_duration() - ttl.keepalive_timeout() - ttl.margin();
        let refused = |every| {
            SessionConfig::new(ttl)
                .keepalive_every(every)
                .interval(ttl)
                .is_err()
        };
        assert!(refused(most));
        assert!(refused(Duration::from_millis(49)));
        assert!(!refused(most - Duration::from_nanos(1)));
        assert!(!refused(Duration::from_millis(50)));
        for seconds in [2, 3, 10, 60, 3600] {
            let ttl = Ttl::from_secs(seconds).expect("a TTL");
            assert!(
                SessionConfig::new(ttl).interval(ttl).is_ok(),
                "the default interval fits {ttl}"
            );
        }
    }
}
