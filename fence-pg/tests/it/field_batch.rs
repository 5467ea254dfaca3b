//! Several keys in one admission: all or none, every stale one named, in one order and within one deadline.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::enforce::in_transaction;
use crate::support::{CLASS, Database, OPEN, admit, failure, token, wait_for_lock_waiters};

/// An admission of keys of [`CLASS`], each under the grant of its revision.
fn many(claims: &[(&str, i64)]) -> String {
    let column = |of: &dyn Fn(&(&str, i64)) -> String| claims.iter().map(of).collect::<Vec<_>>().join(",");
    format!(
        "SELECT fence.admit_many('{{{}}}', '{{{}}}', '{{{}}}', '{{{}}}')",
        column(&|_| CLASS.to_owned()),
        column(&|(key, _)| (*key).to_owned()),
        column(&|(_, revision)| token(*revision).to_string()),
        column(&|(_, revision)| format!("g{revision}")),
    )
}

fn insert(key: &str) -> String {
    format!("INSERT INTO transfer (from_account, amount) VALUES ('{key}', 7)")
}

/// `a` and `c` were written under revision 30, `b` under 34, `d` under 36; nobody has been at `e`.
async fn marked() -> (Database, Client) {
    let database = Database::guarded().await;
    for (key, revision) in [("a", 30), ("b", 34), ("c", 30), ("d", 36)] {
        database.run(&admit(key, revision)).await;
    }
    let client = database.client().await;
    (database, client)
}

async fn marks(database: &Database) -> String {
    let found = "SELECT string_agg(key || (token & 1023)::text, ' ' ORDER BY key) FROM fence.high_water";
    database.text(found).await
}

#[tokio::test]
async fn a_batch_with_stale_keys_admits_none_and_names_each_of_them() {
    let (database, client) = marked().await;
    let stale = failure(&client, &many(&[("e", 33), ("d", 33), ("a", 33), ("b", 33)])).await;
    assert_eq!(stale.code().code(), "ZF001");
    let line = |key: &str, seen: i64| {
        format!(
            "presented {}, seen {}, class {CLASS}, key '{key}'",
            token(33),
            token(seen)
        )
    };
    let detail = format!("{}\n{}", line("b", 34), line("d", 36));
    assert_eq!(stale.detail(), Some(detail.as_str()));
    for key in ["'b'", "'d'"] {
        assert!(stale.message().contains(key), "{}", stale.message());
    }
    assert!(!stale.message().contains("'a'"), "{}", stale.message());
    assert_eq!(marks(&database).await, "a30 b34 c30 d36");

    // Swallowed, it is no evidence for the keys that were not stale.
    let batch = many(&[("a", 33), ("b", 33), ("e", 33)]);
    for key in ["a", "e"] {
        client.batch_execute("BEGIN; SAVEPOINT s").await.unwrap();
        assert!(client.batch_execute(&batch).await.is_err());
        client.batch_execute("ROLLBACK TO s").await.unwrap();
        assert_eq!(crate::support::code(&client, &insert(key)).await, "ZF002");
        client.batch_execute("ROLLBACK").await.unwrap();
    }
    // One key is told as fence.admit tells it.
    let alone = failure(&client, &many(&[("b", 33)])).await;
    let detail = format!("presented {}, seen {}", token(33), token(34));
    assert_eq!(alone.detail(), Some(detail.as_str()));

    // All of them rightful: each may be written, and no other.
    let batch = many(&[("d", 37), ("a", 37), ("e", 37)]);
    let (a, d, e) = (insert("a"), insert("d"), insert("e"));
    in_transaction(&client, &[&batch, &a, &d, &e]).await.unwrap();
    let other = insert("c");
    assert_eq!(
        in_transaction(&client, &[&batch, &other]).await.unwrap_err(),
        "ZF006"
    );
    assert_eq!(marks(&database).await, "a37 b34 c30 d37 e37");
}

#[tokio::test]
async fn a_batch_of_nothing_does_nothing_and_a_key_given_twice_is_one_key() {
    let (database, client) = marked().await;
    for nothing in [
        "SELECT fence.admit_many('{}', '{}', '{}', '{}')",
        "SELECT fence.admit_many('{}', '{}', '{}')",
        "SELECT fence.admit_many(NULL, NULL, NULL)",
    ] {
        client.batch_execute(nothing).await.unwrap();
        let insert = insert("a");
        assert_eq!(
            in_transaction(&client, &[nothing, &insert]).await.unwrap_err(),
            "ZF002"
        );
    }
    assert_eq!(marks(&database).await, "a30 b34 c30 d36");
    in_transaction(
        &client,
        &[&many(&[("a", 37), ("c", 37), ("a", 37)]), &insert("a")],
    )
    .await
    .unwrap();
    let stale = failure(&client, &many(&[("b", 33), ("b", 33)])).await;
    assert_eq!(stale.detail().unwrap().matches("presented").count(), 1);
    for (contradiction, expected) in [
        (many(&[("a", 38), ("c", 38), ("a", 39)]), "22023"),
        // Arrays that are not as long as each other would shift every claim to its neighbour's key.
        (many(&[("a", 38), ("c", 38)]).replacen("a,c", "a", 1), "22023"),
        (many(&[("a", 38), ("c", 38)]).replacen(",g38", "", 1), "22023"),
    ] {
        let error = failure(&client, &contradiction).await;
        assert_eq!(error.code().code(), expected, "{contradiction}");
        assert!(error.hint().is_some(), "{contradiction}");
    }
    assert_eq!(marks(&database).await, "a37 b34 c37 d36");
}

