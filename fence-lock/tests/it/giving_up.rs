//! Attempts that were given up, and grants that were lost before they could be handed out.

use std::time::Duration;

use etcd_client::{EventType, GetOptions, WatchOptions};
use fence_core::Ttl;
use fence_lock::{AcquireError, EtcdStore, FRESH_FOR, Hold, Session};
use tokio::task::JoinHandle;

use crate::proxy::{Connection, Proxy};
use crate::support::{class, endpoint, fresh_prefix, key, raw, session, store_at, store_in};

/// How many bytes are a whole transaction or its answer, and not what keeps a connection alive.
const REQUEST: usize = 350;
const ANSWER: usize = 64;

/// Long enough that no keepalive comes in between.
fn long() -> Ttl {
    Ttl::from_secs(60).unwrap()
}

/// A session whose requests, but for keepalives, go by connection 0 of a proxy, and that knows the epoch already.
async fn through(proxy: &Proxy, prefix: &str) -> Session {
    let session = Session::open(store_at(&proxy.endpoint(), prefix).await, long())
        .await
        .unwrap();
    let warm = session.acquire(&class(), &key("acct-0")).await.unwrap();
    let _ = warm.release().await.unwrap();
    session
}

/// The keys of the lock acct-1 that hold anybody else back.
async fn in_the_way(prefix: &str) -> Vec<String> {
    let keys = raw()
        .await
        .get(
            format!("{prefix}/lock/paydb.account/acct-1/"),
            Some(GetOptions::new().with_prefix()),
        )
        .await
        .unwrap();
    let names = keys.kvs().iter().map(|kv| kv.key_str().unwrap().to_owned());
    names
        .filter(|name| !name.contains("/cancel/") && !name.ends_with("/released"))
        .collect()
}

/// Waits for the next put of a key that contains `part`.
async fn put_of(prefix: &str, part: &str, from: i64) {
    let options = WatchOptions::new().with_prefix().with_start_revision(from);
    let mut watch = raw()
        .await
        .watch(format!("{prefix}/"), Some(options))
        .await
        .unwrap();
    let seen = async {
        while let Some(answer) = watch.message().await.unwrap() {
            let put = |event: &etcd_client::Event| {
                event.event_type() == EventType::Put && event.kv().unwrap().key_str().unwrap().contains(part)
            };
            if answer.events().iter().any(put) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), seen)
        .await
        .unwrap_or_else(|_| panic!("{part} was never put"));
}

async fn revision() -> i64 {
    raw()
        .await
        .get("nothing", None)
        .await
        .unwrap()
        .header()
        .unwrap()
        .revision()
}

/// An acquisition of the lock acct-1, under way.
fn acquiring(session: &Session) -> JoinHandle<Result<Hold, AcquireError>> {
    let session = session.clone();
    tokio::spawn(async move { session.acquire(&class(), &key("acct-1")).await })
}

/// Ends the connection on which a request of the acquisition lies, waits until the attempt was given up over another one, and only
/// then lets the request through.
async fn given_up_first(path: &Connection, acquiring: JoinHandle<Result<Hold, AcquireError>>, prefix: &str) {
    path.holds_requests(REQUEST).await;
    let from = revision().await;
    // It is lost to the holder, not to etcd.
    path.cut();
    let error = acquiring.await.unwrap().unwrap_err();
    assert!(matches!(error, AcquireError::Store(_)), "{error:?}");
    put_of(prefix, "/cancel/", from + 1).await;
    let before = path.answered();
    path.release_requests();
    path.has_answered(before + ANSWER).await;
}

/// Waits for the outcome of an acquisition.
async fn outcome_of(acquiring: JoinHandle<Result<Hold, AcquireError>>) -> Result<Hold, AcquireError> {
    tokio::time::timeout(Duration::from_secs(20), acquiring)
        .await
        .expect("an outcome within 20 s")
        .unwrap()
}

async fn revoke(session: &Session) {
    let lease = i64::from_str_radix(session.id().as_str(), 16).unwrap();
    raw().await.lease_revoke(lease).await.unwrap();
}

