//! Rows that nobody names in a statement: written by foreign keys, by triggers, and through other tables.

use tokio_postgres::Client;

use crate::enforce::in_transaction;
use crate::support::{Database, code};

/// Accounts `a`, `b` and `d`; two orders of `a`, guarded by their account, and written as their foreign key says.
async fn orders(database: &Database, actions: &str) -> Client {
    let client = database.client().await;
    client
        .batch_execute(&format!(
            "DROP TABLE IF EXISTS orders, account;
             CREATE TABLE account (id text PRIMARY KEY);
             INSERT INTO account VALUES ('a'), ('b'), ('d');
             CREATE TABLE orders (id bigint PRIMARY KEY, account text DEFAULT 'd' REFERENCES account {actions});
             SELECT fence.declare('shop.account');
             SELECT fence.protect('orders', 'shop.account', 'account');"
        ))
        .await
        .unwrap();
    in_transaction(
        &client,
        &[&admit("a"), "INSERT INTO orders VALUES (1, 'a'), (2, 'a')"],
    )
    .await
    .unwrap();
    client
}

fn admit(key: &str) -> String {
    format!("SELECT fence.admit('shop.account', '{key}', 7)")
}

#[tokio::test]
async fn a_foreign_keys_action_is_refused_like_any_other_write_and_leaves_both_tables_as_they_were() {
    let database = Database::guarded().await;
    // The action, the statement on the other table, and what must be admitted for it; None where nothing would do.
    for (actions, statement, keys) in [
        (
            "ON DELETE CASCADE",
            "DELETE FROM account WHERE id = 'a'",
            Some(vec!["a"]),
        ),
        (
            "ON DELETE SET DEFAULT",
            "DELETE FROM account WHERE id = 'a'",
            Some(vec!["a", "d"]),
        ),
        ("ON DELETE SET NULL", "DELETE FROM account WHERE id = 'a'", None),
        (
            "ON UPDATE CASCADE",
            "UPDATE account SET id = 'z' WHERE id = 'a'",
            Some(vec!["a", "z"]),
        ),
        (
            "ON UPDATE SET DEFAULT",
            "UPDATE account SET id = 'z' WHERE id = 'a'",
            Some(vec!["a", "d"]),
        ),
        (
            "ON UPDATE SET NULL",
            "UPDATE account SET id = 'z' WHERE id = 'a'",
            None,
        ),
        // Checked at the end of the statement or of the transaction: the action is the same.
        (
            "ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED",
            "DELETE FROM account WHERE id = 'a'",
            Some(vec!["a"]),
        ),
    ] {
        let client = orders(&database, actions).await;
        let as_they_were = async || {
            let found = "SELECT count(*) FROM orders JOIN account ON account.id = orders.account WHERE account.id = 'a'";
            assert_eq!(database.number(found).await, 2, "{actions}");
            assert_eq!(
                database.number("SELECT count(*) FROM account").await,
                3,
                "{actions}"
            );
        };
        let refused = in_transaction(&client, &[statement]).await.unwrap_err();
        assert!(refused == "ZF002" || refused == "ZF006", "{actions}: {refused}");
        as_they_were().await;
        // With one key too few it is refused as well.
        let admissions: Vec<String> = keys.iter().flatten().map(|key| admit(key)).collect();
        for left_out in 0..admissions.len() {
            let mut statements: Vec<&str> = admissions.iter().map(String::as_str).collect();
            statements.remove(left_out);
            statements.push(statement);
            let refused = in_transaction(&client, &statements).await.unwrap_err();
            assert!(refused == "ZF002" || refused == "ZF006", "{actions}: {refused}");
            as_they_were().await;
        }
        let mut statements: Vec<&str> = admissions.iter().map(String::as_str).collect();
        if keys.is_some() {
            statements.push(statement);
            in_transaction(&client, &statements).await.unwrap();
            continue;
        }
        // A row without a key belongs to nobody's lock.
        let (a, d) = (admit("a"), admit("d"));
        let refused = in_transaction(&client, &[&a, &d, statement]).await.unwrap_err();
        assert_eq!(refused, "ZF006", "{actions}");
        as_they_were().await;
    }
}

