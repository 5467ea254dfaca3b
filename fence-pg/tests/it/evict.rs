//! Freeing a key that a transaction holds on to: what stood in the way, and what became of it.

use std::time::{Duration, Instant};

use pause_kit::services::for_tests;
use tokio_postgres::Client;

use crate::restored::Origin;
use crate::support::{CLASS, Database, OPEN, admit, client, code, failure, token, wait_for_lock_waiters};

/// For a holder that is to hold for as long as its test wants.
const STAY: &str = "SET LOCAL idle_in_transaction_session_timeout = 0";

struct Evicted {
    pid: Option<i32>,
    outcome: String,
    detail: String,
}

async fn evict(client: &Client, key: &str, revision: i64) -> Vec<Evicted> {
    let sql = "SELECT pid, outcome, detail FROM fence.evict($1, $2, $3) ORDER BY outcome";
    let rows = client
        .query(sql, &[&CLASS, &key, &token(revision).as_i64()])
        .await
        .unwrap();
    rows.iter()
        .map(|row| Evicted {
            pid: row.get(0),
            outcome: row.get(1),
            detail: row.get(2),
        })
        .collect()
}

/// The only answer.
async fn evict_one(client: &Client, key: &str, revision: i64) -> Evicted {
    let mut all = evict(client, key, revision).await;
    assert_eq!(all.len(), 1);
    all.remove(0)
}

async fn pid(client: &Client) -> i32 {
    client
        .query_one("SELECT pg_backend_pid()", &[])
        .await
        .unwrap()
        .get(0)
}

/// A session that has admitted, and goes on holding its key.
async fn holder(database: &Database, key: &str, revision: i64) -> Client {
    let holder = database.client().await;
    let begin = format!("BEGIN; {} {STAY}", admit(key, revision));
    holder.batch_execute(&begin).await.unwrap();
    holder
}

#[tokio::test]
async fn a_holder_idle_in_its_transaction_is_evicted_and_what_it_wrote_is_gone() {
    let database = Database::guarded().await;
    database.run(&admit("acct-1", 33)).await;
    for first_mark in [false, true] {
        let key = if first_mark { "acct-2" } else { "acct-1" };
        let old = holder(&database, key, 33).await;
        old.batch_execute(&format!(
            "INSERT INTO transfer (from_account, amount) VALUES ('{key}', 5)"
        ))
        .await
        .unwrap();
        let old_pid = pid(&old).await;

        let operator = database.client().await;
        let named: String = operator
            .query_one("SELECT detail FROM fence.blockers($1, $2)", &[&CLASS, &key])
            .await
            .unwrap()
            .get(0);
        assert!(named.starts_with(&format!("pid {old_pid}, ")), "{named:?}");
        let evicted = evict_one(&operator, key, 34).await;
        assert_eq!(
            (evicted.pid, evicted.outcome.as_str()),
            (Some(old_pid), "evicted")
        );
        assert!(evicted.detail.contains("rolled back"), "{}", evicted.detail);

        operator.batch_execute(&admit(key, 34)).await.unwrap();
        assert!(old.batch_execute("COMMIT").await.is_err());
        assert_eq!(database.number("SELECT count(*) FROM transfer").await, 0);
    }
    assert_eq!(
        database
            .text("SELECT string_agg(concat_ws(' ', what, key, after, reason), '; ' ORDER BY key) FROM fence.danger_log")
            .await,
        format!(
            "evict acct-1 evicted token {0} was presented; evict acct-2 evicted token {0} was presented",
            token(34)
        )
    );
}

#[tokio::test]
async fn a_key_that_nobody_holds_says_nobody_and_ends_nobody() {
    let database = Database::guarded().await;
    let bystander = holder(&database, "acct-2", 33).await;
    let operator = database.client().await;
    assert_eq!(evict_one(&operator, "acct-1", 34).await.outcome, "nobody");
    database.run(&admit("acct-1", 33)).await;
    assert_eq!(evict_one(&operator, "acct-1", 34).await.outcome, "nobody");
    bystander.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test]
async fn only_a_token_above_the_mark_and_inside_a_range_evicts() {
    let database = Database::guarded().await;
    database.run(&admit("acct-1", 33)).await;
    let old = holder(&database, "acct-1", 33).await;
    let operator = database.client().await;
    let evict = |presented: &str| format!("SELECT fence.evict('{CLASS}', 'acct-1', {presented})");
    let stale = failure(&operator, &evict(&token(32).to_string())).await;
    assert_eq!(stale.code().code(), "ZF001");
    assert_eq!(
        stale.detail().unwrap(),
        format!("presented {}, seen {}", token(32), token(33))
    );
    for (presented, refused) in [
        (token(33).to_string(), "55000"),
        ("NULL".to_owned(), "ZF002"),
        ("0".to_owned(), "ZF003"),
        (((2_i64 << 48) + 1).to_string(), "ZF005"),
        ("9223372036854775807".to_owned(), "ZF005"),
    ] {
        assert_eq!(code(&operator, &evict(&presented)).await, refused, "{presented}");
    }
    let unknown = "SELECT fence.evict('paydb.acount', 'acct-1', 7)";
    assert_eq!(code(&operator, unknown).await, "ZF007");
    let above = format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ; {}",
        evict(&token(34).to_string())
    );
    assert_eq!(code(&operator, &above).await, "55000");
    old.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test]