async fn takes_it_at_once(store: &EtcdStore) {
    let next = session(store).await;
    let hold = next
        .acquire_within(&class(), &key("acct-1"), Duration::from_secs(10))
        .await
        .unwrap();
    let _ = hold.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_given_up_grant_that_was_on_its_way_never_lands() {
    let prefix = fresh_prefix();
    let direct = store_in(&prefix).await;
    let proxy = Proxy::to(&endpoint().await).await;
    let session = through(&proxy, &prefix).await;
    let path = proxy.connection(0);
    path.hold_requests();
    given_up_first(&path, acquiring(&session), &prefix).await;
    assert_eq!(in_the_way(&prefix).await, Vec::<String>::new());
    takes_it_at_once(&direct).await;
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_given_up_place_that_was_on_its_way_is_never_taken() {
    let prefix = fresh_prefix();
    let direct = store_in(&prefix).await;
    let hold = session(&direct)
        .await
        .acquire(&class(), &key("acct-1"))
        .await
        .unwrap();
    let proxy = Proxy::to(&endpoint().await).await;
    let session = through(&proxy, &prefix).await;
    let path = proxy.connection(0);
    // It is told that the lock is held, and what it asks for then lies on the path: a place in the queue.
    path.hold_answers();
    let acquiring = acquiring(&session);
    path.holds_answers(ANSWER).await;
    path.hold_requests();
    path.release_answers();
    given_up_first(&path, acquiring, &prefix).await;
    let held = format!("{prefix}/lock/paydb.account/acct-1/held");
    assert_eq!(in_the_way(&prefix).await, [held]);
    let _ = hold.release().await.unwrap();
    takes_it_at_once(&direct).await;
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_lands_while_it_is_given_up_is_taken_back() {
    let prefix = fresh_prefix();
    let direct = store_in(&prefix).await;
    let proxy = Proxy::to(&endpoint().await).await;
    let session = through(&proxy, &prefix).await;
    let from = revision().await;
    let path = proxy.connection(0);
    // The grant lands; its answer does not.
    path.hold_answers();
    let outcome = session
        .acquire_within(&class(), &key("acct-1"), Duration::from_millis(300))
        .await;
    assert!(
        matches!(outcome, Err(AcquireError::TimedOut { .. })),
        "{outcome:?}"
    );
    put_of(&prefix, "/held", from + 1).await;
    path.release_answers();
    takes_it_at_once(&direct).await;
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_that_gives_up_leaves_the_queue() {
    let prefix = fresh_prefix();
    let store = store_in(&prefix).await;
    let (holder, waiter) = (session(&store).await, session(&store).await);
    let hold = holder.acquire(&class(), &key("acct-1")).await.unwrap();
    let outcome = waiter
        .acquire_within(&class(), &key("acct-1"), Duration::from_millis(300))
        .await;
    assert!(
        matches!(outcome, Err(AcquireError::TimedOut { .. })),
        "{outcome:?}"
    );
    let after = Duration::from_millis(300);
    assert_eq!(
        outcome.unwrap_err().to_string(),
        format!("the lock was not granted within {after:?}")
    );
    // Whoever comes now stands first, and the one who gave up is never granted.
    let next = acquiring(&waiter);
    let _ = hold.release().await.unwrap();
    let next = outcome_of(next).await.unwrap();
    assert_eq!(
        store
            .holder(&class(), &key("acct-1"))
            .await
            .unwrap()
            .unwrap()
            .grant_id,
        *next.grant_id()
    );
    let _ = next.release().await.unwrap();
    assert_eq!(in_the_way(&prefix).await, Vec::<String>::new());
    // Nothing was on its way when it gave up, so no cancellation is left behind either.
    let cancelled = raw()
        .await
        .get(
            format!("{prefix}/lock/paydb.account/acct-1/cancel/"),
            Some(GetOptions::new().with_prefix()),
        )
        .await
        .unwrap();
    assert_eq!(cancelled.count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_lease_ends_in_the_queue_is_handed_nothing() {
    let prefix = fresh_prefix();
    let store = store_in(&prefix).await;
    let holder = session(&store).await;
    let hold = holder.acquire(&class(), &key("acct-1")).await.unwrap();
    let waiter = Session::open(store.clone(), long()).await.unwrap();
    let from = revision().await;
    let waiting = acquiring(&waiter);
    put_of(&prefix, "/queue/", from + 1).await;
    revoke(&waiter).await;
    // The waiter does not know: its next keepalive is many seconds away.
    let _ = hold.release().await.unwrap();
    let outcome = outcome_of(waiting).await;
    assert!(matches!(outcome, Err(AcquireError::SessionOver)), "{outcome:?}");
    takes_it_at_once(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_place_goes_with_the_holder_is_handed_nothing() {
    let prefix = fresh_prefix();
    let store = store_in(&prefix).await;
    let _held = session(&store)
        .await
        .acquire(&class(), &key("acct-1"))
        .await
        .unwrap();
    let waiter = session(&store).await;
    let from = revision().await;
    let waiting = acquiring(&waiter);
    put_of(&prefix, "/queue/", from + 1).await;
    // Somebody clears the lock away, waiters and all, in one step.
    let all = etcd_client::DeleteOptions::new().with_prefix();
    let lock = format!("{prefix}/lock/paydb.account/acct-1/");
    raw().await.delete(lock, Some(all)).await.unwrap();
    let outcome = outcome_of(waiting).await;
    assert!(matches!(outcome, Err(AcquireError::SessionOver)), "{outcome:?}");
    takes_it_at_once(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_whose_lease_died_before_its_answer_came_is_not_handed_out() {
    let prefix = fresh_prefix();
    let direct = store_in(&prefix).await;
    let proxy = Proxy::to(&endpoint().await).await;
    let late = through(&proxy, &prefix).await;
    let from = revision().await;
    let path = proxy.connection(0);
    path.hold_answers();
    let acquiring = acquiring(&late);
    put_of(&prefix, "/held", from + 1).await;
    revoke(&late).await;
    let next = session(&direct).await;
    let hold = next.acquire(&class(), &key("acct-1")).await.unwrap();
    // What a quick answer says is believed.
    tokio::time::sleep(FRESH_FOR).await;
    path.release_answers();
    let outcome = outcome_of(acquiring).await;
    assert!(matches!(outcome, Err(AcquireError::NotConfirmed)), "{outcome:?}");
    // And the giving up that follows takes nothing from the one who holds now.
    late.close().await.unwrap();
    assert_eq!(
        direct
            .holder(&class(), &key("acct-1"))
            .await
            .unwrap()
            .unwrap()
            .grant_id,
        *hold.grant_id()
    );
}
