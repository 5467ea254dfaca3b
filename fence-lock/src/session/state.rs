//! What a session's tasks and holds share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fence_core::{BootInstant, GrantId, LeaseView, Phase, Ttl};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::store::{Attempt, Minted};

/// How far the clock may read below an earlier reading. `CLOCK_BOOTTIME` never falls; the room is for two threads whose
/// readings are compared in the other order.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);

pub(crate) struct State {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ttl: Ttl,
    lease: Mutex<LeaseKnown>,
    latest: AtomicU64,
    over: CancellationToken,
    /// Cancelled at the first keepalive that fails; a new one once a keepalive was answered again.
    draining: Mutex<CancellationToken>,
    holds: Mutex<HashMap<GrantId, (Arc<Attempt>, Minted)>>,
    dropped: AtomicU64,
    overruns: AtomicU64,
    overlong: AtomicU64,
}

struct LeaseKnown {
    view: LeaseView,
    /// When the last answered request was sent.
    sent: BootInstant,
    ttl: Ttl,
}

impl State {
    pub(crate) fn new(clock: Arc<dyn Clock>, sent: BootInstant, ttl: Ttl) -> State {
        State {
            clock,
            ttl,
            lease: Mutex::new(LeaseKnown {
                view: LeaseView::granted(sent, ttl),
                sent,
                ttl,
            }),
            latest: AtomicU64::new(sent.as_nanos()),
            over: CancellationToken::new(),
            draining: Mutex::default(),
            holds: Mutex::new(HashMap::new()),
            dropped: AtomicU64::new(0),
            overruns: AtomicU64::new(0),
            overlong: AtomicU64::new(0),
        }
    }

    /// Where the session stands. Once fenced it stays fenced, whatever the clock reads later.
    pub(crate) fn phase(&self) -> Phase {
        let now = self.clock.now();
        let latest = self.latest.fetch_max(now.as_nanos(), Ordering::SeqCst);
        let fell = now.after(CLOCK_TOLERANCE).as_nanos() < latest;
        let mut lease = self.lease();
        if fell {
            lease.view.lease_gone();
        }
        let phase = lease.view.phase(now);
        if phase == Phase::Fenced {
            lease.view.lease_gone();
            drop(lease);
            self.end();
        }
        phase
    }

    pub(crate) fn deadline(&self) -> BootInstant {
        self.lease().view.deadline()
    }

    /// When the last answered renewal was sent, and the time to live that it brought.
    pub(crate) fn last_renewal(&self) -> (BootInstant, Ttl) {
        let lease = self.lease();
        (lease.sent, lease.ttl)
    }

    pub(crate) fn renewed(&self, sent: BootInstant, ttl: Ttl) -> Phase {
        let now = self.clock.now();
        {
            let mut lease = self.lease();
            lease.view.renewed(now, sent, ttl);
            if lease.view.phase(now) != Phase::Fenced {
                lease.sent = sent;
                lease.ttl = ttl;
            }
        }
        let phase = self.phase();
        if phase == Phase::Live {
            let mut draining = self.draining();
            if draining.is_cancelled() {
                *draining = CancellationToken::new();
            }
        }
        phase
    }

    pub(crate) fn keepalive_failed(&self) -> Phase {
        self.lease().view.keepalive_failed();
        self.draining().cancel();
        self.phase()
    }

    /// The lease is gone, or the session is closed: fenced from here on.
    pub(crate) fn fence(&self) {
        self.lease().view.lease_gone();
        self.end();
    }

    fn end(&self) {
        // What drains is told first: who waits for both sees them in order.
        self.draining().cancel();
        self.over.cancel();
    }

    /// Cancelled once the session is fenced.
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.over
    }

    /// Cancelled once a keepalive has failed, from now on; at once when one has and none was answered since.
    pub(crate) fn draining_token(&self) -> CancellationToken {
        self.draining().child_token()
    }

    pub(crate) fn register(&self, attempt: &Arc<Attempt>, minted: Minted) {
        self.holds()
            .insert(attempt.grant_id().clone(), (Arc::clone(attempt), minted));
    }

    pub(crate) fn unregister(&self, attempt: &Attempt) {
        self.holds().remove(attempt.grant_id());
    }

    pub(crate) fn take_holds(&self) -> Vec<(Arc<Attempt>, Minted)> {
        self.holds().drain().map(|(_, held)| held).collect()
    }

    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn count_overrun(&self) {
        self.overruns.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn overruns(&self) -> u64 {
        self.overruns.load(Ordering::Relaxed)
    }

    pub(crate) fn count_overlong(&self) {
        self.overlong.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn overlong(&self) -> u64 {
        self.overlong.load(Ordering::Relaxed)
    }

    fn draining(&self) -> MutexGuard<'_, CancellationToken> {
        self.draining.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lease(&self) -> MutexGuard<'_, LeaseKnown> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holds(&self) -> MutexGuard<'_, HashMap<GrantId, (Arc<Attempt>, Minted)>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
