//! Every way in which a keepalive dies, on a clock that the test moves: first draining, then fenced, in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fence_core::{Phase, Ttl};
use fence_lock::conformance::MemoryStore;
use fence_lock::{
    AcquireError, Attempt, Hold, Lease, LockStore, Minted, NotHeld, OpenError, Release, RenewError, Renewals,
    Session, SessionConfig, SessionId, SessionRegistry, StoreError,
};
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::clock::ManualClock;
use crate::support::{class, key};

/// How the keepalives of a store fail, once they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dies {
    /// They do not.
    Not,
    /// The stream ends between two of them, and every new one with it.
    StreamEnds,
    /// The store says that there is no such lease.
    LeaseGone,
    /// No answer comes.
    Silence,
    /// The stream cannot be started.
    NoStart,
    /// The task that renews is torn down.
    Panic,
}

/// A store whose keepalives die when the test says so.
#[derive(Clone)]
struct Mortal {
    store: MemoryStore,
    dies: watch::Sender<Dies>,
    /// How many keepalives were sent.
    sent: Arc<AtomicUsize>,
}

struct MortalRenewals {
    inner: Box<dyn Renewals>,
    dies: watch::Receiver<Dies>,
    sent: Arc<AtomicUsize>,
}

fn lost_connection() -> StoreError {
    StoreError::Unreachable {
        endpoints: "memory".to_owned(),
        source: "the test ended it".into(),
    }
}

impl Renewals for MortalRenewals {
    fn renew(&mut self) -> BoxFuture<'_, Result<Ttl, RenewError>> {
        let dies = *self.dies.borrow();
        self.sent.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match dies {
                Dies::Not => self.inner.renew().await,
                Dies::StreamEnds | Dies::NoStart => Err(RenewError::Failed(lost_connection())),
                Dies::LeaseGone => Err(RenewError::Gone),
                Dies::Silence => std::future::pending().await,
                Dies::Panic => panic!("the test tears the keepalive down"),
            }
        })
    }

    fn ended(&mut self) -> BoxFuture<'_, RenewError> {
        let mut dies = self.dies.clone();
        Box::pin(async move {
            let _ = dies.wait_for(|dies| *dies == Dies::StreamEnds).await;
            RenewError::Failed(lost_connection())
        })
    }
}

impl SessionRegistry for Mortal {
    fn open(&self, ttl: Ttl) -> BoxFuture<'_, Result<Lease, OpenError>> {
        self.store.open(ttl)
    }

    fn renewals(&self, session: &SessionId) -> Box<dyn Renewals> {
        Box::new(MortalRenewals {
            inner: self.store.renewals(session),
            dies: self.dies.subscribe(),
            sent: Arc::clone(&self.sent),
        })
    }

    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.close(session)
    }
}

impl LockStore for Mortal {
    fn most_keys(&self) -> usize {
        self.store.most_keys()
    }

    fn acquire<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Result<Minted, AcquireError>> {
        self.store.acquire(attempt)
    }

    fn give_up<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.give_up(attempt)
    }

    fn release<'a>(
        &'a self,
        attempt: &'a Attempt,
        minted: Minted,
    ) -> BoxFuture<'a, Result<Release, StoreError>> {
        self.store.release(attempt, minted)
    }
}

struct Bed {
    clock: ManualClock,
    store: Mortal,
    session: Session,
    hold: Hold,
    ttl: Ttl,
}

async fn bed() -> Bed {
    let (clock, ttl) = (ManualClock::new(), Ttl::from_secs(10).unwrap());
    let store = Mortal {
        store: MemoryStore::new(clock.clone()),
        dies: watch::Sender::new(Dies::Not),
        sent: Arc::default(),
    };
    let config = SessionConfig::new(ttl).clock(clock.clone());
    let session = Session::open_with(store.clone(), config).await.unwrap();
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    Bed {
        clock,
        store,
        session,
        hold,
        ttl,
    }
}

/// What must happen by itself, without the clock moving.
async fn soon(what: &str, happens: impl Future<Output = ()>) {
    let happened = tokio::time::timeout(Duration::from_secs(20), happens).await;
    assert!(happened.is_ok(), "{what} never came");
}

