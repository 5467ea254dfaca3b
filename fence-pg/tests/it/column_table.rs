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

#[tokio::test]
async fn a_class_that_observes_counts_a_fall_and_an_enforced_one_refuses_it() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE batch (id text, region text, f bigint NOT NULL) PARTITION BY LIST (region);
             CREATE TABLE batch_eu PARTITION OF batch FOR VALUES IN ('eu');
             CREATE TABLE batch_us PARTITION OF batch FOR VALUES IN ('us');
             SELECT fence.protect_column('batch', 'paydb.batch', 'id', 'f', mode => 'observe');
             INSERT INTO batch VALUES ('b-1', 'eu', 34);",
        )
        .await
        .unwrap();
    for sql in [
        "UPDATE batch SET f = 33",
        "UPDATE batch SET f = 32, region = 'us'",
    ] {
        client.batch_execute(sql).await.unwrap();
    }
    // Let through as written, the move included.
    assert_eq!(
        database.text("SELECT region || f FROM batch").await
            + &database
                .text("SELECT string_agg(concat_ws(' ', '', relation, reason, transactions, last_key), '' ORDER BY 1) FROM fence.observed")
                .await,
        "us32 public.batch_eu token fell 2 b-1"
    );
    client
        .batch_execute("SELECT fence.enforce('paydb.batch')")
        .await
        .unwrap();
    for sql in [
        "UPDATE batch SET f = 31",
        "UPDATE batch SET f = 31, region = 'eu'",
    ] {
        assert_eq!(code(&client, sql).await, "ZF001", "{sql}");
    }
    client
        .batch_execute(
            "BEGIN; SELECT fence.danger_bypass('paydb.batch', 'put back'); UPDATE batch SET f = 1; COMMIT",
        )
        .await
        .unwrap();
}

#[tokio::test]
async fn a_column_does_not_fall_in_a_table_that_inherits_or_by_a_later_trigger() {
    let database = accounts().await;
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE heir () INHERITS (account); INSERT INTO heir VALUES (9, 0, 30);
             SELECT fence.protect_column('account', 'paydb.balance', 'id', 'fence');
             CREATE FUNCTION lower() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.fence := 1; RETURN NEW; END $$;",
        )
        .await
        .unwrap();
    assert_eq!(
        code(&client, "UPDATE account SET fence = 29 WHERE id = 9").await,
        "ZF001"
    );
    assert_eq!(code(&client, "UPDATE heir SET fence = 29").await, "ZF001");
    client
        .batch_execute("CREATE TRIGGER zzzz BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION lower()")
        .await
        .unwrap();
    assert_eq!(
        code(&client, "UPDATE account SET fence = 99 WHERE id = 1").await,
        "ZF001"
    );
    // One trigger is enough where no row can move, and each costs every UPDATE its part.
    let triggers = "SELECT string_agg(tgname, ' ') FROM pg_trigger WHERE tgrelid = 'heir'::regclass AND tgname LIKE '%fence%'";
    assert_eq!(database.text(triggers).await, "fence_column");
}

#[tokio::test]
async fn a_question_without_a_token_or_a_key_is_not_answered_with_no_such_row() {
    let database = accounts().await;
    let client = database.client().await;
    for (key, token, expected) in [
        ("'1'", "NULL", "ZF002 missing fencing token"),
        ("'999'", "NULL", "ZF002 missing fencing token"),
        ("'1'", "0", "ZF003 presented 0"),
        ("'999'", "-5", "ZF003 presented -5"),
        ("NULL", "34", "ZF006 key NULL"),
        ("'1'", "29", "ZF001 presented 29, seen 30"),
    ] {
        let sql = format!("SELECT fence.explain_column('account', 'id', 'fence', {key}, {token})");
        let refused = failure(&client, &sql).await;
        assert_eq!(
            format!("{} {}", refused.code().code(), refused.detail().unwrap()),
            expected,
            "{sql}"
        );
    }
}
