//! The store in memory on a clock that a test moves.

use std::time::Duration;

use fence_core::{GrantId, Ttl};
use fence_lock::conformance::MemoryStore;
use fence_lock::{
    AcquireError, Attempt, LockStore as _, NotHeld, RenewError, Session, SessionConfig, SessionId,
    SessionRegistry as _,
};

use crate::clock::ManualClock;
use crate::support::{class, key};

fn attempt(session: &SessionId, grant_id: &str) -> Attempt {
    Attempt::new(
        session.clone(),
        class(),
        key("acct-1"),
        GrantId::new(grant_id).unwrap(),
    )
}

#[tokio::test]
async fn a_lease_ends_when_its_clock_says_so_and_at_no_other_time() {
    let clock = ManualClock::new();
    let store = MemoryStore::new(clock.clone());
    let ttl = Ttl::from_secs(3600).unwrap();
    let first = store.open(ttl).await.unwrap().session;
    let second = store.open(ttl).await.unwrap().session;
    let before = store.acquire(&attempt(&first, "first")).await.unwrap();
    clock.forward(Duration::from_secs(3599));
    store.renewals(&second).renew().await.unwrap();
    let waiting = tokio::spawn({
        let (store, waiter) = (store.client(), attempt(&second, "second"));
        async move { store.acquire(&waiter).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished());
    clock.forward(Duration::from_secs(1));
    let after = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    let after = after.unwrap().unwrap().unwrap();
    assert_ne!(before, after);
    let renewal = store.renewals(&first).renew().await;
    assert!(matches!(renewal, Err(RenewError::Gone)), "{renewal:?}");
}

#[tokio::test]
async fn a_session_and_its_store_on_one_clock_end_together_while_time_is_frozen_elsewhere() {
    let clock = ManualClock::new();
    let store = MemoryStore::new(clock.clone());
    let ttl = Ttl::from_secs(10).unwrap();
    let config = SessionConfig::new(ttl).clock(clock.clone());
    let session = Session::open_with(store.client(), config).await.unwrap();
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    assert!(hold.token().is_ok());
    // Suspended for longer than the lease: the first look afterwards is the one that counts.
    clock.forward(Duration::from_secs(11));
    assert_eq!(hold.token(), Err(NotHeld::Fenced));
    let outcome = session.acquire(&class(), &key("acct-2")).await;
    assert!(matches!(outcome, Err(AcquireError::SessionOver)), "{outcome:?}");
    let next = store.open(ttl).await.unwrap().session;
    assert!(store.acquire(&attempt(&next, "next")).await.is_ok());
}
