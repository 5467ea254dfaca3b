//! The suite on every store, and on stores that are wrong on purpose.

mod etcd;
mod postgres;
mod wire;
mod wrong;

use fence_lock::conformance::{Bench, MemoryBench, cases, run};

/// Plays the suite and fails with its report.
async fn conforms(bench: &dyn Bench) {
    let report = run(bench).await;
    assert!(report.conforms(), "\n{report}");
    assert_eq!(report.outcomes().len(), cases().len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_in_memory_conforms() {
    conforms(&MemoryBench::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_on_etcd_conforms() {
    conforms(&etcd::EtcdBench).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_on_postgresql_conforms() {
    conforms(&postgres::PostgresBench { poll: None }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_on_postgresql_conforms_when_it_polls() {
    let poll = Some(std::time::Duration::from_millis(100));
    conforms(&postgres::PostgresBench { poll }).await;
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let mut names: Vec<&str> = cases().iter().map(|case| case.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases().len());
    assert!(names.len() >= 25, "{names:?}");
}
