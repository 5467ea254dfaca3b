//! The epoch record: made once, on purpose, and compared by every grant.

use std::time::Duration;

use fence_core::{Epoch, TierName};
use fence_lock::{AcquireError, EtcdStore, GrantEvent, InitError, SealReason, Session};

use crate::proxy::Proxy;
use crate::support::{
    bare_store, class, endpoint, fresh_prefix, key, raw, services, session, store, store_at, ttl,
};

#[tokio::test]
async fn a_store_that_was_not_initialised_grants_nothing_and_names_the_command() {
    let store = bare_store().await;
    let session = session(&store).await;
    let error = session.acquire(&class(), &key("acct-1")).await.unwrap_err();
    assert!(matches!(error, AcquireError::NotInitialised { .. }), "{error:?}");
    assert!(error.to_string().contains("`fence epoch init`"), "{error}");
    assert_eq!(store.holder(&class(), &key("acct-1")).await.unwrap(), None);
}

#[tokio::test]
async fn of_many_concurrent_and_interrupted_inits_one_writes_the_epoch() {
    let (endpoint, prefix) = (endpoint().await, fresh_prefix());
    let mut tries = Vec::new();
    for number in 1..=40_u16 {
        let store = store_at(&endpoint, &prefix).await;
        tries.push(tokio::spawn(async move {
            // Every other one is interrupted after so long, whatever it has done by then.
            let patience = if number % 2 == 0 {
                Duration::from_secs(30)
            } else {
                Duration::from_micros(500) * number.into()
            };
            let init = store.init(Epoch::new(number).unwrap(), "a race");
            tokio::time::timeout(patience, init).await.ok()
        }));
    }
    let mut seen = Vec::new();
    for attempt in tries {
        match attempt.await.unwrap() {
            Some(Ok(record)) => seen.push(record),
            Some(Err(InitError::Exists { found })) => seen.push(found),
            Some(Err(error)) => panic!("{error:?}"),
            None => {}
        }
    }
    let in_force = store_at(&endpoint, &prefix).await.epoch().await.unwrap().unwrap();
    assert!(seen.len() >= 20, "those with patience had an answer");
    assert!(seen.iter().all(|record| *record == in_force), "{seen:?}");
    let kv = raw().await.get(format!("{prefix}/epoch"), None).await.unwrap();
    assert_eq!(kv.kvs()[0].version(), 1, "the record was written once");
}

#[tokio::test]
async fn a_second_init_changes_nothing() {
    let store = store().await;
    let error = store.init(Epoch::new(7).unwrap(), "again").await.unwrap_err();
    assert!(
        matches!(error, InitError::Exists { ref found } if found.epoch == Epoch::FIRST),
        "{error:?}"
    );
    assert_eq!(store.epoch().await.unwrap().unwrap().reason, "a test");
    assert!(matches!(
        bare_store().await.init(Epoch::FIRST, "").await,
        Err(InitError::Reason { characters: 0 })
    ));
}

#[tokio::test]
async fn a_record_of_another_cluster_seals_the_store() {
    let (endpoint, prefix) = (endpoint().await, fresh_prefix());
    let record = r#"{"epoch":3,"cluster_id":"00000000000000aa","tier":"entity","reason":"elsewhere"}"#;
    raw()
        .await
        .put(format!("{prefix}/epoch"), record, None)
        .await
        .unwrap();
    let store = store_at(&endpoint, &prefix).await;
    let error = session(&store)
        .await
        .acquire(&class(), &key("acct-1"))
        .await
        .unwrap_err();
    let AcquireError::Sealed(SealReason::OtherCluster { recorded, found }) = error else {
        panic!("{error:?}")
    };
    assert_eq!(recorded, "00000000000000aa");
    assert_ne!(found, recorded);
    assert_eq!(store.holder(&class(), &key("acct-1")).await.unwrap(), None);
}

