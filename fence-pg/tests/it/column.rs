//! The column guard.

use std::time::{Duration, Instant};

use fence_core::{Claim, Effect, Refusal, Token};
use fence_pg::tokio_postgres::begin_column;
use fence_pg::{Bounds, ColumnGuard, GuardError, Refused};
use tokio_postgres::Client;

use crate::support::{Database, claim, client, code, refused, wait_for_lock_waiters};

fn guard() -> ColumnGuard {
    ColumnGuard::new("account", "id", "fence").unwrap()
}

/// A claim of a key with a small token, as another issuer grants them.
fn presents(key: &str, token: i64) -> Claim {
    Claim {
        token: Token::new(token).unwrap(),
        ..claim(key, 1)
    }
}

pub(crate) async fn accounts() -> Database {
    let database = Database::guarded().await;
    database
        .run(
            "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL, fence bigint NOT NULL DEFAULT 0);
             SELECT fence.protect_column('account', 'paydb.balance', 'id', 'fence');
             INSERT INTO account VALUES (1, 100, 30), (2, 100, 35);",
        )
        .await;
    database
}

async fn add(client: &mut Client, claim: &Claim, amount: i64) -> Result<i64, GuardError> {
    let mut transaction = begin_column(client, &guard(), claim, Bounds::default()).await?;
    let row = transaction
        .update("balance = balance + $3", "balance", &[&amount])
        .await?;
    drop(transaction.commit(Effect::Applied).await?);
    Ok(row.get("balance"))
}

#[tokio::test]
async fn the_newer_holder_writes_and_the_older_one_is_refused_with_both_numbers() {
    let database = accounts().await;
    let mut client = database.client().await;
    assert_eq!(add(&mut client, &presents("1", 34), 5).await.unwrap(), 105);
    let stale = refused(add(&mut client, &presents("1", 33), 7).await);
    let (presented, seen) = (Token::new(33).unwrap(), Token::new(34).unwrap());
    assert_eq!(stale, Refused::Claim(Refusal::Stale { presented, seen }));
    assert_eq!(add(&mut client, &presents("1", 34), 5).await.unwrap(), 110);
    assert_eq!(
        database.number("SELECT fence FROM account WHERE id = 1").await,
        34
    );
}

#[tokio::test]
async fn no_row_is_told_apart_from_a_stale_token_and_from_a_null_one() {
    let database = accounts().await;
    let mut client = database.client().await;
    let absent = add(&mut client, &presents("999", 34), 5).await;
    assert!(matches!(absent, Err(GuardError::NotFound)), "{absent:?}");

    let (presented, seen) = (Token::new(34).unwrap(), Token::new(35).unwrap());
    let stale = refused(add(&mut client, &presents("2", 34), 5).await);
    assert_eq!(stale, Refused::Claim(Refusal::Stale { presented, seen }));

    database
        .run(
            "ALTER TABLE account ALTER fence DROP NOT NULL, DISABLE TRIGGER USER;
             UPDATE account SET fence = NULL WHERE id = 1;
             ALTER TABLE account ENABLE TRIGGER USER",
        )
        .await;
    match add(&mut client, &presents("1", 34), 5).await {
        Err(GuardError::Database { sqlstate, source }) => {
            assert_eq!(sqlstate.as_deref(), Some("22004"));
            assert!(format!("{source:?}").contains("is NULL"), "{source:?}");
        }
        other => panic!("a NULL token is an error of its own, got {other:?}"),
    }
    assert_eq!(
        database.number("SELECT sum(balance)::bigint FROM account").await,
        200
    );
}

