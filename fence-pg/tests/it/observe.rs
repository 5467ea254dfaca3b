//! The modes of a class: who is counted and let through, and how a class is switched over while writers are busy.

use tokio_postgres::Client;

use crate::enforce::in_transaction;
use crate::support::{Database, admit, code, failure, wait_for_lock_waiters};

const INSERT: &str = "INSERT INTO item VALUES ('item-1', 1)";

/// A table `item` of class `shop.item`, which only observes.
async fn observing() -> (Database, Client) {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute(
            "SET application_name = 'till';
             CREATE TABLE item (id text NOT NULL, n int);
             SELECT fence.protect('item', 'shop.item', 'id', mode => 'observe');",
        )
        .await
        .unwrap();
    (database, client)
}

/// What was counted, one line a kind.
async fn counted(database: &Database) -> Vec<String> {
    let rows = database
        .client()
        .await
        .query(
            "SELECT concat_ws(' ', relation, application_name, replace(reason, ' ', '-'), transactions, last_key)
             FROM fence.observed WHERE class = 'shop.item' ORDER BY 1",
            &[],
        )
        .await
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn what_would_be_refused_is_counted_by_table_role_application_and_reason_and_let_through() {
    let (database, client) = observing().await;
    client
        .batch_execute(
            "CREATE TABLE heir () INHERITS (item); SELECT fence.protect('item', 'shop.item', 'id')",
        )
        .await
        .unwrap();
    let wrong = "SELECT fence.admit('shop.item', 'item-9', 1)";
    let right = "SELECT fence.admit('shop.item', 'item-1', 1)";
    for statements in [
        vec![INSERT],
        vec![INSERT, "UPDATE item SET n = 2", "DELETE FROM item WHERE n = 3"],
        vec!["INSERT INTO heir VALUES ('item-2', 1)"],
        vec!["INSERT INTO item VALUES ('item-3', 1), ('item-4', 1)"],
        vec![wrong, INSERT],
        vec![right, INSERT],
        vec!["TRUNCATE item"],
    ] {
        in_transaction(&client, &statements).await.unwrap();
    }
    // What was rolled back is not counted, be it a savepoint.
    let undone = ["SAVEPOINT s", INSERT, "ROLLBACK TO s"];
    in_transaction(&client, &undone).await.unwrap();
    in_transaction(&client, &["SAVEPOINT s", INSERT, "ROLLBACK TO s", INSERT])
        .await
        .unwrap();
    assert_eq!(
        counted(&database).await,
        [
            "public.heir till not-admitted 1 item-2",
            "public.heir till truncate 1",
            "public.item till not-admitted 4 item-1",
            "public.item till truncate 1",
            "public.item till wrong-key 1 item-1",
        ]
    );
    let role = database.text("SELECT DISTINCT role FROM fence.observed").await;
    assert_eq!(role, database.url.login().role);
}

#[tokio::test]
async fn counting_makes_nobody_wait_and_ends_in_the_exact_sum_under_every_isolation_level() {
    let (database, client) = observing().await;
    // A counter that all of them could take.
    client.batch_execute(INSERT).await.unwrap();
    let mut writers = Vec::new();
    for number in 0..6 {
        let client = database.client().await;
        let level = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"][number % 3];
        client
            .batch_execute(&format!(
                "SET application_name = 'till'; SET lock_timeout = '1ms';
                 SET default_transaction_isolation = '{level}'; BEGIN; {INSERT}"
            ))
            .await
            .unwrap_or_else(|error| panic!("{number}: {error:?}"));
        writers.push(client);
    }
    for writer in &writers {
        writer.batch_execute("COMMIT").await.unwrap();
        for _ in 0..20 {
            writer.batch_execute(INSERT).await.unwrap();
        }
    }
    assert_eq!(
        counted(&database).await,
        [format!("public.item till not-admitted {} item-1", 1 + 6 * 21)]
    );
    // A counter that is free is used again, where the isolation level lets it.
    let counters = database.number("SELECT count(*) FROM fence.observation").await;
    assert!(counters <= 7 + 4 * 20, "{counters}");
}

#[tokio::test]
async fn a_class_that_observes_is_only_switched_over_when_nothing_it_let_through_can_still_commit() {
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let (database, client) = observing().await;
        let writer = database.client().await;
        let begin = format!("SET application_name = 'slow'; BEGIN ISOLATION LEVEL {level}; {INSERT}");
        writer.batch_execute(&begin).await.unwrap();
        let began = std::time::Instant::now();
        let blocked = failure(&client, "SELECT fence.enforce('shop.item')").await;
        let waited = began.elapsed();
        assert_eq!(blocked.code().code(), "55P03");
        assert!(blocked.detail().unwrap().contains("'slow'"), "{blocked:?}");
        assert!(
            blocked.hint().unwrap().contains("stays in mode observe"),
            "{blocked:?}"
        );
        assert!(
            waited.as_millis() >= 900 && waited.as_millis() < 4000,
            "{waited:?}"
        );
        // It let nobody down meanwhile: the writer goes on, others come.
        writer.batch_execute(&format!("{INSERT}; COMMIT")).await.unwrap();
        client.batch_execute(INSERT).await.unwrap();

        // A writer in the way that ends within the second.
        writer.batch_execute(&format!("BEGIN; {INSERT}")).await.unwrap();
        let switching = tokio::spawn(async move {
            client
                .batch_execute("SELECT fence.enforce('shop.item')")
                .await
                .unwrap();
            client
        });
        wait_for_lock_waiters(&database, 1).await;
        writer.batch_execute("COMMIT").await.unwrap();
        let client = switching.await.unwrap();
        for session in [&client, &writer] {
            assert_eq!(code(session, INSERT).await, "ZF002");
        }
        assert_eq!(database.number("SELECT count(*) FROM item").await, 4);
    }
}

