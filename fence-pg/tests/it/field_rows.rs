//! Statements that touch no row, or have to be tried again, for reasons that are not a stale token.

use fence_core::{Claim, Effect, Token};
use fence_pg::tokio_postgres::{Bounds, ColumnGuard, begin_column};
use fence_pg::{GuardError, Refused};
use pause_kit::services::for_tests;
use tokio_postgres::Client;

use crate::column::accounts;
use crate::enforce::in_transaction;
use crate::support::{Database, admit, claim, client, wait_for_lock_waiters};

async fn add_five(client: &mut Client, key: &str, token: i64) -> Result<(), GuardError> {
    let claim = Claim {
        token: Token::new(token).unwrap(),
        ..claim(key, 1)
    };
    let guard = ColumnGuard::new("account", "id", "fence").unwrap();
    let mut transaction = begin_column(client, &guard, &claim, Bounds::default()).await?;
    transaction.update("balance = balance + 5", "", &[]).await?;
    drop(transaction.commit(Effect::Applied).await?);
    Ok(())
}

/// The owner of a table sees every row of it; this role sees what the policies say.
async fn application(database: &Database) -> Client {
    let postgres = for_tests().await.postgres();
    let name = database.url.database();
    let login = postgres.create_login(&format!("{name}_rows")).await.unwrap();
    let role = &login.role;
    database
        .run(&format!(
            "GRANT CONNECT ON DATABASE {name} TO {role}; GRANT USAGE ON SCHEMA public, fence TO {role};
             GRANT SELECT, INSERT, UPDATE ON account TO {role};
             GRANT EXECUTE ON FUNCTION fence.explain_column, fence.explain_block TO {role};"
        ))
        .await;
    client(&postgres.url(name, &login)).await
}

#[tokio::test]
async fn a_row_that_may_not_be_changed_is_neither_stale_nor_applied_whatever_it_bears() {
    // Account 1 bears token 30, account 2 bears 35; 34 is presented to both.
    for (policies, of_older, of_newer) in [
        // Seen and not changed, not even seen, and changed into what must not be.
        ("FOR SELECT USING (true)", "not found", "stale"),
        ("FOR ALL USING (false)", "not found", "not found"),
        ("FOR ALL USING (balance < 0)", "not found", "not found"),
        (
            "FOR ALL USING (true) WITH CHECK (balance <= 100)",
            "42501",
            "stale",
        ),
    ] {
        let database = accounts().await;
        database
            .run(&format!(
                "ALTER TABLE account ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON account {policies}"
            ))
            .await;
        let mut application = application(&database).await;
        for (key, expected) in [("1", of_older), ("2", of_newer)] {
            let came = match add_five(&mut application, key, 34).await {
                Err(GuardError::NotFound) => "not found".to_owned(),
                Err(GuardError::Refused(Refused::Claim(fence_core::Refusal::Stale { .. }))) => "stale".into(),
                Err(GuardError::Database { sqlstate, .. }) => sqlstate.unwrap(),
                other => panic!("{policies}, account {key}: {other:?}"),
            };
            assert_eq!(came, expected, "{policies}, account {key}");
        }
        let sum = database.number("SELECT sum(balance)::bigint FROM account").await;
        assert_eq!(sum, 200, "{policies}");
    }
}

#[tokio::test]
async fn a_statement_that_something_else_suppressed_or_rewrote_is_not_applied() {
    for suppressed in [
        "CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
         CREATE TRIGGER skip BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION skip()",
        "CREATE RULE skip AS ON UPDATE TO account DO INSTEAD NOTHING",
        "CREATE TABLE elsewhere (LIKE account);
         CREATE RULE elsewhere AS ON UPDATE TO account DO INSTEAD INSERT INTO elsewhere SELECT NEW.*",
    ] {
        let database = accounts().await;
        database.run(suppressed).await;
        let came = add_five(&mut database.client().await, "1", 34).await;
        assert!(
            matches!(
                came,
                Err(GuardError::NotFound | GuardError::Retryable { .. } | GuardError::Database { .. })
            ),
            "{suppressed}: {came:?}"
        );
        let row = "SELECT balance + fence FROM account WHERE id = 1";
        assert_eq!(database.number(row).await, 130, "{suppressed}");
    }
}

#[tokio::test]
async fn a_row_deleted_while_the_update_waited_is_not_found() {
    let database = accounts().await;
    let other = database.client().await;
    other
        .batch_execute("BEGIN; DELETE FROM account WHERE id = 1")
        .await
        .unwrap();
    let commit = async {
        wait_for_lock_waiters(&database, 1).await;
        other.batch_execute("COMMIT").await.unwrap();
    };
    let mut client = database.client().await;
    let (came, ()) = tokio::join!(add_five(&mut client, "1", 34), commit);
    assert!(matches!(came, Err(GuardError::NotFound)), "{came:?}");
}