async fn a_class_without_a_tier_takes_any_higher_token_for_an_eviction() {
    let database = Database::guarded().await;
    let old = database.client().await;
    old.batch_execute(&format!("BEGIN; SELECT fence.admit('{OPEN}', 'a', 7); {STAY}"))
        .await
        .unwrap();
    let evict = format!("SELECT outcome FROM fence.evict('{OPEN}', 'a', 8)");
    assert_eq!(database.text(&evict).await, "evicted");
}

#[tokio::test]
async fn a_holder_past_the_queue_is_found_by_its_lock_on_the_row() {
    let database = Database::guarded().await;
    database.run(&admit("acct-1", 33)).await;
    for lock in ["FOR UPDATE", "FOR SHARE"] {
        let lockers = [database.client().await, database.client().await];
        let number = if lock == "FOR SHARE" { 2 } else { 1 };
        for locker in &lockers[..number] {
            locker
                .batch_execute(&format!("BEGIN; SELECT FROM fence.high_water {lock}"))
                .await
                .unwrap();
        }
        let operator = database.client().await;
        let evicted = evict(&operator, "acct-1", 34).await;
        assert_eq!(evicted.len(), number, "{lock}");
        assert!(evicted.iter().all(|one| one.outcome == "evicted"));
    }
}

#[tokio::test]
async fn a_holder_that_waits_in_a_statement_is_evicted_too() {
    let database = Database::guarded().await;
    let elsewhere = database.client().await;
    elsewhere
        .batch_execute("BEGIN; SELECT pg_advisory_xact_lock(7)")
        .await
        .unwrap();
    let old = holder(&database, "acct-1", 33).await;
    let waiting = async { code(&old, "SELECT pg_advisory_xact_lock(7)").await };
    let evicting = async {
        wait_for_lock_waiters(&database, 1).await;
        evict_one(&database.client().await, "acct-1", 34).await.outcome
    };
    let (ended, outcome) = tokio::join!(waiting, evicting);
    assert_eq!((ended.as_str(), outcome.as_str()), ("57P01", "evicted"));
    elsewhere.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test]
async fn a_prepared_transaction_is_named_and_left_to_whoever_decides_it() {
    let database = Database::guarded().await;
    let gid = format!("evicted-in-{}", database.url.database());
    let old = database.client().await;
    old.batch_execute(&format!(
        "BEGIN; {} PREPARE TRANSACTION '{gid}'",
        admit("acct-1", 33)
    ))
    .await
    .unwrap();
    let operator = database.client().await;
    let prepared = evict_one(&operator, "acct-1", 34).await;
    old.batch_execute(&format!("COMMIT PREPARED '{gid}'"))
        .await
        .unwrap();
    assert_eq!((prepared.pid, prepared.outcome.as_str()), (None, "prepared"));
    let how = format!("ROLLBACK PREPARED '{gid}'");
    assert!(prepared.detail.contains(&how), "{}", prepared.detail);
    assert_eq!(code(&operator, &admit("acct-1", 32)).await, "ZF001");
}

#[tokio::test]
async fn a_stopped_backend_is_still_there_within_the_bound_and_gone_once_it_runs_again() {
    let database = Database::guarded().await;
    let old = holder(&database, "acct-1", 33).await;
    let old_pid = pid(&old).await;
    let services = for_tests().await.services();
    let stopped = services.stop(u32::try_from(old_pid).unwrap()).await.unwrap();

    let operator = database.client().await;
    let began = Instant::now();
    let there = evict_one(&operator, "acct-1", 34).await;
    let waited = began.elapsed();
    assert_eq!(
        (there.pid, there.outcome.as_str()),
        (Some(old_pid), "still there")
    );
    assert!(there.detail.contains("does not answer"), "{}", there.detail);
    assert!(waited < Duration::from_millis(3500), "{waited:?}");
    assert_eq!(code(&operator, &admit("acct-1", 34)).await, "55P03");

    // It takes the signal as soon as it runs.
    stopped.resume().await.unwrap();
    operator.batch_execute(&admit("acct-1", 34)).await.unwrap();
    assert!(old.batch_execute("COMMIT").await.is_err());
}