#[tokio::test]
async fn a_snapshot_from_before_the_switch_does_not_slip_through() {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let (database, client) = observing().await;
        let old = database.client().await;
        let begin = format!("BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM item");
        old.batch_execute(&begin).await.unwrap();
        client
            .batch_execute("SELECT fence.enforce('shop.item')")
            .await
            .unwrap();
        assert_eq!(code(&old, INSERT).await, "40001", "{level}");
        old.batch_execute("ROLLBACK").await.unwrap();
        assert_eq!(code(&old, INSERT).await, "ZF002");
        assert_eq!(database.number("SELECT count(*) FROM item").await, 0);
    }
}

#[tokio::test]
async fn a_write_that_waits_for_the_switch_is_refused_by_it() {
    let (database, client) = observing().await;
    client
        .batch_execute("BEGIN; SELECT fence.enforce('shop.item')")
        .await
        .unwrap();
    let writer = database.client().await;
    let writing = tokio::spawn(async move { code(&writer, INSERT).await });
    wait_for_lock_waiters(&database, 1).await;
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(writing.await.unwrap(), "ZF002");
    // In the transaction that was itself let through, the switch is not made.
    client
        .batch_execute("SELECT fence.danger_relax('shop.item', 'observe', 'a test')")
        .await
        .unwrap();
    let switch = "SELECT fence.enforce('shop.item')";
    assert_eq!(
        in_transaction(&client, &[INSERT, switch]).await.unwrap_err(),
        "55000"
    );
    in_transaction(&client, &["SAVEPOINT s", INSERT, "ROLLBACK TO s", switch])
        .await
        .unwrap();
    assert_eq!(code(&client, INSERT).await, "ZF002");
}

#[tokio::test]
async fn a_forged_setting_neither_stops_the_refusal_nor_the_next_count() {
    let (database, client) = observing().await;
    in_transaction(&client, &[INSERT]).await.unwrap();
    let names = client
        .query("SELECT 'fence.observed_' || md5(concat_ws(E'\\x1f', 'shop.item', 'public.item', 'not admitted'))", &[])
        .await
        .unwrap();
    let name: &str = names[0].get(0);
    client
        .batch_execute(&format!("SELECT set_config('{name}', 'true', false)"))
        .await
        .unwrap();
    in_transaction(&client, &[INSERT]).await.unwrap();
    assert_eq!(
        counted(&database).await,
        ["public.item till not-admitted 2 item-1"]
    );
    client
        .batch_execute("SELECT fence.enforce('shop.item')")
        .await
        .unwrap();
    let forged = format!("SELECT set_config('{name}', pg_current_xact_id()::text, true)");
    assert_eq!(
        in_transaction(&client, &[&forged, INSERT]).await.unwrap_err(),
        "ZF002"
    );
}

