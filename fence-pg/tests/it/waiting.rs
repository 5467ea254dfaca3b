//! How long an admission waits, what it says then, and what it leaves behind in its transaction.

use std::time::{Duration, Instant};

use fence_core::Effect;
use fence_pg::GuardError;

use crate::support::{Database, admit, claim, code, failure, wait_for_lock_waiters};

const SLACK: Duration = Duration::from_millis(1200);
/// For a holder that is to hold for as long as its test wants.
const STAY: &str = "SET LOCAL idle_in_transaction_session_timeout = 0";

#[tokio::test]
async fn a_held_key_is_blocked_after_two_seconds_and_names_who_holds_it() {
    let database = Database::guarded().await;
    let holder = database.client().await;
    let begin = format!(
        "SET application_name = 'worker-7'; BEGIN; {}",
        admit("acct-1", 33)
    );
    holder.batch_execute(&begin).await.unwrap();

    let began = Instant::now();
    match fence_pg::sqlx::begin(&database.pool, &claim("acct-1", 34)).await {
        Err(GuardError::Blocked { by: Some(by) }) => {
            for part in [
                "pid ",
                "application 'worker-7'",
                "in transaction since ",
                "idle in transaction since ",
            ] {
                assert!(by.contains(part), "{by:?} names {part:?}");
            }
        }
        other => panic!("not blocked: {other:?}"),
    }
    let waited = began.elapsed();
    assert!(
        waited >= Duration::from_millis(1950) && waited < Duration::from_secs(2) + SLACK,
        "{waited:?}"
    );

    holder.batch_execute("ROLLBACK").await.unwrap();
    drop(
        fence_pg::sqlx::raise_mark(&database.pool, &claim("acct-1", 34))
            .await
            .unwrap(),
    );
}

#[tokio::test]
async fn a_lock_on_the_marks_row_taken_past_the_queue_is_bounded_and_named_too() {
    let database = Database::guarded().await;
    database.run(&admit("acct-1", 33)).await;
    let locker = database.client().await;
    locker
        .batch_execute("SET application_name = 'psql-9'; BEGIN; SELECT FROM fence.high_water FOR UPDATE")
        .await
        .unwrap();
    let client = database.client().await;
    client.batch_execute("SET lock_timeout = '100ms'").await.unwrap();
    let error = failure(&client, &admit("acct-1", 34)).await;
    assert_eq!(error.code().code(), "55P03");
    assert!(
        error.detail().unwrap().contains("application 'psql-9'"),
        "{error:?}"
    );
}

#[tokio::test]
async fn everybody_in_the_queue_of_one_key_waits_two_seconds_at_most() {
    let database = Database::guarded().await;
    database.run(&admit("acct-1", 33)).await;
    let holder = database.client().await;
    holder
        .batch_execute(&format!("BEGIN; {} {STAY}", admit("acct-1", 33)))
        .await
        .unwrap();
    // Each comes while the one before still waits.
    let waiter = async |after_ms: u64| {
        let client = database.client().await;
        tokio::time::sleep(Duration::from_millis(after_ms)).await;
        let began = Instant::now();
        assert_eq!(code(&client, &admit("acct-1", 34)).await, "55P03");
        began.elapsed()
    };
    let (a, b, c) = tokio::join!(waiter(0), waiter(700), waiter(1400));
    for waited in [a, b, c] {
        assert!(waited < Duration::from_secs(2) + SLACK, "{waited:?}");
    }
}

#[tokio::test]
async fn the_keys_of_one_transaction_wait_two_seconds_together() {
    let database = Database::guarded().await;
    let (first, second) = (database.client().await, database.client().await);
    first
        .batch_execute(&format!("BEGIN; {} {STAY}", admit("acct-1", 33)))
        .await
        .unwrap();
    second
        .batch_execute(&format!("BEGIN; {} {STAY}", admit("acct-2", 33)))
        .await
        .unwrap();

    let both = async {
        let client = database.client().await;
        client.batch_execute("BEGIN").await.unwrap();
        let began = Instant::now();
        client.batch_execute(&admit("acct-1", 34)).await.unwrap();
        assert_eq!(code(&client, &admit("acct-2", 34)).await, "55P03");
        began.elapsed()
    };
    let release = async {
        wait_for_lock_waiters(&database, 1).await;
        tokio::time::sleep(Duration::from_millis(1200)).await;
        first.batch_execute("COMMIT").await.unwrap();
    };
    let (waited, ()) = tokio::join!(both, release);
    assert!(
        waited >= Duration::from_millis(1900) && waited < Duration::from_millis(2800),
        "{waited:?}"
    );
}

