//! A holder in another language that loses its connection to the database in the middle of its work.

use std::time::Duration;

use fence_core::{ClassName, Epoch, Key, TierName, Ttl};
use fence_lock::{EtcdStore, Release, Session};
use pause_kit::gates::Gates;
use pause_kit::reaper::Ended;
use pause_kit::services::{ProcessSpec, for_tests};
use tokio_postgres::NoTls;

use crate::source::root;

/// How long anything may take that is waited for; the holder's lease lives longer.
const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_holder_in_javascript_that_loses_its_connection_gives_its_lock_back() {
    let services = for_tests().await;
    let database = services.fresh_database().await;
    let (client, connection) = tokio_postgres::connect(database.as_str(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let mut files: Vec<_> = std::fs::read_dir(root().join("fence-pg/sql"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in files {
        client
            .batch_execute(&std::fs::read_to_string(file).unwrap())
            .await
            .unwrap();
    }
    let setup = "CREATE TABLE edition (id text PRIMARY KEY, document text NOT NULL, release text NOT NULL);
        SELECT fence.declare('library.document', 'entity'); SELECT fence.register_epoch('entity', 1)";
    client.batch_execute(setup).await.unwrap();
    let (endpoint, prefix) = (services.etcd().endpoint(), services.fresh_prefix());
    let prefix = prefix.trim_matches('/').to_owned();
    let tier = TierName::new("entity").unwrap();
    let store = EtcdStore::connect(std::slice::from_ref(&endpoint), &prefix, tier)
        .await
        .unwrap();
    store.init(Epoch::FIRST, "a test").await.unwrap();
    let name = format!("gates-{}", prefix.replace('/', "-"));
    let gates = Gates::open(
        services.services().folder().join(name),
        ["after-grant", "after-read", "before-send"],
    )
    .unwrap();

    let url = database.as_str();
    let mut process = ProcessSpec::new("publish", "node")
        .args([
            "publish.js",
            &endpoint,
            &prefix,
            "60s",
            url,
            "document-1",
            "release-7",
        ])
        .env(pause_kit::gates::VARIABLE, &gates.socket().display().to_string());
    process.cwd = Some(root().join("examples/node-postgres"));
    let holder = services.services().spawn(process).await.unwrap();
    let stands_at = async |gate: &str| {
        let arrived = tokio::time::timeout(SOON, gates.arrived(gate)).await;
        arrived
            .unwrap_or_else(|_| panic!("{gate}: {}", holder.tail()))
            .unwrap()
    };
    stands_at("after-grant").await.open().await.unwrap();
    let gate = stands_at("after-read").await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    assert_eq!(client.query(end, &[]).await.unwrap().len(), 1);
    // One that has ended over it needs no gate.
    let goes_on = async {
        if gate.open().await.is_ok() {
            let _ = stands_at("before-send").await.open().await;
        }
        std::future::pending::<()>().await;
    };
    let ended = tokio::select! {
        ended = holder.exited() => ended.unwrap(),
        () = goes_on => unreachable!("it waits for the end"),
    };
    assert_eq!(ended, Ended::Code(1), "{}", holder.tail());

    let session = Session::open(store, Ttl::new(Duration::from_secs(10)).unwrap())
        .await
        .unwrap();
    let (class, key) = (
        ClassName::new("library.document").unwrap(),
        Key::text("document-1").unwrap(),
    );
    let next = tokio::time::timeout(Duration::from_secs(10), session.acquire(&class, &key)).await;
    let next = next.unwrap_or_else(|_| panic!("the lock is still held: {}", holder.tail()));
    assert_eq!(next.unwrap().release().await.unwrap(), Release::Released);
}
