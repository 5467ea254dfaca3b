//! What a session's tasks and holds share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fence_core::{BootInstant, GrantId, LeaseView, Phase, Ttl};
use tokio::sync::watch;

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
    over: watch::Sender<bool>,
    holds: Mutex<HashMap<GrantId, (Arc<Attempt>, Minted)>>,
    dropped: AtomicU64,
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
            over: watch::Sender::new(false),
            holds: Mutex::new(HashMap::new()),
            dropped: AtomicU64::new(0),
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
        self.phase()
    }

    pub(crate) fn keepalive_failed(&self) -> Phase {
        self.lease().view.keepalive_failed();
        self.phase()
    }

    /// The lease is gone, or the session is closed: fenced from here on.
    pub(crate) fn fence(&self) {
        self.lease().view.lease_gone();
        self.end();
    }

    fn end(&self) {
        self.over.send_if_modified(|over| !std::mem::replace(over, true));
    }

    /// Resolves when the session is fenced.
    pub(crate) fn fenced(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut over = self.over.subscribe();
        async move {
            // A sender that is gone took its session with it.
            let _ = over.wait_for(|over| *over).await;
        }
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

    fn lease(&self) -> MutexGuard<'_, LeaseKnown> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holds(&self) -> MutexGuard<'_, HashMap<GrantId, (Arc<Attempt>, Minted)>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
