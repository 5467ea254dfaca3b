//! The suite for drivers, on this crate's own two.

use std::error::Error;

use fence_pg::Isolation;
use fence_pg::conformance::{Driver, Nonconformance, Report, Sqlx, TokioPostgres, run};
use pause_kit::services::for_tests;

use crate::support::Database;

async fn passes<D: Driver, E: Error>(connect: impl AsyncFn(&str) -> Result<D, E>, isolation: Isolation) {
    let database = Database::bare().await;
    fence_pg::tokio_postgres::install(&database.client().await)
        .await
        .unwrap();
    let direct = database.url.as_str();
    passed(run(async || connect(direct).await, isolation).await);
}

fn passed(report: Result<Report, Nonconformance>) {
    match report {
        Ok(report) => assert!(report.cases.len() > 20, "{:?}", report.cases),
        Err(broken) => panic!("{broken}"),
    }
}

#[tokio::test]
async fn sqlx_does_what_the_guards_promise_at_every_level() {
    for isolation in [
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Serializable,
    ] {
        passes(Sqlx::connect, isolation).await;
    }
}

#[tokio::test]
async fn tokio_postgres_does_what_the_guards_promise_at_every_level() {
    for isolation in [
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Serializable,
    ] {
        passes(TokioPostgres::connect, isolation).await;
    }
}

#[tokio::test]
async fn both_do_it_behind_a_transaction_pooler() {
    let shared = for_tests().await;
    let pooler = shared
        .services()
        .start_pgbouncer(shared.postgres(), 8)
        .await
        .unwrap();
    let database = async || {
        let database = Database::bare().await;
        fence_pg::tokio_postgres::install(&database.client().await)
            .await
            .unwrap();
        database.url.through(pooler.port())
    };
    let url = database().await;
    passed(
        run(
            async || Sqlx::connect(url.as_str()).await,
            Isolation::ReadCommitted,
        )
        .await,
    );
    let url = database().await;
    passed(
        run(
            async || TokioPostgres::connect(url.as_str()).await,
            Isolation::ReadCommitted,
        )
        .await,
    );
}
