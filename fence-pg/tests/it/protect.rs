//! Which tables `fence.protect` takes, and what it covers of them.

use crate::enforce::{in_transaction, with_rows};
use crate::support::{Database, code, failure};

#[tokio::test]
async fn every_partition_is_guarded_the_later_ones_too() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let protect = "SELECT fence.protect('item', 'paydb.item', 'region', 'id')";
    client
        .batch_execute(&format!(
            "CREATE TABLE item (region text, id uuid, n int, PRIMARY KEY (region, id)) PARTITION BY LIST (region);
             CREATE TABLE item_eu PARTITION OF item FOR VALUES IN ('eu');
             {protect};
             CREATE TABLE item_us PARTITION OF item FOR VALUES IN ('us');
             CREATE TABLE item_asia (LIKE item);
             ALTER TABLE item ATTACH PARTITION item_asia FOR VALUES IN ('asia');"
        ))
        .await
        .unwrap();
    let superuser = database.superuser().await;
    superuser
        .batch_execute("SET session_replication_role = replica")
        .await
        .unwrap();
    let id = "123E4567-E89B-12D3-A456-426614174000";
    for region in ["eu", "us", "asia"] {
        let admission = format!(
            "SELECT fence.admit('paydb.item', fence.key('{region}', '123e4567-e89b-12d3-a456-426614174000'), 1)"
        );
        for table in ["item".to_owned(), format!("item_{region}")] {
            let insert = format!("INSERT INTO {table} VALUES ('{region}', '{id}', 1)");
            assert_eq!(code(&client, &insert).await, "ZF002", "{insert}");
            assert_eq!(code(&superuser, &insert).await, "ZF002", "{insert}, as a replica");
        }
        let insert = format!("INSERT INTO item_{region} VALUES ('{region}', '{id}', 1)");
        in_transaction(&client, &[&admission, &insert]).await.unwrap();
        let moves =
            format!("UPDATE item SET region = 'eu', id = gen_random_uuid() WHERE region = '{region}'");
        assert_eq!(
            in_transaction(&client, &[&admission, &moves]).await.unwrap_err(),
            "ZF006",
            "{moves}"
        );
    }
    assert_eq!(code(&client, "TRUNCATE item").await, "ZF002");
    assert_eq!(code(&client, "TRUNCATE item_eu").await, "ZF002");
    // The later partitions' own TRUNCATE, from the next call on.
    client.batch_execute(protect).await.unwrap();
    for partition in ["item_us", "item_asia"] {
        assert_eq!(
            code(&client, &format!("TRUNCATE {partition}")).await,
            "ZF002",
            "{partition}"
        );
        assert_eq!(
            code(&superuser, &format!("TRUNCATE {partition}")).await,
            "ZF002",
            "{partition}, as a replica"
        );
    }
    let detail = failure(&client, &format!("INSERT INTO item VALUES ('eu', '{id}', 1)")).await;
    assert!(detail.message().contains("item_eu"), "{}", detail.message());
}

#[tokio::test]
async fn only_tables_and_columns_that_can_be_guarded_are_taken() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE DOMAIN name_of AS text; CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
             CREATE TABLE t (i int, u uuid, s text, v varchar(9), n numeric, j jsonb, c char(4), d text COLLATE nocase, f float8,
                             ts timestamptz, a text[], dom name_of);
             CREATE VIEW v AS SELECT * FROM t;
             CREATE TEMP TABLE passing (k text);",
        )
        .await
        .unwrap();
    for column in ["n", "j", "c", "d", "f", "ts", "a", "dom"] {
        let error = failure(&client, &format!("SELECT fence.protect('t', 'c', '{column}')")).await;
        assert_eq!(error.code().code(), "42804", "{column}");
        assert!(error.hint().unwrap().contains("deterministic"), "{column}");
    }
    assert_eq!(
        code(&client, "SELECT fence.protect('t', 'c', 'absent')").await,
        "42703"
    );
    assert_eq!(
        code(&client, "SELECT fence.protect('v', 'c', 's')").await,
        "42809"
    );
    assert_eq!(
        code(&client, "SELECT fence.protect('passing', 'c', 'k')").await,
        "42809"
    );
    assert_eq!(
        code(&client, "SELECT fence.protect('t', 'No Name', 's')").await,
        "22023"
    );
    assert_eq!(
        database
            .number("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'fence%' AND tgrelid = 't'::regclass")
            .await,
        0
    );

    client
        .batch_execute("SELECT fence.protect('t', 'c', 's'); SELECT fence.protect('t', 'c', 's')")
        .await
        .unwrap();
    assert_eq!(
        code(&client, "SELECT fence.protect('t', 'd', 's')").await,
        "42710"
    );
    assert_eq!(
        code(&client, "SELECT fence.protect('t', 'c', 'v')").await,
        "42710"
    );
}

