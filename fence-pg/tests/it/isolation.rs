//! The mark guard above READ COMMITTED, and what each transaction sees.

use std::time::Duration;

use fence_core::{Effect, Refusal};
use fence_pg::sqlx::Isolation;
use fence_pg::{GuardError, Refused};

use crate::support::{Database, admit, claim, code, refused, wait_for_lock_waiters};

const LEVELS: [Isolation; 3] = [
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Serializable,
];

#[tokio::test]
async fn a_stale_claim_is_refused_at_every_level() {
    let database = Database::guarded().await;
    database.run(&admit("acct-1", 34)).await;
    for isolation in LEVELS {
        let stale = fence_pg::sqlx::begin_at(&database.pool, isolation, &claim("acct-1", 33)).await;
        assert!(
            matches!(refused(stale), Refused::Claim(Refusal::Stale { .. })),
            "{isolation:?}"
        );
    }
}

#[tokio::test]
async fn a_guarded_transaction_runs_at_the_level_that_was_asked_for() {
    let database = Database::guarded().await;
    database
        .run(&format!(
            "ALTER DATABASE {} SET default_transaction_isolation = 'serializable'",
            database.url.database()
        ))
        .await;
    for (isolation, name) in LEVELS
        .into_iter()
        .zip(["read committed", "repeatable read", "serializable"])
    {
        let mut guarded = fence_pg::sqlx::begin_at(&database.pool, isolation, &claim("acct-1", 34))
            .await
            .unwrap();
        let level: String = sqlx::query_scalar("SHOW transaction_isolation")
            .fetch_one(guarded.connection())
            .await
            .unwrap();
        assert_eq!(level, name);
    }
}

#[tokio::test]
async fn a_snapshot_from_before_the_predecessors_commit_never_spends_twice() {
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        for revision in [33, 34] {
            let database = Database::guarded().await;
            database.run(&admit("acct-1", 33)).await;
            // H1 spends what there is, in an open transaction. H2's snapshot is older than its commit. The mark's token
            // stays in the first round, and is raised in the second.
            let spend = "INSERT INTO transfer (from_account, amount)
                         SELECT 'acct-1', 100 WHERE NOT EXISTS (SELECT FROM transfer WHERE from_account = 'acct-1')";
            let h1 = database.client().await;
            h1.batch_execute(&format!("BEGIN; {} {spend}", admit("acct-1", 33)))
                .await
                .unwrap();
            let h2 = database.client().await;
            h2.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}; SELECT FROM transfer"))
                .await
                .unwrap();

            let admission = admit("acct-1", revision);
            let second = async {
                match h2.batch_execute(&admission).await {
                    Ok(()) => {
                        h2.batch_execute(spend).await.unwrap();
                        h2.batch_execute("COMMIT").await.unwrap();
                        "admitted".to_owned()
                    }
                    Err(error) => error.code().unwrap().code().to_owned(),
                }
            };
            let first = async {
                wait_for_lock_waiters(&database, 1).await;
                h1.batch_execute("COMMIT").await.unwrap();
            };
            let (outcome, ()) = tokio::join!(second, first);
            let expected = if level == "READ COMMITTED" {
                "admitted"
            } else {
                "40001"
            };
            assert_eq!(outcome, expected, "{level}, revision {revision}");
            let spent = database.number("SELECT count(*) FROM transfer").await;
            assert_eq!(spent, 1, "{level}, revision {revision}");
        }
    }
}