#[tokio::test]
async fn a_record_of_another_tier_seals_the_store() {
    let (endpoint, prefix) = (endpoint().await, fresh_prefix());
    store_at(&endpoint, &prefix)
        .await
        .init(Epoch::FIRST, "a test")
        .await
        .unwrap();
    let coord = TierName::new("coord").unwrap();
    let other = EtcdStore::connect(&[&endpoint], &prefix, coord).await.unwrap();
    let error = session(&other)
        .await
        .acquire(&class(), &key("acct-1"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, AcquireError::Sealed(SealReason::OtherTier { .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_grant_after_the_epoch_moved_is_minted_in_the_new_one() {
    let (endpoint, prefix) = (endpoint().await, fresh_prefix());
    let store = store_at(&endpoint, &prefix).await;
    let mut record = store.init(Epoch::FIRST, "a test").await.unwrap();
    let session = Session::open(store.clone(), ttl()).await.unwrap();
    let first = session.acquire(&class(), &key("acct-1")).await.unwrap();
    assert_eq!(first.token().unwrap().split().unwrap().0, Epoch::FIRST);
    let _ = first.release().await.unwrap();
    let mut watch = store.watch_grants().await.unwrap();

    // This store remembers the old record.
    record.epoch = Epoch::new(2).unwrap();
    let moved = serde_json::to_vec(&record).unwrap();
    raw()
        .await
        .put(format!("{prefix}/epoch"), moved, None)
        .await
        .unwrap();
    let second = session.acquire(&class(), &key("acct-1")).await.unwrap();
    assert_eq!(second.token().unwrap().split().unwrap().0, Epoch::new(2).unwrap());

    // Whoever watches sees the same token.
    let event = tokio::time::timeout(Duration::from_secs(20), watch.next())
        .await
        .unwrap()
        .unwrap();
    let GrantEvent::Granted { token, .. } = event else {
        panic!("{event:?}")
    };
    assert_eq!(Ok(token), second.token());

    // A record that vanished is not taken for a new store.
    raw().await.delete(format!("{prefix}/epoch"), None).await.unwrap();
    let error = session.acquire(&class(), &key("acct-2")).await.unwrap_err();
    assert!(matches!(error, AcquireError::NotInitialised { .. }), "{error:?}");
}

#[tokio::test]
async fn a_store_that_went_back_mints_nothing_until_its_epoch_is_higher() {
    let prefix = fresh_prefix();
    let newer = endpoint().await;
    let older = services().await;
    let older = older.etcd("lock").unwrap().endpoint();
    let mut behind = etcd_client::Client::connect([&older], None).await.unwrap();

    let mut ahead = raw().await;
    for number in 0..50 {
        ahead
            .put(format!("{prefix}-history"), number.to_string(), None)
            .await
            .unwrap();
    }
    let proxy = Proxy::to(&newer).await;
    let store = store_at(&proxy.endpoint(), &prefix).await;
    store.init(Epoch::FIRST, "a test").await.unwrap();
    let hold = session(&store)
        .await
        .acquire(&class(), &key("acct-1"))
        .await
        .unwrap();
    let seen = i64::try_from(hold.token().unwrap().split().unwrap().1.as_u64()).unwrap();
    let mut record = store_at(&older, &prefix)
        .await
        .init(Epoch::FIRST, "put back")
        .await
        .unwrap();
    let revision = behind
        .get("any", None)
        .await
        .unwrap()
        .header()
        .unwrap()
        .revision();
    assert!(
        revision < seen,
        "the older store must be the one with the lower revision"
    );

    // The same address now leads to a store that answers from an older history.
    proxy.route_to(&older);
    proxy.cut();
    until_it_answers(&store).await;
    let session = session(&store).await;
    let error = session.acquire(&class(), &key("acct-1")).await.unwrap_err();
    assert!(
        matches!(error, AcquireError::Sealed(SealReason::Stranger { .. })),
        "{error:?}"
    );
    // That store is as it was, and what it may have granted is taken back.
    let direct = store_at(&older, &prefix).await;
    let other = crate::support::session(&direct).await;
    let free = other
        .acquire_within(&class(), &key("acct-1"), Duration::from_secs(5))
        .await
        .unwrap();
    let _ = free.release().await.unwrap();

    record.epoch = Epoch::new(2).unwrap();
    behind
        .put(
            format!("{prefix}/epoch"),
            serde_json::to_vec(&record).unwrap(),
            None,
        )
        .await
        .unwrap();
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    assert_eq!(hold.token().unwrap().split().unwrap().0, record.epoch);
}

#[tokio::test]
async fn a_cluster_that_an_address_led_to_by_mistake_is_sealed_no_more_than_the_one_it_leads_back_to() {
    let prefix = fresh_prefix();
    let (ours, other) = (services().await, endpoint().await);
    let ours = ours.etcd("lock").unwrap();
    // The other one is far ahead.
    let mut ahead = raw().await;
    for number in 0..50 {
        let key = format!("{prefix}-history");
        ahead.put(key, number.to_string(), None).await.unwrap();
    }
    let direct = store_at(&other, &prefix).await;
    direct.init(Epoch::FIRST, "the other").await.unwrap();
    let proxy = Proxy::to(&ours.endpoint()).await;
    let store = store_at(&proxy.endpoint(), &prefix).await;
    store.init(Epoch::FIRST, "ours").await.unwrap();
    let lock = key("acct-1");
    let _ = session(&store)
        .await
        .acquire(&class(), &lock)
        .await
        .unwrap()
        .release()
        .await
        .unwrap();

    proxy.route_to(&other);
    proxy.cut();
    until_it_answers(&store).await;
    let astray = session(&store).await;
    for _ in 0..3 {
        let error = astray.acquire(&class(), &lock).await.unwrap_err();
        assert!(
            matches!(error, AcquireError::Sealed(SealReason::Stranger { .. })),
            "{error:?}"
        );
    }
    let other = session(&direct).await.acquire(&class(), &lock).await.unwrap();
    let _ = other.release().await.unwrap();

    proxy.route_to(&ours.endpoint());
    proxy.cut();
    until_it_answers(&store).await;
    let _ = session(&store).await.acquire(&class(), &lock).await.unwrap();
}

/// The first requests meet the connection that was cut.
async fn until_it_answers(store: &EtcdStore) {
    for _ in 0..100 {
        if store.epoch().await.is_ok() {
            return;
        }
    }
    panic!("the store does not answer");
}
