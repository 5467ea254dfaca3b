//! Work under a hold: stopped when the hold is over, overruns counted, holds that last too long ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fence_core::{BootInstant, Ttl};
use fence_lock::conformance::MemoryStore;
use fence_lock::{Clock as _, NotHeld, Session, SessionConfig};

use crate::clock::ManualClock;
use crate::support::{class, key};

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

async fn on(clock: &ManualClock, longest: Option<Duration>) -> Session {
    let mut config = SessionConfig::new(Ttl::from_secs(10).unwrap()).clock(clock.clone());
    if let Some(longest) = longest {
        config = config.longest_hold(longest);
    }
    Session::open_with(MemoryStore::new(clock.clone()), config)
        .await
        .unwrap()
}

#[tokio::test]
async fn work_that_ends_in_time_gives_its_output() {
    let session = on(&ManualClock::new(), None).await;
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    let said = hold.run(async { hold.token().map(|token| token.as_i64()) }).await;
    assert_eq!(said, Ok(Ok(hold.token().unwrap().as_i64())));
    assert_eq!(session.overruns(), 0);
}

#[tokio::test]
async fn work_that_waits_is_dropped_at_the_deadline() {
    let clock = ManualClock::new();
    let session = on(&clock, None).await;
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    let dropped = Arc::new(AtomicBool::new(false));
    let work = {
        let dropped = Dropped(Arc::clone(&dropped));
        async move {
            let _dropped = dropped;
            std::future::pending::<()>().await;
        }
    };
    let (said, ()) = tokio::join!(hold.run(work), async {
        tokio::task::yield_now().await;
        clock.forward(Duration::from_secs(9));
    });
    assert_eq!(said, Err(NotHeld::Fenced));
    assert!(dropped.load(Ordering::SeqCst));
    assert_eq!(session.overruns(), 0, "it waited, and was stopped in time");
}

#[tokio::test]
async fn work_that_blocks_past_the_deadline_is_counted_as_an_overrun() {
    let clock = ManualClock::new();
    let session = on(&clock, None).await;
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    // It ends late, and its output is not lost.
    let said = hold
        .run(async {
            clock.forward(Duration::from_secs(9));
            7
        })
        .await;
    assert_eq!((said, session.overruns()), (Ok(7), 1));
    // Nothing is begun any more.
    let began = Arc::new(AtomicBool::new(false));
    let said = hold
        .run({
            let began = Arc::clone(&began);
            async move { began.store(true, Ordering::SeqCst) }
        })
        .await;
    assert_eq!(
        (said, began.load(Ordering::SeqCst)),
        (Err(NotHeld::Fenced), false)
    );
    assert_eq!(session.overruns(), 1);
}

#[tokio::test]
async fn a_hold_that_lasts_too_long_is_over_and_its_lock_is_free_one_ttl_later() {
    let clock = ManualClock::new();
    let longest = Duration::from_secs(25);
    let store = MemoryStore::new(clock.clone());
    let config = |clock: &ManualClock| SessionConfig::new(Ttl::from_secs(10).unwrap()).clock(clock.clone());
    let hanging = Session::open_with(store.client(), config(&clock).longest_hold(longest))
        .await
        .unwrap();
    let waiting = Session::open_with(store.client(), config(&clock)).await.unwrap();
    let began = clock.now();
    let hold = hanging.acquire(&class(), &key("acct-1")).await.unwrap();
    let other = waiting.acquire(&class(), &key("acct-2")).await.unwrap();
    let next = tokio::spawn({
        let waiting = waiting.clone();
        async move { waiting.acquire(&class(), &key("acct-1")).await }
    });
    let lost = hold.lost_token();
    let mut over_at: Option<BootInstant> = None;
    while !next.is_finished() {
        assert!(
            began.until(clock.now()) < Duration::from_secs(120),
            "the lock is never free"
        );
        clock.forward(Duration::from_millis(250));
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        if over_at.is_none() && lost.is_cancelled() {
            over_at = Some(clock.now());
        }
    }
    let over_at = over_at.expect("the hold is lost before its lock is free");
    assert_eq!(began.until(over_at), longest);
    assert!(began.until(clock.now()) >= longest + Duration::from_secs(10));
    assert_eq!(hold.token(), Err(NotHeld::Overlong));
    assert_eq!(hold.run(async {}).await, Err(NotHeld::Overlong));
    assert_eq!((hanging.overlong_holds(), waiting.overlong_holds()), (1, 0));
    // The session lives on, and so do the holds of others.
    assert!(other.token().is_ok() && next.await.unwrap().unwrap().token().is_ok());
    assert!(
        hanging
            .acquire(&class(), &key("acct-3"))
            .await
            .unwrap()
            .token()
            .is_ok()
    );
}

#[tokio::test]
async fn a_hold_that_is_released_in_time_is_not_overlong() {
    let clock = ManualClock::new();
    let session = on(&clock, Some(Duration::from_secs(2))).await;
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    let (lost, draining) = (hold.lost_token(), hold.draining());
    let _ = hold.release().await.unwrap();
    assert!(lost.is_cancelled());
    draining.await;
    clock.forward(Duration::from_secs(3));
    tokio::task::yield_now().await;
    assert_eq!(session.overlong_holds(), 0);
}