#[tokio::test]
async fn a_row_hidden_by_row_security_is_not_found_and_an_upsert_of_it_fails_as_itself() {
    let database = accounts().await;
    let app = pause_kit::services::for_tests().await.postgres();
    let login = app
        .create_login(&format!("{}_app", database.url.database()))
        .await
        .unwrap();
    database
        .run(&format!(
            "GRANT CONNECT ON DATABASE {0} TO {1};
             GRANT USAGE ON SCHEMA public, fence TO {1};
             GRANT SELECT, INSERT, UPDATE ON account TO {1};
             GRANT EXECUTE ON FUNCTION fence.explain_column, fence.explain_block TO {1};
             ALTER TABLE account ENABLE ROW LEVEL SECURITY;
             CREATE POLICY negative ON account TO {1} USING (balance < 0);",
            database.url.database(),
            login.role
        ))
        .await;
    let mut app = client(&app.url(database.url.database(), &login)).await;
    let hidden = add(&mut app, &presents("1", 40), 5).await;
    assert!(matches!(hidden, Err(GuardError::NotFound)), "{hidden:?}");
    let upsert = "INSERT INTO account VALUES (1, -5, 40) ON CONFLICT (id) DO UPDATE SET fence = 40";
    assert_eq!(code(&app, upsert).await, "42501");
    // Its own rows are guarded as anybody's.
    database.run("INSERT INTO account VALUES (3, -100, 41)").await;
    let (presented, seen) = (Token::new(40).unwrap(), Token::new(41).unwrap());
    let stale = refused(add(&mut app, &presents("3", 40), 5).await);
    assert_eq!(stale, Refused::Claim(Refusal::Stale { presented, seen }));
}

#[tokio::test]
async fn a_held_row_is_blocked_within_the_bound_and_names_who_holds_it() {
    let database = accounts().await;
    let holder = database.client().await;
    holder
        .batch_execute(
            "SET application_name = 'worker-7'; BEGIN; UPDATE account SET balance = 0 WHERE id = 1",
        )
        .await
        .unwrap();
    let mut client = database.client().await;
    let began = Instant::now();
    match add(&mut client, &presents("1", 34), 5).await {
        Err(GuardError::Blocked { by: Some(by) }) => {
            assert!(
                by.contains("pid ") && by.contains("application 'worker-7'"),
                "{by}"
            );
        }
        other => panic!("not blocked: {other:?}"),
    }
    let waited = began.elapsed();
    assert!(
        waited >= Duration::from_millis(1900) && waited < Duration::from_millis(3500),
        "{waited:?}"
    );
    // The same client goes on, with nothing of the bounds left behind.
    for setting in ["lock_timeout", "idle_in_transaction_session_timeout"] {
        let row = client.query_one(&format!("SHOW {setting}"), &[]).await.unwrap();
        assert_eq!(row.get::<_, String>(0), "0", "{setting}");
    }
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(add(&mut client, &presents("1", 34), 5).await.unwrap(), 105);
}

#[tokio::test]
async fn after_a_blocked_update_the_transaction_is_over_and_says_so() {
    let database = accounts().await;
    let holder = database.client().await;
    holder
        .batch_execute("BEGIN; UPDATE account SET balance = 0 WHERE id = 1")
        .await
        .unwrap();
    let mut client = database.client().await;
    let bounds = Bounds::new(Duration::from_millis(50), Duration::from_secs(5)).unwrap();
    let mut transaction = begin_column(&mut client, &guard(), &presents("1", 34), bounds)
        .await
        .unwrap();
    let blocked = transaction.update("", "", &[]).await;
    assert!(matches!(blocked, Err(GuardError::Blocked { .. })), "{blocked:?}");
    let again = transaction.update("", "", &[]).await;
    assert!(matches!(again, Err(GuardError::Misuse(_))), "{again:?}");
    let commit = transaction.commit(Effect::Applied).await;
    assert!(matches!(commit, Err(GuardError::Misuse(_))), "{commit:?}");
}

#[tokio::test]
async fn a_holder_idle_in_its_transaction_loses_it_and_its_row_is_free() {
    let database = accounts().await;
    let mut old = database.client().await;
    let bounds = Bounds::new(Duration::from_secs(2), Duration::from_millis(300)).unwrap();
    let mut transaction = begin_column(&mut old, &guard(), &presents("1", 33), bounds)
        .await
        .unwrap();
    transaction
        .update("balance = balance + 1", "", &[])
        .await
        .unwrap();

    // Its successor waits for the row, which the server frees at the idle bound.
    let mut new = database.client().await;
    assert_eq!(add(&mut new, &presents("1", 34), 5).await.unwrap(), 105);

    let late = transaction.commit(Effect::Applied).await;
    assert!(
        matches!(
            late,
            Err(GuardError::Unavailable { .. } | GuardError::Unknown { .. } | GuardError::Retryable { .. })
        ),
        "{late:?}"
    );
    let mut old = database.client().await;
    let (presented, seen) = (Token::new(33).unwrap(), Token::new(34).unwrap());
    let again = refused(add(&mut old, &presents("1", 33), 1).await);
    assert_eq!(again, Refused::Claim(Refusal::Stale { presented, seen }));
    assert_eq!(
        database.number("SELECT balance FROM account WHERE id = 1").await,
        105
    );
}

