//! Two connections at once: what an admission holds, and until when.

use std::time::Duration;

use tokio_postgres::Client;

use super::asked::{Ask, open, reply, run};
use super::mark::OPEN;
use crate::history::ProbeKind as Kind;
use crate::run::RunError;
use crate::scenario::{Half, SLACK, ScenarioId};

/// How long a question that must be blocked is let wait.
const BLOCKED_MS: u64 = 200;

/// Asks what the first connection's open transaction keeps the second one from.
pub(super) async fn ask(half: &Half<'_>) -> Result<(), RunError> {
    let one = open(half).await?;
    let two = open(half).await?;
    held_to_the_end(half, &one, &two).await?;
    stale_after_a_wait(half, &one, &two).await?;
    second_of_a_transaction(half, &one).await?;
    settings(half, &one).await?;
    rolled_back(half, &one).await?;
    old_snapshot(half, &one, &two).await?;
    // It lasts as long as the bound: once a run is enough, beside a scenario that takes its time anyway.
    if half.task.slot.scenario == ScenarioId::S01 {
        bounded_wait(half, &one, &two).await?;
    }
    Ok(())
}

/// An admission is held to the end of its transaction: a larger one beside it is blocked, on a new key and on a known one.
/// Another key is not.
async fn held_to_the_end(half: &Half<'_>, one: &Client, two: &Client) -> Result<(), RunError> {
    for (token, larger) in [(20, 21), (22, 23)] {
        run(one, "BEGIN").await?;
        Ask::new(Kind::Prepare, OPEN, "held", token)
            .put(half, one)
            .await?;
        run(two, &format!("BEGIN; SET LOCAL lock_timeout = '{BLOCKED_MS}ms'")).await?;
        Ask::new(Kind::Unheld, OPEN, "unheld", larger)
            .put(half, two)
            .await?;
        Ask::new(Kind::HeldToTheEnd, OPEN, "held", larger)
            .put(half, two)
            .await?;
        run(two, "ROLLBACK").await?;
        run(one, "COMMIT").await?;
    }
    Ok(())
}

/// Whoever sets no bound is blocked by the guard's own.
async fn bounded_wait(half: &Half<'_>, one: &Client, two: &Client) -> Result<(), RunError> {
    let bound = half.task.class.proof.deadline_ms + u64::try_from(SLACK.as_millis()).expect("a second");
    run(one, "BEGIN").await?;
    Ask::new(Kind::Prepare, OPEN, "bounded", 80)
        .put(half, one)
        .await?;
    run(two, &format!("BEGIN; SET LOCAL statement_timeout = '{bound}ms'")).await?;
    Ask::new(Kind::BoundedWait, OPEN, "bounded", 81)
        .put(half, two)
        .await?;
    run(two, "ROLLBACK").await?;
    run(one, "COMMIT").await
}

/// A smaller token that waited for a larger one's transaction is refused once that is committed.
async fn stale_after_a_wait(half: &Half<'_>, one: &Client, two: &Client) -> Result<(), RunError> {
    Ask::new(Kind::Prepare, OPEN, "waited", 29).put(half, one).await?;
    // On a key with a mark, and on one whose first mark is being written.
    for key in ["waited", "first"] {
        run(one, "BEGIN").await?;
        Ask::new(Kind::Prepare, OPEN, key, 31).put(half, one).await?;
        let smaller = Ask::new(Kind::Smaller, OPEN, key, 30).meets(31);
        let statement = smaller.sql();
        let (answered, committed) = tokio::join!(reply(two, &statement), async {
            waiting(half, 1).await?;
            run(one, "COMMIT").await
        });
        committed?;
        smaller.record(half, answered?);
    }
    Ok(())
}

/// A transaction's second admission is decided like its first.
async fn second_of_a_transaction(half: &Half<'_>, one: &Client) -> Result<(), RunError> {
    Ask::new(Kind::Prepare, OPEN, "second", 61).put(half, one).await?;
    run(one, "BEGIN").await?;
    Ask::new(Kind::Prepare, OPEN, "beside", 60).put(half, one).await?;
    Ask::new(Kind::Smaller, OPEN, "second", 60)
        .meets(61)
        .put(half, one)
        .await?;
    run(one, "ROLLBACK").await
}

/// What an admission sets for the rest of its transaction, and what it leaves as it was.
async fn settings(half: &Half<'_>, one: &Client) -> Result<(), RunError> {
    let idle = half.task.class.proof.idle_ms;
    run(
        one,
        "BEGIN; SET LOCAL synchronous_commit = off; SET LOCAL lock_timeout = '1234ms'",
    )
    .await?;
    let admitted = Ask::new(Kind::Prepare, OPEN, "settings", 90);
    admitted.put(half, one).await?;
    let is =
        |name: &str, right: &str| format!("(SELECT setting {right} FROM pg_settings WHERE name = '{name}')");
    let bounds = [
        is(
            "idle_in_transaction_session_timeout",
            &format!("::bigint BETWEEN 1 AND {idle}"),
        ),
        is("lock_timeout", "= '1234'"),
    ];
    for (kind, right) in [
        (Kind::Bounds, bounds.join(" AND ")),
        (Kind::Durable, is("synchronous_commit", "<> 'off'")),
    ] {
        let check = format!("DO $$ BEGIN ASSERT {right}; END $$");
        let reply = reply(one, &check).await?;
        Ask {
            kind,
            ..admitted.clone()
        }
        .record(half, reply);
    }
    run(one, "ROLLBACK").await
}

/// An admission that is rolled back, whole or to a savepoint, was none.
async fn rolled_back(half: &Half<'_>, one: &Client) -> Result<(), RunError> {
    run(one, "BEGIN").await?;
    let rolled = Ask::new(Kind::Prepare, OPEN, "rolled", 50).sql();
    run(one, &rolled).await?;
    run(one, "ROLLBACK").await?;
    Ask::new(Kind::AfterRollback, OPEN, "rolled", 40)
        .put(half, one)
        .await?;
    run(one, "BEGIN; SAVEPOINT before").await?;
    run(one, &rolled).await?;
    run(one, "ROLLBACK TO before; COMMIT").await?;
    Ask::new(Kind::AfterRollback, OPEN, "rolled", 45)
        .put(half, one)
        .await
}

/// A successor whose snapshot is from before its predecessor's last commit must not be admitted, also when that commit
/// left the token as it was.
async fn old_snapshot(half: &Half<'_>, one: &Client, two: &Client) -> Result<(), RunError> {
    Ask::new(Kind::Prepare, OPEN, "snapshot", 70)
        .put(half, one)
        .await?;
    run(two, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await?;
    Ask::new(Kind::EqualAgain, OPEN, "snapshot", 70)
        .put(half, one)
        .await?;
    Ask::new(Kind::OldSnapshot, OPEN, "snapshot", 71)
        .put(half, two)
        .await?;
    run(two, "ROLLBACK").await
}

/// Waits until so many backends wait for a lock, or none is going to: a guard that takes none answers at once.
pub(super) async fn waiting(half: &Half<'_>, backends: usize) -> Result<(), RunError> {
    let query =
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    for _ in 0..100 {
        let rows = half
            .sql
            .query(query, &[])
            .await
            .map_err(RunError::lost("PostgreSQL could not be asked who waits"))?;
        if rows.len() >= backends {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}