#[tokio::test]
async fn a_row_that_a_trigger_puts_elsewhere_is_asked_for_where_it_lands() {
    let database = Database::guarded().await;
    let client = database.client().await;
    // A trigger puts each row into another table, and the statement counts none.
    client
        .batch_execute(
            "CREATE TABLE event (id bigint, account text NOT NULL);
             CREATE TABLE event_1 (LIKE event);
             CREATE FUNCTION route() RETURNS trigger LANGUAGE plpgsql AS $$
                 BEGIN INSERT INTO event_1 VALUES (NEW.*); RETURN NULL; END $$;
             CREATE TRIGGER route BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION route();
             SELECT fence.declare('shop.account');
             SELECT fence.protect('event', 'shop.account', 'account');
             SELECT fence.protect('event_1', 'shop.account', 'account');",
        )
        .await
        .unwrap();
    let insert = "INSERT INTO event VALUES (1, 'a')";
    assert_eq!(in_transaction(&client, &[insert]).await.unwrap_err(), "ZF002");
    assert_eq!(
        in_transaction(&client, &[&admit("b"), insert]).await.unwrap_err(),
        "ZF006"
    );
    assert_eq!(database.number("SELECT count(*) FROM event_1").await, 0);
    client
        .batch_execute(&format!("BEGIN; {}", admit("a")))
        .await
        .unwrap();
    assert_eq!(client.execute(insert, &[]).await.unwrap(), 0);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM event_1").await, 1);
    for sql in ["UPDATE event_1 SET id = 2", "DELETE FROM event_1"] {
        assert_eq!(
            in_transaction(&client, &[sql]).await.unwrap_err(),
            "ZF002",
            "{sql}"
        );
    }
}

#[tokio::test]
async fn a_skipped_upsert_raises_nothing_and_a_refused_one_neither() {
    let database = Database::guarded().await;
    database
        .run(
            "CREATE TABLE account (id text PRIMARY KEY, balance bigint NOT NULL);
             SELECT fence.declare('shop.account');
             SELECT fence.protect('account', 'shop.account', 'id');",
        )
        .await;
    let client = database.client().await;
    let mark = async || {
        let found = "SELECT coalesce(max(token), 0) FROM fence.high_water WHERE class = 'shop.account'";
        database.number(found).await
    };
    let newer = "SELECT fence.admit('shop.account', 'a', 34)";
    in_transaction(&client, &[newer, "INSERT INTO account VALUES ('a', 100)"])
        .await
        .unwrap();
    let older = "SELECT fence.admit('shop.account', 'a', 33)";
    for upsert in [
        "INSERT INTO account VALUES ('a', 5) ON CONFLICT DO NOTHING",
        "INSERT INTO account VALUES ('a', 5) ON CONFLICT (id) DO UPDATE SET balance = 5",
        "INSERT INTO account VALUES ('a', 5) ON CONFLICT (id) DO UPDATE SET balance = 5 WHERE false",
    ] {
        assert_eq!(
            in_transaction(&client, &[older, upsert]).await.unwrap_err(),
            "ZF001",
            "{upsert}"
        );
        assert_eq!(mark().await, 34, "{upsert}");
    }
    // Without any admission: what writes nothing is nobody's business, and raises nothing.
    for (upsert, expected) in [
        ("INSERT INTO account VALUES ('a', 5) ON CONFLICT DO NOTHING", None),
        (
            "INSERT INTO account VALUES ('a', 5) ON CONFLICT (id) DO UPDATE SET balance = 5 WHERE false",
            None,
        ),
        (
            "INSERT INTO account VALUES ('a', 5) ON CONFLICT (id) DO UPDATE SET balance = 5",
            Some("ZF002"),
        ),
        (
            "INSERT INTO account VALUES ('b', 5) ON CONFLICT DO NOTHING",
            Some("ZF002"),
        ),
    ] {
        let came = in_transaction(&client, &[upsert]).await.err();
        assert_eq!(came.as_deref(), expected, "{upsert}");
        assert_eq!(mark().await, 34, "{upsert}");
    }
    assert_eq!(database.number("SELECT balance FROM account").await, 100);
}

#[tokio::test]
async fn a_deferred_trigger_that_writes_at_commit_writes_under_the_same_admission_or_not_at_all() {
    let database = Database::guarded().await;
    let client = orders(&database, "").await;
    client
        .batch_execute(
            "CREATE TABLE cart (id bigint PRIMARY KEY, account text NOT NULL);
             CREATE FUNCTION order_all() RETURNS trigger LANGUAGE plpgsql AS $$
                 BEGIN INSERT INTO orders VALUES (NEW.id, NEW.account); RETURN NULL; END $$;
             CREATE CONSTRAINT TRIGGER order_all AFTER INSERT ON cart DEFERRABLE INITIALLY DEFERRED
                 FOR EACH ROW EXECUTE FUNCTION order_all()",
        )
        .await
        .unwrap();
    for (key, expected) in [
        (None, Some("ZF002")),
        (Some("b"), Some("ZF006")),
        (Some("a"), None),
    ] {
        let admission = key.map(admit).unwrap_or_default();
        // The refusal comes in answer to COMMIT.
        let filled = [admission.as_str(), "INSERT INTO cart VALUES (3, 'a')"];
        let came = in_transaction(&client, &filled).await.err();
        assert_eq!(came.as_deref(), expected);
        let there = database
            .number("SELECT count(*) FROM cart, orders WHERE orders.id = 3")
            .await;
        assert_eq!(there, i64::from(expected.is_none()));
    }
    assert_eq!(code(&client, "DELETE FROM orders WHERE id = 3").await, "ZF002");
}
