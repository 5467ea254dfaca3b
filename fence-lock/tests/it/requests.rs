//! What a lock costs etcd, by its own count.

use std::time::Duration;

use fence_core::{Epoch, Ttl};
use fence_lock::{EtcdStore, Release, Session};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{class, fresh_prefix, key, services, session_of, store_at};

/// What a server counts under a name, over the lines that hold a label.
async fn counted(endpoint: &str, name: &str, label: &str) -> u64 {
    let address = endpoint.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let ask = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text.lines()
        .filter(|line| line.starts_with(name) && line.contains(label))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum()
}

/// How many requests for keys a server has answered, alone or in transactions.
async fn answered(endpoint: &str) -> u64 {
    counted(
        endpoint,
        "grpc_server_handled_total",
        "grpc_service=\"etcdserverpb.KV\"",
    )
    .await
}

/// A session that sends nothing by itself for the time of a test.
async fn quiet(store: &EtcdStore) -> Session {
    session_of(store, Ttl::from_secs(60).unwrap()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_is_free_costs_one_transaction_and_its_release_another() {
    const LOCKS: u64 = 20;
    let services = services().await;
    let endpoint = services.etcd("lock").unwrap().endpoint();
    let store = store_at(&endpoint, &fresh_prefix()).await;
    store.init(Epoch::FIRST, "a test").await.unwrap();
    let session = quiet(&store).await;
    // The first one looks at the store.
    let _ = session
        .acquire(&class(), &key("acct-0"))
        .await
        .unwrap()
        .release()
        .await
        .unwrap();

    let before = answered(&endpoint).await;
    for number in 0..LOCKS {
        let hold = session
            .acquire(&class(), &key(&format!("acct-{number}")))
            .await
            .unwrap();
        let _ = hold.release().await.unwrap();
    }
    let cost = answered(&endpoint).await - before;
    // An answer that a busy machine kept back is followed by one look.
    assert!(
        (2 * LOCKS..3 * LOCKS).contains(&cost),
        "{LOCKS} locks cost {cost} requests"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hand_over_costs_the_release_and_one_transaction_of_the_waiter() {
    const HAND_OVERS: u64 = 10;
    let services = services().await;
    let endpoint = services.etcd("lock").unwrap().endpoint();
    let store = store_at(&endpoint, &fresh_prefix()).await;
    store.init(Epoch::FIRST, "a test").await.unwrap();
    let (holder, waiter) = (quiet(&store).await, quiet(&store).await);
    let mut cost = 0;
    for _ in 0..HAND_OVERS {
        let hold = holder.acquire(&class(), &key("acct-1")).await.unwrap();
        let waiter = waiter.clone();
        let waiting = tokio::spawn(async move { waiter.acquire(&class(), &key("acct-1")).await.unwrap() });
        // It watches the holder and its own place.
        until_watched(&endpoint, 2).await;

        let before = answered(&endpoint).await;
        let _ = hold.release().await.unwrap();
        let held = waiting.await.unwrap();
        cost += answered(&endpoint).await - before;
        let _ = held.release().await.unwrap();
        until_watched(&endpoint, 0).await;
    }
    // As above.
    assert!(
        (2 * HAND_OVERS..3 * HAND_OVERS).contains(&cost),
        "{HAND_OVERS} hand-overs cost {cost} requests"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_to_a_lock_that_its_process_waits_for_takes_a_place_at_once() {
    let services = services().await;
    let endpoint = services.etcd("lock").unwrap().endpoint();
    let store = store_at(&endpoint, &fresh_prefix()).await;
    store.init(Epoch::FIRST, "a test").await.unwrap();
    let session = quiet(&store).await;
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    let mut waiting = Vec::new();
    let mut costs = Vec::new();
    for watchers in [2, 4, 6] {
        let before = answered(&endpoint).await;
        let session = session.clone();
        waiting.push(tokio::spawn(async move {
            let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
            hold.release().await.unwrap()
        }));
        until_watched(&endpoint, watchers).await;
        costs.push(answered(&endpoint).await - before);
    }
    // The first asks for the lock, takes a place, and looks who is ahead.
    assert_eq!(costs, [3, 2, 2]);
    let _ = hold.release().await.unwrap();
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap(), Release::Released);
    }
    // Nobody waits any more, so that the lock is asked for again, and no place is taken. (With a look, as above.)
    let before = answered(&endpoint).await;
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    let cost = answered(&endpoint).await - before;
    assert!((1..=2).contains(&cost), "it cost {cost} requests");
    let _ = hold.release().await.unwrap();
}

/// Waits until there are so many watchers at a server.
async fn until_watched(endpoint: &str, watchers: u64) {
    let watched = async {
        while counted(endpoint, "etcd_debugging_mvcc_watcher_total", "").await != watchers {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), watched)
        .await
        .unwrap_or_else(|_| panic!("there are never {watchers} watchers"));
}