#[tokio::test]
async fn protecting_again_switches_on_what_was_switched_off() {
    let (database, client) = with_rows().await;
    let insert = "INSERT INTO transfer (from_account, amount) VALUES ('acct-3', 5)";
    for off in ["DISABLE TRIGGER USER", "ENABLE TRIGGER ALL"] {
        database.run(&format!("ALTER TABLE transfer {off}")).await;
        database
            .run("SELECT fence.protect('transfer', 'paydb.account', 'from_account')")
            .await;
        assert_eq!(code(&client, insert).await, "ZF002", "{off}");
        let superuser = database.superuser().await;
        let as_replica = format!("SET session_replication_role = replica; {insert}");
        assert_eq!(code(&superuser, &as_replica).await, "ZF002", "{off}");
    }
}

#[tokio::test]
async fn a_row_without_a_key_is_refused() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE t (k text); SELECT fence.protect('t', 'c', 'k');
             CREATE TABLE pair (k text, n int); SELECT fence.protect('pair', 'c', 'k', 'n');",
        )
        .await
        .unwrap();
    let insert = "INSERT INTO t VALUES (NULL)";
    assert_eq!(code(&client, insert).await, "ZF006");
    for insert in [
        insert,
        "INSERT INTO pair VALUES ('x', NULL)",
        "INSERT INTO pair VALUES (NULL, 1)",
    ] {
        for key in ["x", "x/", "/1"] {
            let admission = format!("SELECT fence.admit('c', '{key}', 1)");
            assert_eq!(
                in_transaction(&client, &[&admission, insert]).await.unwrap_err(),
                "ZF006",
                "{insert}"
            );
        }
    }
}

#[tokio::test]
async fn protecting_waits_a_second_at_most_for_the_table_and_names_who_is_in_the_way() {
    let (database, client) = with_rows().await;
    client
        .batch_execute("CREATE TABLE busy (k text NOT NULL, f bigint NOT NULL)")
        .await
        .unwrap();
    let writer = database.client().await;
    let write = "SET application_name = 'worker-7'; BEGIN; INSERT INTO busy VALUES ('a', 1)";
    writer.batch_execute(write).await.unwrap();
    for (limit, call, most_ms) in [
        ("0", "SELECT fence.protect('busy', 'paydb.busy', 'k')", 4000),
        (
            "0",
            "SELECT fence.protect_column('busy', 'paydb.busy', 'k', 'f')",
            4000,
        ),
        ("50ms", "SELECT fence.protect('busy', 'paydb.busy', 'k')", 900),
    ] {
        client
            .batch_execute(&format!("SET lock_timeout = '{limit}'"))
            .await
            .unwrap();
        let began = std::time::Instant::now();
        let blocked = failure(&client, call).await;
        let waited = began.elapsed().as_millis();
        assert_eq!(blocked.code().code(), "55P03", "{call}");
        assert!(blocked.message().contains("public.busy"), "{blocked:?}");
        assert!(blocked.detail().unwrap().contains("'worker-7'"), "{blocked:?}");
        assert!(
            waited < most_ms && (limit != "0" || waited >= 900),
            "{call}: {waited} ms"
        );
    }
    writer.batch_execute("COMMIT").await.unwrap();
    client
        .batch_execute("RESET lock_timeout; BEGIN; SELECT fence.protect('busy', 'paydb.busy', 'k')")
        .await
        .unwrap();
    assert_eq!(
        client
            .query_one("SHOW lock_timeout", &[])
            .await
            .unwrap()
            .get::<_, &str>(0),
        "0"
    );
    // Readers are not in its way, nor it in theirs.
    writer.batch_execute("BEGIN; SELECT FROM busy").await.unwrap();
    client.batch_execute("COMMIT").await.unwrap();
    // To take the guard off again, the table must be free of readers too.
    let blocked = failure(&client, "SELECT fence.unprotect('busy')").await;
    assert_eq!(blocked.code().code(), "55P03");
    assert!(blocked.detail().unwrap().contains("'worker-7'"), "{blocked:?}");
    writer.batch_execute("COMMIT").await.unwrap();
    client
        .batch_execute("SELECT fence.unprotect('busy'); INSERT INTO busy VALUES ('b', 1)")
        .await
        .unwrap();
}