#[tokio::test]
async fn a_role_without_the_right_is_told_what_it_lacks() {
    let database = Database::guarded().await;
    let old = database.superuser().await;
    old.batch_execute(&format!("BEGIN; {} {STAY}", admit("acct-1", 33)))
        .await
        .unwrap();
    let operator = database.client().await;
    let there = evict_one(&operator, "acct-1", 34).await;
    assert_eq!(there.outcome, "still there");
    assert!(there.detail.contains("pg_signal_backend"), "{}", there.detail);

    // An operator's own role, with that right, over an application's backend.
    let postgres = for_tests().await.postgres();
    let login = postgres
        .create_login(&format!("{}_app", database.url.database()))
        .await
        .unwrap();
    database
        .superuser()
        .await
        .batch_execute(&format!(
            "GRANT CONNECT ON DATABASE {0} TO {1};
             GRANT USAGE ON SCHEMA fence TO {1}; GRANT EXECUTE ON FUNCTION fence.admit TO {1}",
            database.url.database(),
            login.role
        ))
        .await
        .unwrap();
    old.batch_execute("ROLLBACK").await.unwrap();
    let app = client(&postgres.url(database.url.database(), &login)).await;
    app.batch_execute(&format!("BEGIN; {} {STAY}", admit("acct-1", 33)))
        .await
        .unwrap();
    assert_eq!(evict_one(&operator, "acct-1", 34).await.outcome, "still there");
    database
        .superuser()
        .await
        .batch_execute(&format!(
            "GRANT pg_signal_backend TO {}",
            database.url.login().role
        ))
        .await
        .unwrap();
    assert_eq!(evict_one(&operator, "acct-1", 34).await.outcome, "evicted");
}

#[tokio::test]
async fn a_transaction_of_the_same_backend_that_came_later_is_left_alone() {
    let database = Database::guarded().await;
    let old = holder(&database, "acct-1", 33).await;
    let operator = database.client().await;
    let seen = "SELECT virtual_transaction FROM fence.blockers('paydb.account', 'acct-1')";
    let before: String = operator.query_one(seen, &[]).await.unwrap().get(0);
    old.batch_execute(&format!("COMMIT; BEGIN; {} {STAY}", admit("acct-1", 33)))
        .await
        .unwrap();
    let end = "SELECT outcome FROM fence.end_holder('paydb.account', 'acct-1', $1, $2, NULL, NULL, 'it')";
    let outcome: String = operator
        .query_one(end, &[&pid(&old).await, &before])
        .await
        .unwrap()
        .get(0);
    assert_eq!(outcome, "nobody");
    old.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test]
async fn a_commit_that_came_first_is_told_from_a_rollback() {
    let database = Database::guarded().await;
    let operator = database.client().await;
    for (end, ended) in [("COMMIT", "committed"), ("ROLLBACK", "nobody")] {
        let old = holder(&database, "acct-1", 33).await;
        let seen = "SELECT pid, virtual_transaction, transaction::text FROM fence.blockers('paydb.account', 'acct-1')";
        let seen = operator.query_one(seen, &[]).await.unwrap();
        old.batch_execute(end).await.unwrap();
        let sql = "SELECT outcome FROM fence.end_holder('paydb.account', 'acct-1', $1, $2, ($3::text)::xid8, NULL, 'it')";
        let outcome: String = operator
            .query_one(
                sql,
                &[
                    &seen.get::<_, i32>(0),
                    &seen.get::<_, String>(1),
                    &seen.get::<_, String>(2),
                ],
            )
            .await
            .unwrap()
            .get(0);
        assert_eq!(outcome, ended);
    }
}

#[tokio::test]
async fn a_holder_in_the_middle_of_its_commit_is_told_from_one_that_is_rolled_back() {
    let origin = Origin::start("committing").await;
    let operator = origin.client().await;
    // Nobody confirms a commit any more: it is there, and is not answered.
    let superuser = origin.superuser().await;
    for sql in [
        "ALTER SYSTEM SET synchronous_standby_names = 'none_such'",
        "SELECT pg_reload_conf()",
    ] {
        superuser.batch_execute(sql).await.unwrap();
    }
    let old = origin.client().await;
    let mut shown = String::new();
    while shown != "none_such" {
        shown = old
            .query_one("SHOW synchronous_standby_names", &[])
            .await
            .unwrap()
            .get(0);
    }
    let admission = format!("BEGIN; {} COMMIT", admit("acct-1", 33));
    let committing = async { old.batch_execute(&admission).await };
    let evicting = async {
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        while superuser.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        evict_one(&operator, "acct-1", 34).await
    };
    let (ended, evicted) = tokio::join!(committing, evicting);
    assert_eq!(evicted.outcome, "committed", "{}", evicted.detail);
    assert!(ended.is_err(), "its connection is ended without an answer");
    let mark: i64 = operator
        .query_one("SELECT token FROM fence.high_water", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(mark, token(33).as_i64());
}
