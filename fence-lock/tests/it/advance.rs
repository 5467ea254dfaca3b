//! Advances of the epoch: one number for each, whatever interrupts it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use fence_core::{ClassName, Epoch, Key, TierName, Token};
use fence_lock::{AcquireError, Advance, AdvanceError, EtcdStore, Witness};

use crate::support::{bare_store, class, endpoint, fresh_prefix, key, raw, session, store, store_at, tier};
use crate::witness::Notebook;

fn epoch(number: u16) -> Epoch {
    Epoch::new(number).unwrap()
}

/// The epoch of a grant, and its token.
async fn granted(store: &EtcdStore, name: &str) -> (Epoch, Token) {
    let session = session(store).await;
    let hold = session.acquire(&class(), &key(name)).await.unwrap();
    let token = hold.token().unwrap();
    let _ = hold.release().await.unwrap();
    (token.split().unwrap().0, token)
}

#[tokio::test]
async fn an_advance_takes_one_above_the_highest_that_the_record_or_a_witness_knows() {
    let (one, other) = (Notebook::default(), Notebook::default());
    let coord = TierName::new("coord").unwrap();
    let _ = one.register(&tier(), Epoch::FIRST).await.unwrap();
    let _ = other.register(&coord, epoch(6)).await.unwrap();
    let store = store().await;
    let advanced = store
        .advance(&Advance::new("a test"), &[&one, &other])
        .await
        .unwrap();
    assert_eq!((advanced.record.epoch, advanced.joined), (epoch(7), false));
    assert_eq!((one.epochs(), other.epochs()), (vec![1, 7], vec![6, 7]));
    assert_eq!(granted(&store, "acct-1").await.0, epoch(7));

    let higher = Advance::new("a test").at_least(epoch(20));
    let advanced = store.advance(&higher, &[&one]).await.unwrap();
    assert_eq!(advanced.record.epoch, epoch(20));
}

#[tokio::test]
async fn without_a_witness_an_advance_needs_a_number_and_a_reason_always() {
    let store = store().await;
    let error = store.advance(&Advance::new("a test"), &[]).await.unwrap_err();
    assert!(matches!(error, AdvanceError::NoWitness), "{error:?}");
    let error = store
        .advance(&Advance::new("").at_least(epoch(2)), &[])
        .await
        .unwrap_err();
    assert!(
        matches!(error, AdvanceError::Reason { characters: 0 }),
        "{error:?}"
    );
    let advanced = store
        .advance(&Advance::new("a test").at_least(epoch(2)), &[])
        .await;
    assert_eq!(advanced.unwrap().record.epoch, epoch(2));
    // A number that is not above the record's is made so.
    let advanced = store
        .advance(&Advance::new("a test").at_least(epoch(2)), &[])
        .await;
    assert_eq!(advanced.unwrap().record.epoch, epoch(3));
}

#[tokio::test]
async fn a_store_that_lost_its_record_is_opened_by_an_advance_above_every_witness() {
    let witness = Notebook::default();
    let _ = witness.register(&tier(), epoch(4)).await.unwrap();
    let store = bare_store().await;
    let advanced = store
        .advance(&Advance::new("its record is gone"), &[&witness])
        .await;
    assert_eq!(advanced.unwrap().record.epoch, epoch(5));
    assert_eq!(granted(&store, "acct-1").await.0, epoch(5));
}

#[tokio::test]
async fn the_last_epoch_is_never_followed_by_another() {
    let store = store().await;
    let last = Advance::new("a test").at_least(epoch(32767));
    assert_eq!(
        store.advance(&last, &[]).await.unwrap().record.epoch,
        epoch(32767)
    );
    let error = store.advance(&last, &[]).await.unwrap_err();
    assert!(matches!(error, AdvanceError::Exhausted(_)), "{error:?}");
    assert_eq!(store.epoch().await.unwrap().unwrap().epoch, epoch(32767));
}

