//! What the database refuses on a protected table, whoever writes and however.

use bytes::Bytes;
use futures_util::SinkExt as _;
use tokio_postgres::Client;

use crate::support::{Database, OPEN, admit, claim, code};

/// `acct-1` and `acct-2` have a row each.
pub(crate) async fn with_rows() -> (Database, Client) {
    let database = Database::guarded().await;
    let client = database.client().await;
    for account in ["acct-1", "acct-2"] {
        in_transaction(
            &client,
            &[
                &admit(account, 10),
                &format!("INSERT INTO transfer (from_account, amount) VALUES ('{account}', 5)"),
            ],
        )
        .await
        .unwrap();
    }
    (database, client)
}

/// Runs statements one by one in one transaction, commits, or rolls back at the first error and returns its code.
pub(crate) async fn in_transaction(client: &Client, statements: &[&str]) -> Result<(), String> {
    client.batch_execute("BEGIN").await.unwrap();
    for sql in statements {
        if let Err(error) = client.batch_execute(sql).await {
            client.batch_execute("ROLLBACK").await.unwrap();
            return Err(error.code().expect("the server answered").code().to_owned());
        }
    }
    client
        .batch_execute("COMMIT")
        .await
        .map_err(|error| error.code().unwrap().code().to_owned())
}