#[tokio::test]
async fn each_refusal_within_a_batch_is_the_same_as_alone_and_names_its_key() {
    let (database, client) = marked().await;
    let rightful = ("a", token(37).to_string(), "g37");
    for (key, number, grant, expected) in [
        ("e", "NULL".to_owned(), "g38", "ZF002"),
        ("e", token(38).to_string(), "", "ZF002"),
        ("e", "0".to_owned(), "g38", "ZF003"),
        ("b", token(34).to_string(), "other", "ZF004"),
        ("e", ((2_i64 << 48) + 1).to_string(), "g1", "ZF005"),
    ] {
        let both = |class: &str| {
            format!(
                "SELECT fence.admit_many(ARRAY['{class}', '{class}'], ARRAY['{}', '{key}'], ARRAY[{}, {number}], \
                 ARRAY['{}', '{grant}'])",
                rightful.0, rightful.1, rightful.2
            )
        };
        let error = failure(&client, &both(CLASS)).await;
        assert_eq!(error.code().code(), expected, "{key} {number}");
        assert!(
            error.message().contains(&format!("'{key}'")),
            "{}",
            error.message()
        );
        let alone = format!("SELECT fence.admit('{CLASS}', '{key}', {number}, '{grant}')");
        assert_eq!(crate::support::code(&client, &alone).await, expected, "{alone}");
        assert_eq!(failure(&client, &both("paydb.typo")).await.code().code(), "ZF007");
        assert_eq!(marks(&database).await, "a30 b34 c30 d36");
    }
    // Classes of different issuers side by side.
    let mixed = format!(
        "SELECT fence.admit_many(ARRAY['{OPEN}', '{CLASS}'], ARRAY['a', 'a'], ARRAY[5, {}], ARRAY[NULL, 'g37'])",
        token(37)
    );
    in_transaction(&client, &[&mixed, &insert("a")]).await.unwrap();
}

#[tokio::test]
async fn batches_in_opposite_orders_take_turns_and_never_wait_for_each_other() {
    let (database, _client) = marked().await;
    let there = ["a", "b", "c", "d", "e", "f"];
    let mut back = there;
    back.reverse();
    let mut writers = Vec::new();
    for order in [there, back, there, back] {
        let client = database.client().await;
        writers.push(tokio::spawn(async move {
            for _ in 0..20 {
                let claims: Vec<(&str, i64)> = order.iter().map(|key| (*key, 40)).collect();
                in_transaction(&client, &[&many(&claims), &insert(order[0])]).await?;
            }
            Ok::<(), String>(())
        }));
    }
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    assert_eq!(database.number("SELECT count(*) FROM transfer").await, 80);
}

#[tokio::test]
async fn all_keys_of_a_batch_wait_two_seconds_together_and_the_one_in_the_way_is_named() {
    let (database, client) = marked().await;
    let holders = [database.client().await, database.client().await];
    for (holder, key) in holders.iter().zip(["a", "c"]) {
        let hold = format!("SET application_name = 'holder-{key}'; BEGIN; {}", admit(key, 37));
        holder.batch_execute(&hold).await.unwrap();
    }
    let began = Instant::now();
    let batch = many(&[("c", 38), ("a", 38), ("e", 38)]);
    let frees = async {
        // The first key comes free half-way: what it cost is not given back for the second.
        wait_for_lock_waiters(&database, 1).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        holders[0].batch_execute("COMMIT").await.unwrap();
    };
    let (blocked, ()) = tokio::join!(failure(&client, &batch), frees);
    let waited = began.elapsed();
    assert_eq!(blocked.code().code(), "55P03");
    assert!(blocked.detail().unwrap().contains("holder-c"), "{blocked:?}");
    assert!(
        waited >= Duration::from_millis(1900) && waited < Duration::from_millis(3500),
        "{waited:?}"
    );
    assert_eq!(marks(&database).await, "a37 b34 c30 d36");
}