#[tokio::test]
async fn taking_the_guard_off_covers_what_protect_covered_and_is_written_down() {
    let (database, client) = with_rows().await;
    client
        .batch_execute(
            "CREATE TABLE p (k text NOT NULL, r int, f bigint NOT NULL) PARTITION BY LIST (r);
             CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
             SELECT fence.protect('p', 'paydb.p', 'k'); SELECT fence.protect_column('p', 'paydb.f', 'k', 'f');
             CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
             SELECT fence.protect('p', 'paydb.p', 'k')",
        )
        .await
        .unwrap();
    for part in [
        "SELECT fence.unprotect('p1')",
        "SELECT fence.unprotect_column('p2')",
    ] {
        assert_eq!(code(&client, part).await, "55000", "{part}");
    }
    client.batch_execute("SELECT fence.unprotect('p')").await.unwrap();
    client
        .batch_execute("INSERT INTO p VALUES ('a', 1, 5); TRUNCATE p2")
        .await
        .unwrap();
    assert_eq!(code(&client, "UPDATE p SET f = 4").await, "ZF001");
    client
        .batch_execute(
            "SELECT fence.unprotect_column('p'); UPDATE p SET f = 4, r = 2; SELECT fence.unprotect('p')",
        )
        .await
        .unwrap();
    assert_eq!(
        database
            .text("SELECT string_agg(concat_ws(' ', what, class, before), '; ' ORDER BY id) FROM fence.danger_log")
            .await,
        "unprotect paydb.p mark guard of public.p; unprotect paydb.f column guard of public.p"
    );
    assert_eq!(
        database
            .number("SELECT count(*) FROM pg_trigger WHERE tgrelid IN ('p'::regclass, 'p1'::regclass, 'p2'::regclass)")
            .await,
        0
    );
    assert_eq!(
        database
            .text("SELECT string_agg(name, ' ') FROM fence.guarded")
            .await,
        "public.transfer"
    );
    assert_eq!(code(&client, "SELECT fence.unprotect(NULL)").await, "42809");
}

#[tokio::test]
async fn a_part_that_is_stored_elsewhere_is_not_taken() {
    let (database, client) = with_rows().await;
    client
        .batch_execute("CREATE TABLE p (k text NOT NULL)")
        .await
        .unwrap();
    let superuser = database.superuser().await;
    superuser
        .batch_execute(
            "CREATE FOREIGN DATA WRAPPER afar; CREATE SERVER afar FOREIGN DATA WRAPPER afar;
             CREATE FOREIGN TABLE far () INHERITS (p) SERVER afar",
        )
        .await
        .unwrap();
    let refused = failure(&client, "SELECT fence.protect('p', 'paydb.p', 'k')").await;
    assert_eq!(refused.code().code(), "42809");
    assert!(refused.message().contains("public.far"), "{refused:?}");
}
