//! What is no evidence of an admission: what a transaction that has ended leaves behind, and a refusal that somebody swallowed.

use tokio_postgres::Client;

use crate::enforce::{in_transaction, with_rows};
use crate::support::{Database, OPEN, admit, code};

const INSERT: &str = "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 7)";

async fn rows(database: &Database) -> i64 {
    database
        .number("SELECT count(*) FROM transfer WHERE amount = 7")
        .await
}

#[tokio::test]
async fn an_admission_ends_with_its_transaction_however_the_next_one_follows() {
    let (database, client) = with_rows().await;
    database
        .run(&format!(
            "CREATE PROCEDURE admits_and_ends(how text) LANGUAGE plpgsql AS $$ BEGIN
                 PERFORM fence.admit('paydb.account', 'acct-1', {0}, 'g20');
                 IF how = 'commit' THEN COMMIT; ELSE ROLLBACK; END IF;
                 {INSERT};
             END $$",
            crate::support::token(20)
        ))
        .await;
    let admission = admit("acct-1", 20);
    for next in [
        // In one answer to one text, and in a chain: the session has not been without a transaction.
        format!("BEGIN; {admission} COMMIT; {INSERT}"),
        format!("BEGIN; {admission} COMMIT AND CHAIN; {INSERT}"),
        format!("BEGIN; {admission} ROLLBACK AND CHAIN; {INSERT}"),
        format!("BEGIN ISOLATION LEVEL SERIALIZABLE; {admission} COMMIT AND CHAIN; {INSERT}"),
        "CALL admits_and_ends('commit')".to_owned(),
        "CALL admits_and_ends('rollback')".to_owned(),
    ] {
        assert_eq!(code(&client, &next).await, "ZF002", "{next}");
        client.batch_execute("ROLLBACK").await.unwrap();
    }
    // The same texts without the end in the middle write.
    for whole in [
        format!("BEGIN; {admission} {INSERT}; COMMIT"),
        format!("{admission} {INSERT}"),
        format!("BEGIN; {admission} COMMIT AND CHAIN; {admission} {INSERT}; COMMIT"),
    ] {
        client.batch_execute(&whole).await.unwrap();
    }
    assert_eq!(rows(&database).await, 3);
}

#[tokio::test]
async fn a_prepared_statement_and_an_open_cursor_carry_no_admission_over() {
    let (database, client) = with_rows().await;
    let text = format!("PREPARE pay AS {INSERT}");
    client.batch_execute(&text).await.unwrap();
    let insert = client.prepare(INSERT).await.unwrap();
    let cursor = "DECLARE due CURSOR WITH HOLD FOR SELECT * FROM transfer WHERE from_account = 'acct-1'";
    in_transaction(&client, &[&admit("acct-1", 20), "EXECUTE pay", cursor])
        .await
        .unwrap();
    assert_eq!(code(&client, "EXECUTE pay").await, "ZF002");
    let again = client.execute(&insert, &[]).await.unwrap_err();
    assert_eq!(again.code().unwrap().code(), "ZF002");
    let through_the_cursor = "DO $$ DECLARE due transfer; BEGIN FETCH due INTO due; UPDATE transfer SET amount = 0 WHERE id = due.id; END $$";
    assert!(client.batch_execute(through_the_cursor).await.is_err());
    assert_eq!(rows(&database).await, 1);
}

/// What somebody does about a refused admission: with the statement that admits, and the one that writes.
const SWALLOWED: [&str; 3] = [
    "SAVEPOINT s; {admit} ROLLBACK TO s; {write}",
    "DO $do$ BEGIN BEGIN PERFORM * FROM ({admits}) a; EXCEPTION WHEN OTHERS THEN NULL; END; {write}; END $do$",
    "DO $do$ BEGIN BEGIN {write}; PERFORM * FROM ({admits}) a; EXCEPTION WHEN OTHERS THEN NULL; END; {write}; END $do$",
];