#[tokio::test]
async fn the_bounds_hold_for_the_transaction_alone_and_a_commit_is_on_disk() {
    let database = accounts().await;
    let mut client = database.client().await;
    client
        .batch_execute("SET synchronous_commit = off")
        .await
        .unwrap();
    let transaction = begin_column(&mut client, &guard(), &presents("1", 34), Bounds::default())
        .await
        .unwrap();
    for (setting, value) in [
        ("lock_timeout", "2s"),
        ("idle_in_transaction_session_timeout", "5s"),
        ("synchronous_commit", "local"),
    ] {
        let row = transaction
            .client()
            .query_one(&format!("SHOW {setting}"), &[])
            .await
            .unwrap();
        assert_eq!(row.get::<_, String>(0), value, "{setting}");
    }
    transaction.rollback().await.unwrap();
    client.batch_execute("SET synchronous_commit = on").await.unwrap();
    let transaction = begin_column(&mut client, &guard(), &presents("1", 34), Bounds::default())
        .await
        .unwrap();
    let row = transaction
        .client()
        .query_one("SHOW synchronous_commit", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, String>(0), "on", "a stricter setting stays");
}

#[tokio::test]
async fn a_dropped_transaction_is_rolled_back_before_the_client_goes_on() {
    let database = accounts().await;
    let mut client = database.client().await;
    let mut transaction = begin_column(&mut client, &guard(), &presents("1", 34), Bounds::default())
        .await
        .unwrap();
    transaction.update("balance = 0", "", &[]).await.unwrap();
    drop(transaction);
    let row = client
        .query_one("SELECT balance, fence FROM account WHERE id = 1", &[])
        .await
        .unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (100, 30));
    assert_eq!(add(&mut client, &presents("1", 33), 5).await.unwrap(), 105);
}

#[tokio::test]
async fn commit_answers_only_for_what_the_server_committed() {
    let database = accounts().await;
    let mut client = database.client().await;
    // A failed statement, swallowed: the server would answer COMMIT with ROLLBACK.
    let mut transaction = begin_column(&mut client, &guard(), &presents("1", 34), Bounds::default())
        .await
        .unwrap();
    transaction.update("balance = 0", "", &[]).await.unwrap();
    transaction
        .client()
        .batch_execute("SELECT 1/0")
        .await
        .unwrap_err();
    match transaction.commit(Effect::Applied).await {
        Err(GuardError::Database { sqlstate, .. }) => assert_eq!(sqlstate.as_deref(), Some("25P02")),
        other => panic!("committed a failed transaction: {other:?}"),
    }
    // Ended inside: whatever COMMIT would say is about another transaction.
    let mut transaction = begin_column(&mut client, &guard(), &presents("1", 34), Bounds::default())
        .await
        .unwrap();
    transaction.update("balance = 0", "", &[]).await.unwrap();
    transaction
        .client()
        .batch_execute("ROLLBACK; BEGIN")
        .await
        .unwrap();
    let ended = transaction.commit(Effect::Applied).await;
    assert!(matches!(ended, Err(GuardError::Unknown { .. })), "{ended:?}");
    // Nothing was compared.
    let transaction = begin_column(&mut client, &guard(), &presents("1", 34), Bounds::default())
        .await
        .unwrap();
    let unguarded = transaction.commit(Effect::Applied).await;
    assert!(matches!(unguarded, Err(GuardError::Misuse(_))), "{unguarded:?}");
    assert_eq!(
        database.number("SELECT balance FROM account WHERE id = 1").await,
        100
    );
}

