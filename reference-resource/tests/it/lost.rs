//! Databases that stop answering, or taking writes, in the middle.

use std::time::{Duration, Instant};

use pause_kit::path::{Direction, Hold};
use serde_json::json;

use super::bench::{Bench, SOON, problem};
use super::fencing::{find, on_a_path};

#[tokio::test]
async fn an_account_whose_insert_was_not_answered_is_unknown_and_nobody_is_asked_to_send_it_again() {
    let (bench, _) = Bench::ready().await;
    let (path, paydb) = on_a_path(&bench).await;
    let held = path.hold(
        Hold::new(Direction::ToHolder)
            .on_every()
            .from_next(|bytes| find(bytes, b"INSERT 0 1")),
    );
    let lost = async {
        let answer = tokio::time::timeout(SOON, held.engaged()).await;
        path.cut(answer.expect("the answer to an INSERT").connection);
    };
    let body = json!({"id": "acct-3", "balance": 5});
    let (unknown, ()) = tokio::join!(paydb.post("/accounts", body.clone()), lost);
    assert_eq!(unknown.headers().get("retry-after"), None);
    problem(unknown, 500, "fence:problem:unknown-outcome").await;
    let landed = "SELECT count(*) FROM account WHERE id = 'acct-3' AND balance = 5";
    assert_eq!(bench.ask(landed).await, "1");
    held.release();
    problem(
        paydb.post("/accounts", body).await,
        409,
        "paydb:problem:account-exists",
    )
    .await;
}

#[tokio::test]
async fn a_database_that_takes_no_writes_is_503_and_reads_go_on() {
    let (bench, paydb) = Bench::ready().await;
    let read_only = format!(
        "ALTER DATABASE \"{}\" SET default_transaction_read_only = on",
        bench.database.database()
    );
    bench.sql(&read_only).await;
    // The connections that paydb has are ended, as a primary's are that becomes a standby.
    let left = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'paydb'";
    let began = Instant::now();
    while bench.ask(left).await != "0" {
        assert!(began.elapsed() < SOON, "paydb's connections do not end");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let body = json!({"id": "acct-3", "balance": 5});
    for refused in [
        paydb.transfer(34, "g34:1").await,
        paydb.fence(34).await,
        paydb.post("/accounts", body).await,
    ] {
        assert_eq!(refused.headers()["retry-after"], "1");
        problem(refused, 503, "fence:problem:unavailable").await;
    }
    assert_eq!(paydb.get("/accounts/acct-1").await.status(), 200);
    assert_eq!(bench.ask("SELECT count(*) FROM account").await, "2");
    assert_eq!(bench.mark("acct-1").await, "0");
}