#[tokio::test]
async fn rolling_back_to_a_savepoint_gives_no_time_to_wait_again() {
    let database = Database::guarded().await;
    let holder = database.client().await;
    holder
        .batch_execute(&format!("BEGIN; {} {STAY}", admit("acct-1", 33)))
        .await
        .unwrap();
    let client = database.client().await;
    client.batch_execute("BEGIN; SAVEPOINT s").await.unwrap();
    let mut waits = Vec::new();
    for _ in 0..2 {
        let began = Instant::now();
        assert_eq!(code(&client, &admit("acct-1", 34)).await, "55P03");
        waits.push(began.elapsed());
        client.batch_execute("ROLLBACK TO s").await.unwrap();
    }
    assert!(waits[0] >= Duration::from_millis(1950), "{waits:?}");
    assert!(waits[1] < Duration::from_secs(1), "{waits:?}");
    // Another transaction of the same session has its own time.
    client.batch_execute("ROLLBACK").await.unwrap();
    let began = Instant::now();
    assert_eq!(code(&client, &admit("acct-1", 34)).await, "55P03");
    assert!(
        began.elapsed() >= Duration::from_millis(1950),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_mark_bears_no_trace_of_a_wait_past_the_queue() {
    let database = Database::guarded().await;
    database.run(&admit("acct-1", 33)).await;
    let locker = database.client().await;
    locker
        .batch_execute("BEGIN; SELECT FROM fence.high_water FOR UPDATE")
        .await
        .unwrap();
    let client = database.client().await;
    let admission = admit("acct-1", 33);
    let wait = async { client.batch_execute(&admission).await.unwrap() };
    let release = async {
        wait_for_lock_waiters(&database, 1).await;
        locker.batch_execute("ROLLBACK").await.unwrap();
    };
    tokio::join!(wait, release);
    // A row that still looked locked would send every later admission the long way.
    database.run(&admission).await;
    let locked = "SELECT count(*) FROM fence.high_water WHERE xmax <> '0'::xid";
    assert_eq!(database.number(locked).await, 0);
}

#[tokio::test]
async fn a_key_that_is_freed_in_time_goes_to_the_waiter() {
    let database = Database::guarded().await;
    let holder = database.client().await;
    holder
        .batch_execute(&format!("BEGIN; {} {STAY}", admit("acct-1", 33)))
        .await
        .unwrap();
    let newer = claim("acct-1", 34);
    let wait = fence_pg::sqlx::begin(&database.pool, &newer);
    let release = async {
        wait_for_lock_waiters(&database, 1).await;
        holder.batch_execute("COMMIT").await.unwrap();
    };
    let (guarded, ()) = tokio::join!(wait, release);
    drop(guarded.unwrap().commit(Effect::Applied).await.unwrap());
    assert_eq!(code(&holder, &admit("acct-1", 33)).await, "ZF001");
}

#[tokio::test]
async fn the_callers_own_lock_timeout_is_kept_and_a_stricter_one_wins() {
    let database = Database::guarded().await;
    let holder = database.client().await;
    holder
        .batch_execute(&format!("BEGIN; {} {STAY}", admit("acct-1", 33)))
        .await
        .unwrap();
    let shown = async |client: &tokio_postgres::Client| -> String {
        client.query_one("SHOW lock_timeout", &[]).await.unwrap().get(0)
    };

    let strict = database.client().await;
    strict.batch_execute("SET lock_timeout = '200ms'").await.unwrap();
    let began = Instant::now();
    assert_eq!(code(&strict, &admit("acct-1", 34)).await, "55P03");
    assert!(
        began.elapsed() < Duration::from_millis(1200),
        "{:?}",
        began.elapsed()
    );

    for setting in ["0", "10s", "1900ms", "1min"] {
        let client = database.client().await;
        client
            .batch_execute(&format!("SET lock_timeout = '{setting}'; BEGIN"))
            .await
            .unwrap();
        client.batch_execute(&admit("acct-2", 33)).await.unwrap();
        let release = async {
            wait_for_lock_waiters(&database, 1).await;
            holder
                .batch_execute(&format!("COMMIT; BEGIN; {} {STAY}", admit("acct-1", 33)))
                .await
                .unwrap();
        };
        let wait = async {
            client.batch_execute(&admit("acct-1", 33)).await.unwrap();
        };
        // The holder queues again behind the waiter, and gets the key back when that one is done.
        let finish = async {
            wait.await;
            assert_eq!(shown(&client).await, setting, "after a wait");
            client.batch_execute("COMMIT").await.unwrap();
            assert_eq!(shown(&client).await, setting, "after the transaction");
        };
        tokio::join!(finish, release);
    }
}

#[tokio::test]
async fn an_admission_bounds_its_transaction_alone_and_leaves_stricter_settings() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let shown = async |setting: &str| -> String {
        client
            .query_one(&format!("SHOW {setting}"), &[])
            .await
            .unwrap()
            .get(0)
    };
    let (idle, synchronous) = ("idle_in_transaction_session_timeout", "synchronous_commit");
    for (before, inside) in [
        ("0", "5s"),
        ("10s", "5s"),
        ("3s", "3s"),
        ("5s", "5s"),
        ("1min", "5s"),
    ] {
        client
            .batch_execute(&format!("SET {idle} = '{before}'"))
            .await
            .unwrap();
        client
            .batch_execute(&format!("BEGIN; {}", admit("acct-1", 34)))
            .await
            .unwrap();
        assert_eq!(shown(idle).await, inside, "{before}");
        client.batch_execute("COMMIT").await.unwrap();
        assert_eq!(shown(idle).await, before);
    }
    for (before, inside) in [
        ("off", "local"),
        ("local", "local"),
        ("remote_write", "remote_write"),
        ("on", "on"),
    ] {
        client
            .batch_execute(&format!("SET {synchronous} = '{before}'"))
            .await
            .unwrap();
        client
            .batch_execute(&format!("BEGIN; {}", admit("acct-1", 34)))
            .await
            .unwrap();
        assert_eq!(shown(synchronous).await, inside, "{before}");
        client.batch_execute("ROLLBACK").await.unwrap();
        assert_eq!(shown(synchronous).await, before);
    }
}

#[tokio::test]
async fn a_holder_idle_for_five_seconds_loses_its_connection_and_its_key() {
    let database = Database::guarded().await;
    let mut old = fence_pg::sqlx::begin(&database.pool, &claim("acct-1", 33))
        .await
        .unwrap();
    sqlx::query("INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5)")
        .execute(old.connection())
        .await
        .unwrap();
    let began = Instant::now();
    // A successor that comes again after each bounded answer.
    let receipt = loop {
        match fence_pg::sqlx::raise_mark(&database.pool, &claim("acct-1", 34)).await {
            Err(GuardError::Blocked { .. }) => assert!(began.elapsed() < Duration::from_secs(12)),
            other => break other,
        }
    };
    drop(receipt.unwrap());
    let waited = began.elapsed();
    assert!(
        waited >= Duration::from_millis(4500) && waited < Duration::from_secs(8),
        "{waited:?}"
    );

    let late = old.commit(Effect::Applied).await;
    assert!(
        matches!(
            &late,
            Err(GuardError::Retryable { .. } | GuardError::Unavailable { .. })
        ),
        "{late:?}"
    );
    assert_eq!(database.number("SELECT count(*) FROM transfer").await, 0);
}

#[tokio::test]
async fn a_prepared_transaction_in_the_way_is_named() {
    let database = Database::guarded().await;
    let holder = database.client().await;
    let gid = format!("held-by-{}", database.url.database());
    let prepare = format!("BEGIN; {} PREPARE TRANSACTION '{gid}'", admit("acct-1", 33));
    holder.batch_execute(&prepare).await.unwrap();
    let client = database.client().await;
    client.batch_execute("SET lock_timeout = '100ms'").await.unwrap();
    let blocked = failure(&client, &admit("acct-1", 34)).await;
    holder
        .batch_execute(&format!("ROLLBACK PREPARED '{gid}'"))
        .await
        .unwrap();
    assert_eq!(blocked.code().code(), "55P03");
    let named = format!("prepared transaction '{gid}'");
    assert!(blocked.detail().unwrap().contains(&named), "{blocked:?}");
    client.batch_execute(&admit("acct-1", 34)).await.unwrap();
}