#[tokio::test]
async fn a_late_snapshot_is_tried_again_and_then_gets_its_answer() {
    let database = Database::guarded().await;
    let mut connection = database.pool.acquire().await.unwrap();
    for (revision, admitted) in [(33, false), (35, true)] {
        for level in ["REPEATABLE READ", "SERIALIZABLE"] {
            use sqlx::Executor as _;
            let key = format!("{level} {revision}");
            let begin = format!("BEGIN ISOLATION LEVEL {level}; SELECT FROM transfer");
            connection
                .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(begin.clone())))
                .await
                .unwrap();
            database.run(&admit(&key, 34)).await;
            let late = fence_pg::sqlx::admit(&mut connection, &claim(&key, revision)).await;
            match late {
                Err(GuardError::Retryable { sqlstate, .. }) => assert_eq!(sqlstate, "40001"),
                other => panic!("{level}, revision {revision}: {other:?}"),
            }
            // Retrying the statement alone is answered as a failed transaction, not as stale.
            let again = fence_pg::sqlx::admit(&mut connection, &claim(&key, revision)).await;
            assert!(
                matches!(&again, Err(GuardError::Database { sqlstate: Some(code), .. }) if code == "25P02"),
                "{again:?}"
            );
            connection.execute("ROLLBACK").await.unwrap();

            // A newer mark that the snapshot does show makes it stale at once, also when that was written again since.
            connection
                .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(begin)))
                .await
                .unwrap();
            database.run(&admit(&key, 34)).await;
            let late = fence_pg::sqlx::admit(&mut connection, &claim(&key, revision)).await;
            match late {
                Err(GuardError::Retryable { sqlstate, .. }) if admitted => assert_eq!(sqlstate, "40001"),
                Err(GuardError::Refused(Refused::Claim(Refusal::Stale { .. }))) if !admitted => {}
                other => panic!("{level}, revision {revision}: {other:?}"),
            }
            connection.execute("ROLLBACK").await.unwrap();

            let isolation = Isolation::Serializable;
            let whole = fence_pg::sqlx::begin_at(&database.pool, isolation, &claim(&key, revision)).await;
            if admitted {
                drop(whole.unwrap().commit(Effect::Applied).await.unwrap());
            } else {
                assert!(matches!(refused(whole), Refused::Claim(Refusal::Stale { .. })));
            }
        }
    }
}

#[tokio::test]
async fn an_admission_that_is_rolled_back_leaves_no_mark() {
    let database = Database::guarded().await;
    database.run(&admit("acct-1", 33)).await;
    let guarded = fence_pg::sqlx::begin(&database.pool, &claim("acct-1", 34))
        .await
        .unwrap();
    guarded.rollback().await.unwrap();
    drop(
        fence_pg::sqlx::begin(&database.pool, &claim("acct-2", 34))
            .await
            .unwrap(),
    );
    database.run(&admit("acct-1", 33)).await;
    assert_eq!(database.number("SELECT count(*) FROM fence.high_water").await, 1);
}

#[tokio::test]
async fn two_first_admissions_of_a_key_are_put_in_order() {
    for (first, second, expected) in [(33, 34, None), (34, 33, Some("ZF001"))] {
        let database = Database::guarded().await;
        let (a, b) = (database.client().await, database.client().await);
        a.batch_execute(&format!("BEGIN; {}", admit("acct-1", first)))
            .await
            .unwrap();
        let wait = async {
            match expected {
                None => b.batch_execute(&admit("acct-1", second)).await.unwrap(),
                Some(sqlstate) => assert_eq!(code(&b, &admit("acct-1", second)).await, sqlstate),
            }
        };
        let commit = async {
            wait_for_lock_waiters(&database, 1).await;
            a.batch_execute("COMMIT").await.unwrap();
        };
        tokio::join!(wait, commit);
        let mark = database.number("SELECT token FROM fence.high_water").await;
        assert_eq!(mark, crate::support::token(34).as_i64());
    }
}

#[tokio::test]
async fn two_keys_taken_in_both_orders_end_as_a_deadlock_to_be_tried_again() {
    let database = Database::guarded().await;
    let mut a = fence_pg::sqlx::begin(&database.pool, &claim("acct-1", 33))
        .await
        .unwrap();
    let mut b = fence_pg::sqlx::begin(&database.pool, &claim("acct-2", 33))
        .await
        .unwrap();
    let (for_a, for_b) = (claim("acct-2", 33), claim("acct-1", 33));
    let (a, b) = tokio::join!(
        tokio::time::timeout(
            Duration::from_secs(8),
            fence_pg::sqlx::admit(a.connection(), &for_a)
        ),
        tokio::time::timeout(
            Duration::from_secs(8),
            fence_pg::sqlx::admit(b.connection(), &for_b)
        ),
    );
    let outcomes = [a.unwrap(), b.unwrap()];
    // On a busy machine the bound on waiting may come before the server looks for deadlocks; both say: try again.
    let told = |outcome: &Result<(), GuardError>| match outcome {
        Err(GuardError::Retryable { sqlstate, .. }) => sqlstate == "40P01",
        Err(GuardError::Blocked { .. }) => true,
        _ => false,
    };
    assert!(outcomes.iter().any(told), "{outcomes:?}");
    assert!(
        outcomes.iter().all(|outcome| outcome.is_ok() || told(outcome)),
        "{outcomes:?}"
    );
}
