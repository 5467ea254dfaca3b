//! The mark's row.

use crate::support::{CLASS, Database, admit, code, token};

#[tokio::test]
async fn every_admission_writes_the_marks_row_an_equal_one_too() {
    let database = Database::guarded().await;
    let version = async || -> String {
        database
            .text("SELECT xmin || ' ' || admitted_xid FROM fence.high_water")
            .await
    };
    database.run(&admit("acct-1", 34)).await;
    let first = version().await;
    database.run(&admit("acct-1", 34)).await;
    assert_ne!(version().await, first);
}

#[tokio::test]
async fn a_mark_never_falls_and_is_never_removed_even_by_its_owner() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client.batch_execute(&admit("acct-1", 34)).await.unwrap();
    client
        .batch_execute("UPDATE fence.high_water SET token = 1, grant_id = 'x'")
        .await
        .unwrap();
    let row = client
        .query_one("SELECT token, grant_id FROM fence.high_water", &[])
        .await
        .unwrap();
    assert_eq!(
        (row.get::<_, i64>(0), row.get::<_, &str>(1)),
        (token(34).as_i64(), "g34")
    );
    for sql in [
        "DELETE FROM fence.high_water",
        "TRUNCATE fence.high_water",
        "UPDATE fence.high_water SET key = 'acct-2'",
        "UPDATE fence.high_water SET class = 'c'",
    ] {
        assert_eq!(code(&client, sql).await, "55000", "{sql}");
    }
    assert_eq!(code(&client, &admit("acct-1", 33)).await, "ZF001");
}

#[tokio::test]
async fn a_mark_outlives_its_rows() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let write = |sql: &str| format!("BEGIN; {} {sql}; COMMIT", admit("acct-1", 34));
    client
        .batch_execute(&write(
            "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 1)",
        ))
        .await
        .unwrap();
    client
        .batch_execute(&write("DELETE FROM transfer"))
        .await
        .unwrap();
    assert_eq!(code(&client, &admit("acct-1", 33)).await, "ZF001");
}

#[tokio::test]
async fn another_admit_of_the_same_signature_gives_evidence_without_knowing_how() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client.batch_execute(&admit("acct-1", 34)).await.unwrap();
    client
        .batch_execute(
            "CREATE OR REPLACE FUNCTION fence.admit(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
             LANGUAGE sql AS $$
                 INSERT INTO fence.high_water (class, key, token, grant_id) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (class, key) DO UPDATE SET token = EXCLUDED.token, grant_id = EXCLUDED.grant_id
             $$",
        )
        .await
        .unwrap();
    // It refuses nothing; raise_mark is nothing but a call of it; the triggers still ask for an admission.
    let insert = "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 1)";
    client
        .batch_execute(&format!("BEGIN; {} {insert}; COMMIT", admit("acct-1", 33)))
        .await
        .unwrap();
    let raise = format!(
        "SELECT fence.raise_mark('{CLASS}', 'acct-1', {}, 'g32')",
        token(32)
    );
    client.batch_execute(&raise).await.unwrap();
    assert_eq!(code(&client, insert).await, "ZF002");
    assert_eq!(
        database.number("SELECT token FROM fence.high_water").await,
        token(34).as_i64()
    );
}

#[tokio::test]
async fn every_further_column_of_a_mark_has_a_default() {
    let database = Database::guarded().await;
    let without = database
        .number(
            "SELECT count(*) FROM pg_attribute a
             WHERE a.attrelid = 'fence.high_water'::regclass AND a.attnum > 0 AND NOT a.atthasdef
               AND a.attname NOT IN ('class', 'key', 'token', 'grant_id')",
        )
        .await;
    assert_eq!(without, 0);
}