impl Bed {
    /// Moves the clock to the next keepalive, and waits until it was sent.
    async fn next_keepalive(&self) {
        let before = self.store.sent.load(Ordering::SeqCst);
        self.clock.forward(self.ttl.as_duration() / 3);
        let sent = async {
            while self.store.sent.load(Ordering::SeqCst) == before {
                tokio::task::yield_now().await;
            }
        };
        soon("a keepalive", sent).await;
    }

    /// Fenced at the deadline of the lease, to the nanosecond, and told so without looking.
    async fn is_fenced_at(&self, deadline: fence_core::BootInstant) {
        use fence_lock::Clock as _;
        let lost = self.hold.lost();
        let nanosecond = Duration::from_nanos(1);
        self.clock.forward(self.clock.now().until(deadline) - nanosecond);
        assert_eq!(self.hold.token(), Err(NotHeld::Draining));
        self.clock.forward(nanosecond);
        assert_eq!(self.hold.token(), Err(NotHeld::Fenced));
        soon("the loss", lost).await;
        assert!(self.hold.lost_token().is_cancelled() && self.session.lost_token().is_cancelled());
    }
}

#[tokio::test]
async fn a_stream_that_ends_drains_at_once_and_fences_at_the_deadline() {
    let bed = bed().await;
    let deadline = bed.session.deadline();
    let (draining, token) = (bed.hold.draining(), bed.hold.draining_token());
    assert!(!token.is_cancelled());
    bed.store.dies.send_replace(Dies::StreamEnds);
    soon("draining", draining).await;
    assert!(token.is_cancelled());
    assert!(!bed.hold.lost_token().is_cancelled());
    bed.is_fenced_at(deadline).await;
}

#[tokio::test]
async fn a_lease_that_is_gone_fences_at_the_next_keepalive() {
    let bed = bed().await;
    let (draining, lost) = (bed.hold.draining(), bed.hold.lost());
    bed.store.dies.send_replace(Dies::LeaseGone);
    bed.next_keepalive().await;
    soon("draining", draining).await;
    soon("the loss", lost).await;
    assert_eq!(bed.hold.token(), Err(NotHeld::Fenced));
}

#[tokio::test]
async fn silence_drains_after_a_third_of_the_ttl_and_fences_at_the_deadline() {
    let bed = bed().await;
    let deadline = bed.session.deadline();
    bed.store.dies.send_replace(Dies::Silence);
    bed.next_keepalive().await;
    let draining = bed.hold.draining();
    let nanosecond = Duration::from_nanos(1);
    bed.clock.forward(bed.ttl.keepalive_timeout() - nanosecond);
    tokio::task::yield_now().await;
    assert!(bed.hold.token().is_ok());
    bed.clock.forward(nanosecond);
    soon("draining", draining).await;
    bed.is_fenced_at(deadline).await;
}

#[tokio::test]
async fn a_keepalive_that_cannot_be_started_drains_and_fences_at_the_deadline() {
    let bed = bed().await;
    let deadline = bed.session.deadline();
    bed.store.dies.send_replace(Dies::NoStart);
    let draining = bed.session.draining();
    bed.next_keepalive().await;
    soon("draining", draining).await;
    bed.is_fenced_at(deadline).await;
}

#[tokio::test]
async fn a_keepalive_task_that_is_torn_down_fences_at_once() {
    let bed = bed().await;
    let lost = bed.hold.lost();
    bed.store.dies.send_replace(Dies::Panic);
    bed.next_keepalive().await;
    soon("the loss", lost).await;
    assert_eq!(bed.hold.token(), Err(NotHeld::Fenced));
}

#[tokio::test]
async fn a_draining_that_ended_is_told_anew_when_the_next_one_begins() {
    let bed = bed().await;
    let token = bed.hold.token().unwrap();
    for _ in 0..2 {
        let draining = bed.hold.draining_token();
        assert!(
            !draining.is_cancelled(),
            "a draining that has ended is told again"
        );
        bed.store.dies.send_replace(Dies::NoStart);
        bed.next_keepalive().await;
        soon("draining", draining.cancelled()).await;
        bed.store.dies.send_replace(Dies::Not);
        let renewed = async {
            while bed.hold.phase() != Phase::Live {
                // The pauses between tries are counted on the same clock.
                bed.clock.forward(Duration::from_millis(50));
                tokio::task::yield_now().await;
            }
        };
        soon("a renewal", renewed).await;
        assert_eq!(bed.hold.token(), Ok(token));
        assert!(!bed.hold.lost_token().is_cancelled());
    }
}
