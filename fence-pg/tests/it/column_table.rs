//! The table of the column guard: what its trigger refuses, and which columns it takes.

use fence_pg::GuardError;

use crate::column::accounts;
use crate::support::{Database, code, failure};

#[tokio::test]
async fn the_column_never_falls_whatever_statement_forgets_the_token() {
    let database = accounts().await;
    let client = database.client().await;
    let fell = failure(&client, "UPDATE account SET fence = 29 WHERE id = 1").await;
    assert_eq!(fell.code().code(), "ZF001");
    assert_eq!(fell.detail(), Some("presented 29, seen 30"));
    let upsert = "INSERT INTO account VALUES (1, 0, 1) ON CONFLICT (id) DO UPDATE SET fence = EXCLUDED.fence";
    assert_eq!(code(&client, upsert).await, "ZF001");
    client
        .batch_execute("UPDATE account SET balance = 1; UPDATE account SET fence = 36")
        .await
        .unwrap();
    let superuser = database.superuser().await;
    let replica = "SET session_replication_role = replica; UPDATE account SET fence = 1";
    assert_eq!(code(&superuser, replica).await, "ZF001");
}

#[tokio::test]
async fn the_column_does_not_fall_on_the_way_to_another_partition() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE batch (id text, region text, fence bigint NOT NULL, PRIMARY KEY (id, region))
                 PARTITION BY LIST (region);
             CREATE TABLE batch_eu PARTITION OF batch FOR VALUES IN ('eu');
             SELECT fence.protect_column('batch', 'paydb.batch', 'id', 'fence');
             CREATE TABLE batch_us PARTITION OF batch FOR VALUES IN ('us');
             INSERT INTO batch VALUES ('b-1', 'eu', 34), ('b-2', 'us', 34);",
        )
        .await
        .unwrap();
    for sql in [
        "UPDATE batch SET region = 'us', fence = 33 WHERE id = 'b-1'",
        "UPDATE batch_eu SET fence = 33",
        "UPDATE batch_us SET fence = 33",
    ] {
        assert_eq!(code(&client, sql).await, "ZF001", "{sql}");
    }
    client
        .batch_execute("UPDATE batch SET region = 'us', fence = 35 WHERE id = 'b-1'")
        .await
        .unwrap();
}

#[tokio::test]
async fn unsafe_token_columns_are_refused_with_what_to_change() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE t (id text PRIMARY KEY, a text NOT NULL, n numeric NOT NULL, i integer NOT NULL, b bigint,
                             j jsonb NOT NULL, good bigint NOT NULL);
             CREATE VIEW v AS SELECT * FROM t",
        )
        .await
        .unwrap();
    for (key, column, expected) in [
        ("id", "a", "42804"),
        ("id", "n", "42804"),
        ("id", "i", "42804"),
        ("id", "b", "23502"),
        ("id", "absent", "42703"),
        ("absent", "good", "42703"),
        ("j", "good", "42804"),
    ] {
        let error = failure(
            &client,
            &format!("SELECT fence.protect_column('t', 'c', '{key}', '{column}')"),
        )
        .await;
        assert_eq!(error.code().code(), expected, "{key}, {column}");
        assert!(key == "absent" || error.hint().is_some(), "{key}, {column}");
    }
    assert_eq!(
        code(&client, "SELECT fence.protect_column('v', 'c', 'id', 'good')").await,
        "42809"
    );
    client
        .batch_execute("SELECT fence.protect_column('t', 'c', 'id', 'good')")
        .await
        .unwrap();
    client
        .batch_execute("SELECT fence.protect_column('t', 'c', 'id', 'good')")
        .await
        .unwrap();
    assert_eq!(
        code(&client, "SELECT fence.protect_column('t', 'd', 'id', 'good')").await,
        "42710"
    );
}

#[tokio::test]
async fn a_merge_with_its_token_in_when_matched_leaves_a_stale_row_alone() {
    let database = accounts().await;
    let client = database.client().await;
    let merge = |on: &str, when: &str| {
        format!(
            "MERGE INTO account a USING (VALUES (2::bigint, -5::bigint, 33::bigint)) s (id, balance, token) ON a.id = s.id {on}
             WHEN MATCHED {when} THEN UPDATE SET balance = s.balance, fence = s.token
             WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.balance, s.token)"
        )
    };
    let row = client
        .execute(&merge("", "AND a.fence <= s.token"), &[])
        .await
        .unwrap();
    assert_eq!(row, 0);
    // In ON, the stale row counts as not matched; the unique violation is not taken for a stale token.
    let error = client
        .execute(&merge("AND a.fence <= s.token", ""), &[])
        .await
        .unwrap_err();
    let sorted = fence_pg::tokio_postgres::sort(error);
    assert!(
        matches!(&sorted, GuardError::Database { sqlstate: Some(code), .. } if code == "23505"),
        "{sorted:?}"
    );
    assert_eq!(
        database.number("SELECT balance FROM account WHERE id = 2").await,
        100
    );
}