/// Ways to write an account under the column guard, each one statement; `{token}` is presented.
const STATEMENTS: [&str; 3] = [
    "UPDATE account SET balance = balance + 5, fence = {token} WHERE id = 1 AND fence <= {token}",
    "MERGE INTO account a USING (VALUES (1::bigint, {token}::bigint)) s (id, token) ON a.id = s.id
         WHEN MATCHED AND a.fence <= s.token THEN UPDATE SET balance = a.balance + 5, fence = s.token
         WHEN NOT MATCHED THEN INSERT VALUES (s.id, 5, s.token)",
    "INSERT INTO account AS a VALUES (1, 5, {token}) ON CONFLICT (id) DO UPDATE
         SET balance = a.balance + 5, fence = excluded.fence WHERE a.fence <= excluded.fence",
];

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// Runs a guarded statement: how many rows it touched, or the code of the refusal; 0 rows are explained in the same
/// transaction.
async fn guarded(client: &Client, level: &str, statement: &str, token: i64) -> Result<u64, String> {
    let code = |error: tokio_postgres::Error| error.code().unwrap().code().to_owned();
    let begin = format!("BEGIN ISOLATION LEVEL {level}");
    client.batch_execute(&begin).await.unwrap();
    let came = async {
        let rows = client
            .execute(&statement.replace("{token}", &token.to_string()), &[])
            .await
            .map_err(code)?;
        if rows == 0 {
            let explain = format!("SELECT fence.explain_column('account', 'id', 'fence', '1', {token})");
            client.batch_execute(&explain).await.map_err(code)?;
        }
        Ok(rows)
    }
    .await;
    client.batch_execute("COMMIT").await.unwrap();
    came
}

#[tokio::test]
async fn every_statement_that_waits_for_a_newer_holder_decides_again_by_what_that_one_wrote() {
    let database = accounts().await;
    let newer = database.client().await;
    let client = database.client().await;
    for statement in STATEMENTS {
        for level in LEVELS {
            for (token, decided) in [(33, Err("ZF001".to_owned())), (35, Ok(1))] {
                let what = format!("{level}, {token}: {statement}");
                newer
                    .batch_execute(
                        "DELETE FROM account WHERE id = 1; INSERT INTO account VALUES (1, 100, 30)",
                    )
                    .await
                    .unwrap();
                newer
                    .batch_execute("BEGIN; UPDATE account SET balance = 0, fence = 34 WHERE id = 1")
                    .await
                    .unwrap();
                let commit = async {
                    wait_for_lock_waiters(&database, 1).await;
                    newer.batch_execute("COMMIT").await.unwrap();
                };
                let (mut came, ()) = tokio::join!(guarded(&client, level, statement, token), commit);
                if level != "READ COMMITTED" {
                    // Its snapshot is older than the newer holder's write: nothing is decided, nothing is written.
                    assert_eq!(came, Err("40001".to_owned()), "{what}");
                    came = guarded(&client, level, statement, token).await;
                }
                assert_eq!(came, decided, "{what}");
                let written = database
                    .number("SELECT balance * 100 + fence FROM account WHERE id = 1")
                    .await;
                assert_eq!(written, if token == 35 { 535 } else { 34 }, "{what}");
                assert_eq!(database.number("SELECT count(*) FROM account").await, 2, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn under_the_mark_guard_a_row_that_moves_to_another_partition_is_nobodys_retry() {
    let database = Database::guarded().await;
    database
        .run(
            "CREATE TABLE seat (account text, region text, taken bigint NOT NULL) PARTITION BY LIST (region);
             CREATE TABLE seat_eu PARTITION OF seat FOR VALUES IN ('eu');
             CREATE TABLE seat_us PARTITION OF seat FOR VALUES IN ('us');
             SELECT fence.protect('seat', 'paydb.account', 'account');",
        )
        .await;
    let newer = database.client().await;
    let client = database.client().await;
    for (number, level) in LEVELS.into_iter().enumerate() {
        for (revision, decided) in [(33, Some("ZF001")), (35, None)] {
            let account = format!("acct-{number}-{revision}");
            let insert = format!("INSERT INTO seat VALUES ('{account}', 'eu', 0)");
            in_transaction(&newer, &[&admit(&account, 30), &insert])
                .await
                .unwrap();
            let moves = format!("UPDATE seat SET region = 'us' WHERE account = '{account}'");
            newer
                .batch_execute(&format!("BEGIN; {} {moves}", admit(&account, 34)))
                .await
                .unwrap();

            let admission = admit(&account, revision);
            let takes = format!("UPDATE seat SET taken = taken + 1 WHERE account = '{account}'");
            let begin = format!("SET TRANSACTION ISOLATION LEVEL {level}");
            let statements: [&str; 3] = [&begin, &admission, &takes];
            let commit = async {
                wait_for_lock_waiters(&database, 1).await;
                newer.batch_execute("COMMIT").await.unwrap();
            };
            let (mut came, ()) = tokio::join!(in_transaction(&client, &statements), commit);
            if level != "READ COMMITTED" {
                assert_eq!(came, Err("40001".to_owned()), "{level}, {revision}");
                came = in_transaction(&client, &statements).await;
            }
            assert_eq!(came.err().as_deref(), decided, "{level}, {revision}");
            let found = format!("SELECT taken FROM seat_us WHERE account = '{account}'");
            let taken = database.number(&found).await;
            assert_eq!(taken, i64::from(decided.is_none()), "{level}, {revision}");
        }
    }
}