#[tokio::test]
async fn no_statement_writes_a_row_whose_key_was_not_admitted() {
    let (database, client) = with_rows().await;
    database
        .run("ALTER TABLE transfer ADD UNIQUE (from_account)")
        .await;
    for sql in [
        "INSERT INTO transfer (from_account, amount) VALUES ('acct-3', 5)",
        "INSERT INTO transfer (from_account, amount) SELECT 'acct-3', 5",
        "UPDATE transfer SET amount = 0 WHERE from_account = 'acct-1'",
        "UPDATE transfer SET from_account = 'acct-3' WHERE from_account = 'acct-1'",
        "DELETE FROM transfer WHERE from_account = 'acct-1'",
        "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 7) ON CONFLICT (from_account) DO UPDATE SET amount = 7",
        "MERGE INTO transfer t USING (VALUES ('acct-1')) s (a) ON t.from_account = s.a WHEN MATCHED THEN DELETE",
        "MERGE INTO transfer t USING (VALUES ('acct-3')) s (a) ON t.from_account = s.a
             WHEN NOT MATCHED THEN INSERT (from_account, amount) VALUES (s.a, 1)",
        "WITH gone AS (DELETE FROM transfer RETURNING amount) SELECT sum(amount) FROM gone",
    ] {
        assert_eq!(
            in_transaction(&client, &[sql]).await.unwrap_err(),
            "ZF002",
            "{sql}"
        );
        let other_key = admit("acct-9", 20);
        assert_eq!(
            in_transaction(&client, &[&other_key, sql]).await.unwrap_err(),
            "ZF006",
            "{sql}"
        );
        let other_class = format!("SELECT fence.admit('{OPEN}', 'acct-1', 20)");
        assert_eq!(
            in_transaction(&client, &[&other_class, sql]).await.unwrap_err(),
            "ZF002",
            "{sql}"
        );
    }
    assert_eq!(
        database.number("SELECT sum(amount)::bigint FROM transfer").await,
        10
    );
    // Each of them, admitted, goes through.
    for sql in [
        "UPDATE transfer SET amount = 1 WHERE from_account = 'acct-1'",
        "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 7) ON CONFLICT (from_account) DO UPDATE SET amount = 7",
        "DELETE FROM transfer WHERE from_account = 'acct-1'",
    ] {
        in_transaction(&client, &[&admit("acct-1", 20), sql])
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn both_keys_of_a_changed_key_must_be_admitted() {
    let (_database, client) = with_rows().await;
    let moves = "UPDATE transfer SET from_account = 'acct-3' WHERE from_account = 'acct-1'";
    let (old, new) = (admit("acct-1", 20), admit("acct-3", 20));
    assert_eq!(
        in_transaction(&client, &[&old, moves]).await.unwrap_err(),
        "ZF006"
    );
    assert_eq!(
        in_transaction(&client, &[&new, moves]).await.unwrap_err(),
        "ZF006"
    );
    in_transaction(&client, &[&old, &new, moves]).await.unwrap();
}

#[tokio::test]
async fn copy_is_refused_whole() {
    let (database, client) = with_rows().await;
    client
        .batch_execute(&format!("BEGIN; {}", admit("acct-1", 20)))
        .await
        .unwrap();
    let mut copy = Box::pin(
        client
            .copy_in::<_, Bytes>("COPY transfer (from_account, amount) FROM STDIN")
            .await
            .unwrap(),
    );
    copy.send(Bytes::from_static(b"acct-1\t1\nacct-2\t1\n"))
        .await
        .unwrap();
    let error = copy.as_mut().finish().await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "ZF006");
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM transfer").await, 2);
}

#[tokio::test]
async fn truncate_and_a_replication_role_do_not_walk_around_the_guard() {
    let (database, client) = with_rows().await;
    assert_eq!(code(&client, "TRUNCATE transfer").await, "ZF002");
    assert_eq!(
        in_transaction(&client, &[&admit("acct-1", 20), "TRUNCATE transfer"])
            .await
            .unwrap_err(),
        "ZF002"
    );
    let superuser = database.superuser().await;
    superuser
        .batch_execute("SET session_replication_role = replica")
        .await
        .unwrap();
    for sql in [
        "TRUNCATE transfer",
        "UPDATE transfer SET amount = 0",
        "DELETE FROM transfer",
    ] {
        assert_eq!(code(&superuser, sql).await, "ZF002", "{sql}");
    }
    for sql in ["DELETE FROM fence.high_water", "TRUNCATE fence.high_water"] {
        assert_eq!(code(&superuser, sql).await, "55000", "{sql}");
    }
}

#[tokio::test]
async fn evidence_goes_with_the_savepoint_that_it_was_made_in() {
    let (_database, client) = with_rows().await;
    let insert = "INSERT INTO transfer (from_account, amount) VALUES ('acct-3', 5)";
    let admission = admit("acct-3", 20);
    let undone = ["SAVEPOINT s", &admission, "ROLLBACK TO s", insert];
    assert_eq!(in_transaction(&client, &undone).await.unwrap_err(), "ZF002");
    for kept in [
        vec!["SAVEPOINT s", &admission, "RELEASE s", insert],
        vec![&admission, "SAVEPOINT s", insert],
        vec![&admission, "SAVEPOINT s", "SELECT 1", "ROLLBACK TO s", insert],
    ] {
        in_transaction(&client, &kept).await.unwrap();
    }
    // An admission lasts as long as its transaction.
    client.batch_execute(&admission).await.unwrap();
    assert_eq!(code(&client, insert).await, "ZF002");
}

#[tokio::test]
async fn a_transaction_id_that_a_restored_database_repeats_is_no_evidence() {
    let (_database, client) = with_rows().await;
    for as_restored in [
        "admitted_xid = pg_current_xact_id(), admitted_at = '2020-01-01'",
        "admitted_xid = '3', admitted_at = transaction_timestamp()",
    ] {
        let statements = [
            "ALTER TABLE fence.high_water DISABLE TRIGGER stamp_mark",
            &format!("UPDATE fence.high_water SET {as_restored}"),
            "DELETE FROM transfer",
        ];
        assert_eq!(
            in_transaction(&client, &statements).await.unwrap_err(),
            "ZF002",
            "{as_restored}"
        );
    }
}

#[tokio::test]
async fn no_setting_of_the_session_stands_in_for_an_admission() {
    let (database, client) = with_rows().await;
    let delete = "DELETE FROM transfer";
    for value in ["", "paydb.account", "paydb.account paydb.account"] {
        let set = format!(
            "SELECT set_config('fence.admitted_classes', '{value}', false), set_config('fence.token', '40', false)"
        );
        client.batch_execute(&set).await.unwrap();
        let refused = code(&client, delete).await;
        assert!(refused == "ZF002" || refused == "ZF006", "{value:?}: {refused}");
    }
    // Nor does garbage in the guard's own settings keep a rightful admission out.
    client
        .batch_execute("SELECT set_config('fence.waited_ms', 'x', false)")
        .await
        .unwrap();
    let holder = database.client().await;
    holder
        .batch_execute(&format!("BEGIN; {}", admit("acct-1", 20)))
        .await
        .unwrap();
    client.batch_execute("SET lock_timeout = '50ms'").await.unwrap();
    assert_eq!(code(&client, &admit("acct-1", 20)).await, "55P03");
    holder.batch_execute("COMMIT").await.unwrap();
    client.batch_execute(&admit("acct-1", 20)).await.unwrap();
}

#[tokio::test]
async fn a_trigger_that_changes_the_key_late_is_seen_through() {
    let (database, client) = with_rows().await;
    database
        .run(
            "CREATE FUNCTION redirect() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.from_account := 'acct-2'; RETURN NEW; END $$;
             CREATE TRIGGER zzz_redirect BEFORE INSERT ON transfer FOR EACH ROW EXECUTE FUNCTION redirect()",
        )
        .await;
    let insert = "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5)";
    assert_eq!(
        in_transaction(&client, &[&admit("acct-1", 20), insert])
            .await
            .unwrap_err(),
        "ZF006"
    );
    in_transaction(&client, &[&admit("acct-2", 20), insert])
        .await
        .unwrap();
}

#[tokio::test]
async fn a_cascade_into_a_guarded_table_is_refused_and_leaves_no_orphan() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE parent (id text PRIMARY KEY);
             CREATE TABLE child (id text PRIMARY KEY, parent text REFERENCES parent ON DELETE CASCADE);
             SELECT fence.protect('child', 'paydb.child', 'id');
             INSERT INTO parent VALUES ('p')",
        )
        .await
        .unwrap();
    let admission = "SELECT fence.admit('paydb.child', 'c', 1)";
    in_transaction(&client, &[admission, "INSERT INTO child VALUES ('c', 'p')"])
        .await
        .unwrap();
    assert_eq!(
        in_transaction(&client, &["DELETE FROM parent"])
            .await
            .unwrap_err(),
        "ZF002"
    );
    assert_eq!(
        database
            .number("SELECT count(*) FROM parent JOIN child ON child.parent = parent.id")
            .await,
        1
    );
    in_transaction(&client, &[admission, "DELETE FROM parent"])
        .await
        .unwrap();
}

#[tokio::test]
async fn a_deferred_constraint_that_fails_at_commit_is_not_applied() {
    let database = Database::guarded().await;
    database
        .run(
            "CREATE TABLE account (id text PRIMARY KEY);
             ALTER TABLE transfer ADD FOREIGN KEY (from_account) REFERENCES account DEFERRABLE INITIALLY DEFERRED",
        )
        .await;
    let mut guarded = fence_pg::sqlx::begin(&database.pool, &claim("acct-1", 34))
        .await
        .unwrap();
    sqlx::query("INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5)")
        .execute(guarded.connection())
        .await
        .unwrap();
    match guarded.commit(fence_core::Effect::Applied).await {
        Err(fence_pg::GuardError::Database { sqlstate, .. }) => {
            assert_eq!(sqlstate.as_deref(), Some("23503"))
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(database.number("SELECT count(*) FROM fence.high_water").await, 0);
}