#[tokio::test]
async fn a_key_that_names_two_rows_is_refused_whole() {
    let database = accounts().await;
    let mut client = database.client().await;
    let by_balance = ColumnGuard::new("account", "balance", "fence").unwrap();
    let mut transaction = begin_column(&mut client, &by_balance, &presents("100", 40), Bounds::default())
        .await
        .unwrap();
    let both = transaction.update("", "", &[]).await;
    assert!(matches!(both, Err(GuardError::Misuse(_))), "{both:?}");
    drop(transaction);
    assert_eq!(database.number("SELECT max(fence) FROM account").await, 35);
}

#[tokio::test]
async fn a_row_moved_to_another_partition_meanwhile_is_tried_again_as_a_whole() {
    let database = Database::guarded().await;
    database
        .run(
            "CREATE TABLE account (id bigint, region text, fence bigint NOT NULL, PRIMARY KEY (id, region))
                 PARTITION BY LIST (region);
             CREATE TABLE account_eu PARTITION OF account FOR VALUES IN ('eu');
             CREATE TABLE account_us PARTITION OF account FOR VALUES IN ('us');
             SELECT fence.protect_column('account', 'paydb.balance', 'id', 'fence');
             INSERT INTO account VALUES (1, 'eu', 30);",
        )
        .await;
    let mover = database.client().await;
    mover
        .batch_execute("BEGIN; UPDATE account SET region = 'us', fence = 34 WHERE id = 1")
        .await
        .unwrap();
    let waiting = async |token: i64| {
        let mut client = database.client().await;
        let claim = presents("1", token);
        let mut transaction = begin_column(&mut client, &guard(), &claim, Bounds::default())
            .await
            .unwrap();
        transaction.update("", "", &[]).await.map(|_row| ())
    };
    let commit = async {
        wait_for_lock_waiters(&database, 2).await;
        mover.batch_execute("COMMIT").await.unwrap();
    };
    let (zombie, rightful, ()) = tokio::join!(waiting(33), waiting(35), commit);
    for moved in [zombie, rightful] {
        assert!(
            matches!(&moved, Err(GuardError::Retryable { sqlstate, .. }) if sqlstate == "40001"),
            "{moved:?}"
        );
    }
    // In new transactions each gets its own answer.
    let (presented, seen) = (Token::new(33).unwrap(), Token::new(34).unwrap());
    assert_eq!(
        refused(waiting(33).await),
        Refused::Claim(Refusal::Stale { presented, seen })
    );
    waiting(35).await.unwrap();
}

#[tokio::test]
async fn keys_of_every_allowed_type_find_their_row() {
    let database = Database::guarded().await;
    let uuid = "123e4567-e89b-12d3-a456-426614174000";
    for (kind, key) in [
        ("smallint", "-7"),
        ("integer", "42"),
        ("bigint", "42"),
        ("uuid", uuid),
        ("text", "ü/\\ 'x"),
        ("varchar(9)", "a"),
    ] {
        let mut client = database.client().await;
        let sql = format!(
            "DROP TABLE IF EXISTS account; CREATE TABLE account (id {kind} PRIMARY KEY, fence bigint NOT NULL DEFAULT 0);
             SELECT fence.protect_column('account', 'paydb.balance', 'id', 'fence');
             INSERT INTO account (id) VALUES ('{}')",
            key.replace('\'', "''")
        );
        client.batch_execute(&sql).await.unwrap();
        let mut transaction = begin_column(&mut client, &guard(), &presents(key, 34), Bounds::default())
            .await
            .unwrap();
        transaction.update("", "", &[]).await.unwrap();
        drop(transaction.commit(Effect::Applied).await.unwrap());
        let mut transaction = begin_column(&mut client, &guard(), &presents(key, 33), Bounds::default())
            .await
            .unwrap();
        let stale = refused(transaction.update("", "", &[]).await);
        assert!(
            matches!(stale, Refused::Claim(Refusal::Stale { .. })),
            "{kind}: {stale:?}"
        );
    }
}

#[test]
fn bounds_laxer_than_the_guards_own_are_refused() {
    let ms = Duration::from_millis;
    for (lock_wait, idle) in [(2001, 5000), (2000, 5001), (0, 5000), (2000, 0)] {
        Bounds::new(ms(lock_wait), ms(idle)).unwrap_err();
    }
    assert_eq!(Bounds::new(ms(2000), ms(5000)).unwrap(), Bounds::default());
}