#[tokio::test]
async fn an_advance_that_was_interrupted_a_hundred_times_uses_one_epoch() {
    let (endpoint, prefix) = (endpoint().await, fresh_prefix());
    let witness = Notebook::default();
    let first = store_at(&endpoint, &prefix).await;
    first.init(Epoch::FIRST, "a test").await.unwrap();
    let _ = witness.register(&tier(), Epoch::FIRST).await.unwrap();
    // Half of them fail once the witness has written it down, half before, …
    witness.failures.store(60, Ordering::SeqCst);
    for _ in 0..60 {
        let store = store_at(&endpoint, &prefix).await;
        let error = store
            .advance(&Advance::new("a test"), &[&witness])
            .await
            .unwrap_err();
        assert!(matches!(error, AdvanceError::Witness(_)), "{error:?}");
        assert_eq!(first.epoch().await.unwrap().unwrap().epoch, Epoch::FIRST);
    }
    // … and the rest are given up after so long, wherever they are by then, until one has put its epoch in force.
    for number in 0..40_u32 {
        let store = store_at(&endpoint, &prefix).await;
        let advance = Advance::new("a test");
        let witnesses: [&dyn Witness; 1] = [&witness];
        let advancing = store.advance(&advance, &witnesses);
        let _ = tokio::time::timeout(Duration::from_micros(100) * number, advancing).await;
        if first.epoch().await.unwrap().unwrap().epoch != Epoch::FIRST {
            break;
        }
    }
    if first.epoch().await.unwrap().unwrap().epoch == Epoch::FIRST {
        first.advance(&Advance::new("a test"), &[&witness]).await.unwrap();
    }
    assert_eq!(witness.epochs(), [1, 2]);
    assert_eq!(granted(&first, "acct-1").await.0, epoch(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn advances_and_grants_at_one_time_never_lower_a_token() {
    let (endpoint, prefix) = (endpoint().await, fresh_prefix());
    let witness = std::sync::Arc::new(Notebook::default());
    let store = store_at(&endpoint, &prefix).await;
    store.init(Epoch::FIRST, "a test").await.unwrap();
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let grants = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let granting = {
        let (store, done) = (store.clone(), std::sync::Arc::clone(&done));
        let grants = std::sync::Arc::clone(&grants);
        tokio::spawn(async move {
            let session = session(&store).await;
            let mut tokens: Vec<Token> = Vec::new();
            while !done.load(Ordering::SeqCst) {
                let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
                tokens.push(hold.token().unwrap());
                let _ = hold.release().await.unwrap();
                grants.fetch_add(1, Ordering::SeqCst);
            }
            tokens
        })
    };
    let mut advancing = Vec::new();
    for _ in 0..4 {
        let store = store_at(&endpoint, &prefix).await;
        let witness = std::sync::Arc::clone(&witness);
        let grants = std::sync::Arc::clone(&grants);
        advancing.push(tokio::spawn(async move {
            let mut epochs = Vec::new();
            for _ in 0..5 {
                // Between any two of one's own there is a grant.
                let before = grants.load(Ordering::SeqCst);
                while grants.load(Ordering::SeqCst) == before {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                let witness: &dyn Witness = &*witness;
                let advanced = store.advance(&Advance::new("a race"), &[witness]).await.unwrap();
                epochs.push((advanced.record.epoch, advanced.joined));
            }
            epochs
        }));
    }
    let mut begun = Vec::new();
    for task in advancing {
        let epochs = task.await.unwrap();
        assert!(epochs.is_sorted(), "{epochs:?}");
        begun.extend(epochs.into_iter().filter(|(_, joined)| !joined));
    }
    done.store(true, Ordering::SeqCst);
    let tokens = granting.await.unwrap();
    let numbers: Vec<i64> = tokens.iter().map(|token| token.as_i64()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "tokens rise");
    assert!(numbers.len() >= 5, "{} grants", numbers.len());
    // Each epoch was begun once, and none was left out.
    begun.sort();
    let numbers: Vec<u16> = begun.iter().map(|(epoch, _)| epoch.as_u16()).collect();
    let expected: Vec<u16> = (2..).take(numbers.len()).collect();
    assert_eq!(numbers, expected);
    let in_force = store.epoch().await.unwrap().unwrap().epoch;
    assert_eq!(Some(&in_force.as_u16()), numbers.last());
}

#[tokio::test]
async fn a_class_that_is_not_placed_is_refused_by_the_grant_and_an_advance_moves_it() {
    let endpoint = endpoint().await;
    let (entity, coord) = (store_at(&endpoint, &fresh_prefix()).await, {
        let coord = TierName::new("coord").unwrap();
        EtcdStore::connect(&[&endpoint], &fresh_prefix(), coord)
            .await
            .unwrap()
    });
    let witness = Notebook::default();
    let other = ClassName::new("paydb.settlement").unwrap();
    entity
        .init_with(Epoch::FIRST, "a test", &[class()])
        .await
        .unwrap();
    coord
        .init_with(epoch(2), "a test", std::slice::from_ref(&other))
        .await
        .unwrap();
    for (tier, epoch) in [(entity.tier(), Epoch::FIRST), (coord.tier(), epoch(2))] {
        let _ = witness.register(tier, epoch).await.unwrap();
    }
    assert_eq!(granted(&entity, "acct-1").await.0, Epoch::FIRST);

    // Moved in the configuration alone.
    let sessions = (session(&entity).await, session(&coord).await);
    let lock: Key = key("acct-1");
    let error = sessions.1.acquire(&class(), &lock).await.unwrap_err();
    assert!(matches!(error, AcquireError::Unplaced { .. }), "{error:?}");
    assert!(
        error.to_string().contains("fence epoch advance --tier coord"),
        "{error}"
    );

    let advance = Advance::new("it moves").place([class()]);
    let advanced = coord.advance(&advance, &[&witness]).await.unwrap();
    assert_eq!(advanced.record.epoch, epoch(3));
    let moved = sessions.1.acquire(&class(), &lock).await.unwrap();
    assert_eq!(moved.token().unwrap().split().unwrap().0, epoch(3));
    let advance = Advance::new("it moved").remove([class()]);
    entity.advance(&advance, &[&witness]).await.unwrap();
    let error = sessions.0.acquire(&class(), &lock).await.unwrap_err();
    assert!(matches!(error, AcquireError::Unplaced { .. }), "{error:?}");
    // What was placed before stays.
    let _ = sessions.1.acquire(&other, &lock).await.unwrap();
}

#[tokio::test]
async fn a_class_that_is_taken_out_while_an_attempt_waits_is_refused_to_it() {
    let (endpoint, prefix) = (endpoint().await, fresh_prefix());
    let store = store_at(&endpoint, &prefix).await;
    store.init_with(Epoch::FIRST, "a test", &[class()]).await.unwrap();
    let sessions = (session(&store).await, session(&store).await);
    let hold = sessions.0.acquire(&class(), &key("acct-1")).await.unwrap();
    let waiting = tokio::spawn(async move { sessions.1.acquire(&class(), &key("acct-1")).await });
    let queue = format!("{prefix}/lock/paydb.account/acct-1/queue/");
    loop {
        let all = etcd_client::GetOptions::new().with_prefix().with_count_only();
        if raw().await.get(queue.clone(), Some(all)).await.unwrap().count() == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let advance = Advance::new("it moved").remove([class()]).at_least(epoch(2));
    store.advance(&advance, &[]).await.unwrap();
    let _ = hold.release().await.unwrap();
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, AcquireError::Unplaced { .. }), "{error:?}");
}
