//! How holds and sessions end, and what the revision stream tells of it.

use std::time::Duration;

use fence_core::GrantId;
use fence_lock::{
    AcquireError, Attempt, GrantEvent, GrantWatch, LockStore, NotHeld, OpenError, Release, Revoked, Session,
};

use crate::clock::now;
use crate::support::{ShortLived, class, fresh_prefix, key, raw, session, session_of, store, store_in, ttl};

async fn next(watch: &mut GrantWatch) -> GrantEvent {
    tokio::time::timeout(Duration::from_secs(20), watch.next())
        .await
        .expect("an event within 20 s")
        .unwrap()
}

#[tokio::test]
async fn a_late_release_frees_only_its_own_grant() {
    let store = store().await;
    let session = session(&store).await;
    let attempt = |id: &str| {
        Attempt::new(
            session.id().clone(),
            class(),
            key("acct-1"),
            GrantId::new(id).unwrap(),
        )
    };
    let (first, second) = (attempt("first"), attempt("second"));
    let minted = store.acquire(&first).await.unwrap();
    assert_eq!(store.release(&first, minted).await.unwrap(), Release::Released);
    let again = store.acquire(&second).await.unwrap();
    assert_ne!(minted, again);

    // The first release once more, as a retry of a lost answer would send it.
    assert_eq!(store.release(&first, minted).await.unwrap(), Release::NotHeld);
    // Neither the token alone nor the grant id alone is enough.
    assert_eq!(store.release(&first, again).await.unwrap(), Release::NotHeld);
    assert_eq!(store.release(&second, minted).await.unwrap(), Release::NotHeld);
    let holder = store.holder(&class(), &key("acct-1")).await.unwrap().unwrap();
    assert_eq!(holder.grant_id.as_str(), "second");
    assert_eq!(store.release(&second, again).await.unwrap(), Release::Released);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_hold_stays_locked_for_one_full_ttl_and_is_counted() {
    let store = store().await;
    let (dropping, waiting) = (session_of(&store, ttl()).await, session(&store).await);
    let kept = dropping.acquire(&class(), &key("acct-2")).await.unwrap();
    let hold = dropping.acquire(&class(), &key("acct-1")).await.unwrap();
    let over = hold.lost();
    drop(hold);
    let dropped_at = now();
    assert_eq!(dropping.dropped_holds(), 1);
    over.await;
    let next = waiting
        .acquire_within(&class(), &key("acct-1"), Duration::from_secs(20))
        .await
        .unwrap();
    let waited = dropped_at.until(now());
    assert!(waited >= ttl().as_duration(), "it was free after {waited:?}");
    assert!(
        waited < ttl().as_duration() * 3,
        "it was free after {waited:?} only"
    );
    assert!(kept.token().is_ok() && next.token().is_ok());
    assert_eq!(dropping.dropped_holds(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_a_session_fences_its_holds_and_releases_each_before_the_lease_ends() {
    let store = store().await;
    let session = session(&store).await;
    let mut watch = store.watch_grants().await.unwrap();
    let one = session.acquire(&class(), &key("acct-1")).await.unwrap();
    let two = session.acquire(&class(), &key("acct-2")).await.unwrap();
    session.close().await.unwrap();
    assert_eq!(one.token(), Err(NotHeld::Fenced));
    assert_eq!(two.token(), Err(NotHeld::Fenced));
    session.lost().await;
    let error = session.acquire(&class(), &key("acct-3")).await.unwrap_err();
    assert!(matches!(error, AcquireError::SessionOver), "{error:?}");
    assert!(matches!(next(&mut watch).await, GrantEvent::Granted { .. }));
    assert!(matches!(next(&mut watch).await, GrantEvent::Granted { .. }));
    let ends = [next(&mut watch).await, next(&mut watch).await];
    for hold in [&one, &two] {
        let released = |event: &GrantEvent| matches!(event, GrantEvent::Released { grant_id, .. } if grant_id == hold.grant_id());
        assert!(ends.iter().any(released), "{ends:?}");
    }
    let lease = i64::from_str_radix(session.id().as_str(), 16).unwrap();
    assert_eq!(
        raw().await.lease_time_to_live(lease, None).await.unwrap().ttl(),
        -1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_tells_grants_releases_and_losses_apart() {
    let store = store().await;
    let (releasing, losing) = (session(&store).await, session(&store).await);
    let mut watch = store.watch_grants().await.unwrap();

    let hold = releasing.acquire(&class(), &key("acct-1")).await.unwrap();
    let (token, first) = (hold.token().unwrap(), hold.grant_id().clone());
    let granted = next(&mut watch).await;
    let revision = token.split().unwrap().1;
    assert_eq!(
        granted,
        GrantEvent::Granted {
            class: class(),
            key: key("acct-1"),
            token,
            grant_id: first.clone(),
            session: releasing.id().clone(),
            at: revision,
        }
    );
    let _ = hold.release().await.unwrap();
    let GrantEvent::Released { grant_id, at, .. } = next(&mut watch).await else {
        panic!("no release")
    };
    assert_eq!(grant_id, first);
    assert!(at > revision);

    let hold = losing.acquire(&class(), &key("acct-1")).await.unwrap();
    assert!(matches!(next(&mut watch).await, GrantEvent::Granted { .. }));
    let left = store
        .lease_ttl_remaining(&class(), &key("acct-1"), hold.grant_id())
        .await
        .unwrap();
    assert!(
        left.is_some_and(|left| left <= losing.ttl().as_duration()),
        "{left:?}"
    );
    let stranger = store
        .revoke_grant(&class(), &key("acct-1"), &first)
        .await
        .unwrap();
    assert_eq!(stranger, Revoked::NotHolder);
    assert!(hold.token().is_ok());
    let revoked = store
        .revoke_grant(&class(), &key("acct-1"), hold.grant_id())
        .await
        .unwrap();
    assert_eq!(revoked, Revoked::Revoked);
    let GrantEvent::Gone { grant_id, .. } = next(&mut watch).await else {
        panic!("no loss")
    };
    assert_eq!(grant_id, *hold.grant_id());
    assert_eq!(
        store
            .lease_ttl_remaining(&class(), &key("acct-1"), hold.grant_id())
            .await
            .unwrap(),
        None
    );
    // The holder's own release comes too late, and says so.
    assert_eq!(hold.release().await.unwrap(), Release::NotHeld);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_dropped_lapses_and_is_told_as_a_loss() {
    let store = store().await;
    let mut watch = store.watch_grants().await.unwrap();
    let session = session_of(&store, ttl()).await;
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    // A hold alone keeps its session alive.
    drop(session);
    assert!(hold.token().is_ok());
    let (grant_id, over) = (hold.grant_id().clone(), hold.lost());
    drop(hold);
    over.await;
    assert!(matches!(next(&mut watch).await, GrantEvent::Granted { .. }));
    let GrantEvent::Gone { grant_id: gone, .. } = next(&mut watch).await else {
        panic!("no loss")
    };
    assert_eq!(gone, grant_id);
}

#[tokio::test]
async fn a_lease_shorter_than_asked_for_is_given_back() {
    let store = store().await;
    let short = ShortLived(store);
    let error = Session::open(short, fence_core::Ttl::default())
        .await
        .unwrap_err();
    let OpenError::ShortTtl { asked, granted } = error else {
        panic!("{error:?}")
    };
    assert_eq!(
        (asked, granted),
        (fence_core::Ttl::default(), ttl().as_duration())
    );
}

#[tokio::test]
async fn a_grant_at_the_key_of_another_lock_excludes_nobody_and_is_not_told_as_one() {
    let prefix = fresh_prefix();
    let store = store_in(&prefix).await;
    let session = session(&store).await;
    let _hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    let right = format!("{prefix}/lock/{}/acct-1/held", class());
    let record = raw().await.get(right.as_str(), None).await.unwrap();
    let record = record.kvs()[0].value().to_vec();

    let mut watch = store.watch_grants().await.unwrap();
    let wrong = format!("{prefix}/lock/{}/acct-1x/held", class());
    raw().await.put(wrong.as_str(), record, None).await.unwrap();
    let told = tokio::time::timeout(Duration::from_secs(20), watch.next()).await;
    let error = told.expect("an event within 20 s").unwrap_err();
    let chain = format!("{error:?}");
    assert!(chain.contains(&wrong) && chain.contains(&right), "{chain}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_grant_is_called_held_is_a_waiter() {
    let prefix = fresh_prefix();
    let store = store_in(&prefix).await;
    let session = session(&store).await;
    let mut watch = store.watch_grants().await.unwrap();
    // A client in another language may call its attempts what it likes.
    let record = format!(
        r#"{{"class":"{}","key":"acct-1","grant_id":"held","session":"{}"}}"#,
        class(),
        session.id()
    );
    let place = format!("{prefix}/lock/{}/acct-1/queue/held", class());
    raw().await.put(place.as_str(), record, None).await.unwrap();
    let locks = store.locks().await.unwrap();
    assert_eq!((locks.len(), &locks[0].held), (1, &None), "{locks:?}");
    assert_eq!(locks[0].waiting[0].grant_id.as_str(), "held");

    raw().await.delete(place.as_str(), None).await.unwrap();
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    // Neither its coming nor its going was told as a grant's.
    let GrantEvent::Granted { grant_id, .. } = next(&mut watch).await else {
        panic!("no grant")
    };
    assert_eq!(grant_id, *hold.grant_id());
}
