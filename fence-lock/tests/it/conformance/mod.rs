//! The suite on every store, and on stores that are wrong on purpose.

mod etcd;
mod memory;
mod postgres;
mod wire;
mod wrong;

use fence_lock::conformance::{Bench, MemoryBench, cases, run};

use crate::support::etcd_version;

/// Plays the suite on a store and says so, or fails with its report.
async fn conforms(store: &str, bench: &dyn Bench) {
    let report = run(bench).await;
    assert!(report.conforms(), "{store}\n{report}");
    assert_eq!(report.outcomes().len(), cases().len());
    println!("{store}: {} cases held", report.outcomes().len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_in_memory_conforms() {
    conforms("memory", &MemoryBench::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_on_etcd_conforms() {
    let store = format!("etcd {}", etcd_version().await);
    conforms(&store, &etcd::EtcdBench::Shared).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_on_etcd_conforms_under_tls_with_a_user() {
    let store = format!("etcd {}, under TLS with a user", etcd_version().await);
    conforms(&store, &etcd::EtcdBench::secure().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_on_postgresql_conforms() {
    let store = format!("PostgreSQL {}, woken", crate::support::postgres().await.version());
    conforms(
        &store,
        &postgres::PostgresBench {
            poll: None,
            pooler: None,
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_on_postgresql_conforms_when_it_polls() {
    let poll = Some(std::time::Duration::from_millis(100));
    let store = format!(
        "PostgreSQL {}, polling",
        crate::support::postgres().await.version()
    );
    conforms(&store, &postgres::PostgresBench { poll, pooler: None }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_on_postgresql_conforms_behind_a_pooler() {
    let (services, server) = (crate::support::shared().await, crate::support::postgres().await);
    let pooler = services.start_pgbouncer(server, 4).await.unwrap();
    let store = format!(
        "PostgreSQL {} behind PgBouncer {}",
        server.version(),
        pooler.version()
    );
    let bench = postgres::PostgresBench {
        poll: Some(std::time::Duration::from_millis(100)),
        pooler: Some(pooler.port()),
    };
    conforms(&store, &bench).await;
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let mut names: Vec<&str> = cases().iter().map(|case| case.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases().len());
    assert!(names.len() >= 25, "{names:?}");
}