#[tokio::test]
async fn a_class_has_one_mode_and_falls_back_only_by_name_and_with_a_reason() {
    let (database, client) = observing().await;
    client
        .batch_execute("CREATE TABLE other (id int, n int)")
        .await
        .unwrap();
    // Without a mode, a further table joins in the class's.
    client
        .batch_execute("SELECT fence.protect('other', 'shop.item', 'id'); INSERT INTO other VALUES (1, 1)")
        .await
        .unwrap();
    client
        .batch_execute("SELECT fence.protect('other', 'shop.item', 'id', mode => 'enforce')")
        .await
        .unwrap();
    assert_eq!(code(&client, INSERT).await, "ZF002");
    for call in [
        "SELECT fence.protect('other', 'shop.item', 'id', mode => 'observe')",
        "SELECT fence.protect('other', 'shop.item', ARRAY['id'], mode => 'standby')",
    ] {
        let refused = failure(&client, call).await;
        assert_eq!(refused.code().code(), "55000", "{call}");
        assert!(
            refused.hint().unwrap().contains("fence.danger_relax('shop.item'"),
            "{refused:?}"
        );
    }
    for reason in ["NULL", "''", "' '"] {
        let call = format!("SELECT fence.danger_relax('shop.item', 'observe', {reason})");
        assert_eq!(code(&client, &call).await, "22023", "{reason}");
    }
    client
        .batch_execute("SELECT fence.danger_relax('shop.item', 'observe', 'the old importer'); INSERT INTO other VALUES (2, 1)")
        .await
        .unwrap();
    assert_eq!(
        code(&client, "SELECT fence.danger_relax('shop.item', 'enforce', 'no')").await,
        "22023"
    );
    assert_eq!(
        database
            .text("SELECT concat_ws(' ', what, class, before, after, reason, application_name) FROM fence.danger_log")
            .await,
        "danger_relax shop.item enforce observe the old importer till"
    );
    for typing_error in [
        "SELECT fence.enforce('shop.itme')",
        "SELECT fence.danger_relax('shop.itme', 'observe', 'x')",
        "SELECT fence.danger_bypass('shop.itme', 'x')",
    ] {
        assert_eq!(code(&client, typing_error).await, "ZF007", "{typing_error}");
    }
}

#[tokio::test]
async fn the_switch_names_who_would_have_been_refused() {
    let (database, client) = observing().await;
    client.batch_execute(INSERT).await.unwrap();
    let psql = pause_kit::services::locate::postgres().unwrap().join("psql");
    let output = tokio::process::Command::new(psql)
        .args([
            "--no-psqlrc",
            "--quiet",
            "--command",
            "SELECT fence.enforce('shop.item')",
        ])
        .arg(database.url.as_str())
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("refused from now on: public.item")
            && said.contains("'till': not admitted, 1 transactions"),
        "{said}"
    );
}

#[tokio::test]
async fn a_bypass_is_written_down_and_lasts_for_its_class_and_transaction() {
    let (database, client) = crate::enforce::with_rows().await;
    let bypass = "SELECT fence.danger_bypass('paydb.account', 'order 7 twice')";
    let update = "UPDATE transfer SET amount = 6";
    for refused in [
        vec!["SAVEPOINT s", bypass, "ROLLBACK TO s", update],
        vec![
            "SELECT fence.danger_bypass('paydb.open', 'another class')",
            update,
        ],
    ] {
        assert_eq!(
            in_transaction(&client, &refused).await.unwrap_err(),
            "ZF002",
            "{refused:?}"
        );
    }
    assert_eq!(
        code(&client, "SELECT fence.danger_bypass('paydb.account', '')").await,
        "22023"
    );
    assert_eq!(database.number("SELECT count(*) FROM fence.danger_log").await, 0);
    in_transaction(&client, &[bypass, update, "TRUNCATE transfer"])
        .await
        .unwrap();
    assert_eq!(
        code(
            &client,
            "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 1)"
        )
        .await,
        "ZF002"
    );
    // Nor is the line of an earlier transaction evidence, in a database that counts transactions anew.
    assert_eq!(
        database
            .text("SELECT what || ' ' || class || ' ' || reason FROM fence.danger_log")
            .await,
        "danger_bypass paydb.account order 7 twice"
    );
    for sql in [
        "DELETE FROM fence.danger_log",
        "UPDATE fence.danger_log SET reason = 'x'",
        "TRUNCATE fence.danger_log",
    ] {
        assert_eq!(code(&client, sql).await, "55000", "{sql}");
    }
}

#[tokio::test]
async fn an_observed_write_by_an_application_role_is_told_by_its_own_role() {
    let (database, _client) = observing().await;
    let postgres = pause_kit::services::for_tests().await.postgres();
    let role = format!("{}_app", database.url.database());
    let login = postgres.create_login(&role).await.unwrap();
    let grant = format!(
        "GRANT CONNECT ON DATABASE {} TO {role}; GRANT ALL ON item TO {role}",
        database.url.database()
    );
    database.run(&grant).await;
    let app = crate::support::client(&postgres.url(database.url.database(), &login)).await;
    app.batch_execute(INSERT).await.unwrap();
    let superuser = database.superuser().await;
    superuser
        .batch_execute(&format!("SET ROLE {role}; {INSERT}"))
        .await
        .unwrap();
    let count = format!("SELECT sum(transactions)::bigint FROM fence.observed WHERE role = '{role}'");
    assert_eq!(database.number(&count).await, 2);
    // What it admits is not counted.
    assert_eq!(code(&app, &admit("item-1", 1)).await, "42501");
}