#[tokio::test]
async fn a_refusal_that_is_swallowed_writes_nothing_whatever_was_refused() {
    let (database, client) = with_rows().await;
    let held = database.client().await;
    let hold = format!("BEGIN; {}", admit("acct-3", 20));
    held.batch_execute(&hold).await.unwrap();
    client.batch_execute("SET lock_timeout = '50ms'").await.unwrap();
    let own = crate::support::token(10);
    for (what, admission, sqlstate) in [
        ("stale", admit("acct-1", 9), "ZF001"),
        (
            "a collision",
            format!("SELECT fence.admit('paydb.account', 'acct-1', {own}, 'other');"),
            "ZF004",
        ),
        (
            "outside the ranges",
            "SELECT fence.admit('paydb.account', 'acct-1', (2::bigint << 48) + 5, 'g5');".to_owned(),
            "ZF005",
        ),
        (
            "missing",
            "SELECT fence.admit('paydb.account', 'acct-1', NULL, 'g5');".to_owned(),
            "ZF002",
        ),
        ("held by another", admit("acct-3", 21), "55P03"),
    ] {
        assert_eq!(code(&client, &admission).await, sqlstate, "{what}");
        let key = if sqlstate == "55P03" { "acct-3" } else { "acct-1" };
        let write = format!("INSERT INTO transfer (from_account, amount) VALUES ('{key}', 7)");
        for swallowed in SWALLOWED {
            let text = swallowed
                .replace("{admit}", &admission)
                .replace("{admits}", admission.trim_end_matches(';'))
                .replace("{write}", &write);
            let came = come_to(&client, &text).await;
            assert!(came == "ZF002" || came == sqlstate, "{what}: {text}: {came}");
        }
    }
    held.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(rows(&database).await, 0);
}

/// The code of the last statement that failed, statement by statement as a program sends them; 00000 when it was committed.
async fn come_to(client: &Client, text: &str) -> String {
    if text.starts_with("DO ") {
        return in_transaction(client, &[text])
            .await
            .err()
            .unwrap_or("00000".into());
    }
    client.batch_execute("BEGIN").await.unwrap();
    let mut last = "00000".to_owned();
    for statement in text.split_inclusive(';') {
        if let Err(error) = client.batch_execute(statement).await {
            last = error.code().unwrap().code().to_owned();
        }
    }
    client.batch_execute("COMMIT").await.unwrap();
    last
}

#[tokio::test]
async fn an_earlier_admission_of_the_same_holder_stands_beside_a_swallowed_refusal_of_another() {
    let (database, client) = with_rows().await;
    // Inside a transaction that is rightly admitted, code of the old holder is called, and its refusal is swallowed.
    let old = admit("acct-1", 9);
    in_transaction(&client, &[&admit("acct-1", 20), "SAVEPOINT s"])
        .await
        .unwrap();
    client
        .batch_execute(&format!("BEGIN; {} SAVEPOINT s", admit("acct-1", 20)))
        .await
        .unwrap();
    assert_eq!(code(&client, &old).await, "ZF001");
    client
        .batch_execute(&format!("ROLLBACK TO s; {INSERT}; COMMIT"))
        .await
        .unwrap();
    assert_eq!(rows(&database).await, 1);
    let mark = database
        .number("SELECT token FROM fence.high_water WHERE key = 'acct-1'")
        .await;
    assert_eq!(mark, crate::support::token(20).as_i64());
}

#[tokio::test]
async fn whatever_settings_a_session_was_left_with_nothing_is_admitted_by_them_or_kept_out() {
    let (database, client) = with_rows().await;
    let names = client
        .query(
            "SELECT DISTINCT (regexp_matches(p.prosrc, '''(fence\\.[a-z_]+)''', 'g'))[1] FROM pg_proc p
             WHERE p.pronamespace = 'fence'::regnamespace AND p.prosrc ~ 'set(_config|ting)'",
            &[],
        )
        .await
        .unwrap();
    let names: Vec<String> = names.iter().map(|row| row.get(0)).collect();
    assert!(!names.is_empty(), "the guard uses settings for its words");
    for value in [
        "",
        "x",
        "0",
        "-1",
        "1999",
        "2000",
        "999999999999",
        "paydb.account",
        "paydb.account:616363742d31",
    ] {
        for name in &names {
            // Left by whoever had the connection before, as behind a pooler.
            client
                .execute("SELECT set_config($1, $2, false)", &[name, &value])
                .await
                .unwrap();
        }
        let refused = code(&client, INSERT).await;
        assert!(refused == "ZF002" || refused == "ZF006", "{value:?}: {refused}");
        in_transaction(&client, &[&admit("acct-1", 20), INSERT, &admit("acct-2", 20)])
            .await
            .unwrap();
        let open = format!("SELECT fence.admit('{OPEN}', 'acct-1', 20)");
        in_transaction(&client, &[&open]).await.unwrap();
    }
    assert_eq!(rows(&database).await, 9);
}
