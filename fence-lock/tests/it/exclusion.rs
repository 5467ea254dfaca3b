//! One holder at a time, each with a larger token.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use fence_core::ClassName;
use fence_lock::{AcquireError, EtcdStore, Keys, Release};

use crate::support::{class, fresh_prefix, key, raw, session, store, store_in};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_race_of_sessions_and_tasks_adds_up_exactly_with_rising_tokens() {
    const SESSIONS: u64 = 4;
    const TASKS: u64 = 3;
    const ROUNDS: u64 = 5;
    let store = store().await;
    let inside = Arc::new(AtomicBool::new(false));
    let sum = Arc::new(AtomicU64::new(0));
    let last = Arc::new(AtomicI64::new(0));
    let mut tasks = Vec::new();
    for _ in 0..SESSIONS {
        let session = session(&store).await;
        for _ in 0..TASKS {
            let (session, inside, sum, last) = (session.clone(), inside.clone(), sum.clone(), last.clone());
            tasks.push(tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
                    assert!(!inside.swap(true, Ordering::SeqCst), "two holders at once");
                    let token = hold.token().unwrap().as_i64();
                    let before = last.swap(token, Ordering::SeqCst);
                    assert!(before < token, "{token} was granted after {before}");
                    // Not atomic on purpose: exclusion makes it exact.
                    let read = sum.load(Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    sum.store(read + 1, Ordering::SeqCst);
                    inside.store(false, Ordering::SeqCst);
                    assert_eq!(hold.release().await.unwrap(), Release::Released);
                }
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(sum.load(Ordering::SeqCst), SESSIONS * TASKS * ROUNDS);
}

#[tokio::test]
async fn the_token_is_the_create_revision_of_the_lock_key() {
    let prefix = fresh_prefix();
    let store = store_in(&prefix).await;
    let session = session(&store).await;
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    let (epoch, revision) = hold.token().unwrap().split().unwrap();
    assert_eq!(epoch.as_u16(), 1);
    let all = etcd_client::GetOptions::new().with_prefix();
    let found = raw().await.get(prefix.clone(), Some(all)).await.unwrap();
    let held = found
        .kvs()
        .iter()
        .find(|kv| kv.key().ends_with(b"/held"))
        .unwrap();
    assert_eq!(held.create_revision(), i64::try_from(revision.as_u64()).unwrap());
    assert_eq!(format!("{:016x}", held.lease()), session.id().as_str());
    assert_eq!(
        store
            .holder(&class(), &key("acct-1"))
            .await
            .unwrap()
            .unwrap()
            .grant_id,
        *hold.grant_id()
    );
    assert_eq!(hold.claim().unwrap().token, hold.token().unwrap());
    assert_eq!(hold.claim().unwrap().grant_id.as_ref(), Some(hold.grant_id()));
}

#[tokio::test]
async fn waiters_are_served_in_the_order_in_which_they_queued() {
    let prefix = fresh_prefix();
    let store = store_in(&prefix).await;
    let session = session(&store).await;
    let first = session.acquire(&class(), &key("acct-1")).await.unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..4 {
        let (waiter, tell) = (session.clone(), tell.clone());
        tokio::spawn(async move {
            let hold = waiter.acquire(&class(), &key("acct-1")).await.unwrap();
            tell.send(number).unwrap();
            let _ = hold.release().await.unwrap();
        });
        queued(&prefix, number + 1).await;
    }
    let _ = first.release().await.unwrap();
    for number in 0..4 {
        assert_eq!(told.recv().await, Some(number));
    }
}

#[tokio::test]
async fn nobody_passes_a_waiter_even_while_the_lock_is_free() {
    let prefix = fresh_prefix();
    let store = store_in(&prefix).await;
    let session = session(&store).await;
    // A waiter that is slow to take its turn.
    let place = format!("{prefix}/lock/paydb.account/acct-1/queue/slow");
    raw().await.put(place.clone(), "{}", None).await.unwrap();
    let early = session
        .acquire_within(&class(), &key("acct-1"), Duration::from_millis(500))
        .await;
    assert!(matches!(early, Err(AcquireError::TimedOut { .. })), "{early:?}");
    raw().await.delete(place, None).await.unwrap();
    let hold = session
        .acquire_within(&class(), &key("acct-1"), Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(hold.release().await.unwrap(), Release::Released);
}

#[tokio::test]
async fn any_number_of_keys_up_to_the_most_is_granted_and_queued_for() {
    let store = store().await;
    let (one, two) = (session(&store).await, session(&store).await);
    // On both sides of where queueing takes a transaction of its own, and at the server's limit.
    for count in [2, 41, 42, 43, EtcdStore::MOST_KEYS] {
        let keys = move || Keys::new((0..count).map(|number| key(&format!("acct-{number}")))).unwrap();
        let all = one.acquire_all(&class(), keys()).await.unwrap();
        let waiting = tokio::spawn({
            let two = two.clone();
            async move { two.acquire_all(&class(), keys()).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!waiting.is_finished(), "{count} keys were not waited for");
        assert_eq!(all.release().await.unwrap(), Release::Released, "{count} keys");
        let next = tokio::time::timeout(Duration::from_secs(20), waiting).await;
        let next = next.unwrap().unwrap().unwrap();
        assert_eq!(next.release().await.unwrap(), Release::Released, "{count} keys");
    }
}

#[tokio::test]
async fn locks_whose_names_begin_alike_do_not_wait_for_each_other() {
    let prefix = fresh_prefix();
    let store = store_in(&prefix).await;
    let session = session(&store).await;
    let pay = ClassName::new("pay").unwrap();
    let pay_eu = ClassName::new("pay.eu").unwrap();
    let mut holds = Vec::new();
    for (class, name) in [
        (&pay, "eu"),
        (&pay, "eu/held"),
        (&pay, "eu/queue/x"),
        (&pay, "e"),
        (&pay, "eu%2Fheld"),
        (&pay_eu, "eu"),
    ] {
        let hold = session
            .acquire_within(class, &key(name), Duration::from_secs(5))
            .await;
        holds.push(hold.unwrap_or_else(|error| panic!("{class} {name}: {error}")));
    }
    // A foreign key right below the lock's name is not in the way either.
    let foreign = format!("{prefix}/lock/pay/config/x");
    raw().await.put(foreign, "1", None).await.unwrap();
    holds.push(
        session
            .acquire_within(&pay, &key("config"), Duration::from_secs(5))
            .await
            .unwrap(),
    );
    assert_eq!(holds.len(), 7);
}

/// Waits until so many attempts stand in the queue.
async fn queued(prefix: &str, count: i64) {
    let mut raw = raw().await;
    let queue = format!("{prefix}/lock/paydb.account/acct-1/queue/");
    for _ in 0..2000 {
        let all = etcd_client::GetOptions::new().with_prefix().with_count_only();
        if raw.get(queue.clone(), Some(all)).await.unwrap().count() == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("the queue never had {count} places");
}
