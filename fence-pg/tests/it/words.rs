//! What the refusals and notices tell a person to do next.

use fence_core::{Claim, ClassName, Effect, GrantId, Key};
use fence_pg::MIGRATIONS;
use futures_util::{StreamExt as _, stream};
use tokio_postgres::{AsyncMessage, NoTls};

use crate::support::{CLASS, Database, OPEN, claim, failure, token};

#[test]
fn every_exception_says_what_to_do() {
    let mut exceptions = 0;
    for migration in MIGRATIONS {
        for after in migration.sql.split("RAISE EXCEPTION").skip(1) {
            let (statement, _) = after.split_once(";\n").unwrap();
            assert!(statement.contains("HINT = "), "{}: {statement}", migration.name);
            exceptions += 1;
        }
    }
    assert!(exceptions > 20, "{exceptions} found");
}

#[tokio::test]
async fn protecting_for_a_class_that_is_not_declared_says_so_once() {
    let database = Database::guarded().await;
    let (client, mut connection) = tokio_postgres::connect(database.url.as_str(), NoTls)
        .await
        .unwrap();
    let (send, mut notices) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notice(notice) = message {
                // An error means that the test has seen enough.
                let _ = send.send(notice);
            }
        }
    });
    client
        .batch_execute(
            "CREATE TABLE shop (id int PRIMARY KEY); CREATE TABLE batch (id int PRIMARY KEY, t bigint NOT NULL DEFAULT 0);
             SELECT fence.protect('shop', 'shop.order', 'id');
             SELECT fence.protect('shop', 'shop.order', 'id');
             SELECT fence.protect_column('batch', 'shop.batch', 'id', 't');
             SELECT fence.protect_column('batch', 'shop.batch', 'id', 't');
             SELECT fence.declare('shop.order', 'entity'); SELECT fence.declare('shop.batch', 'coord');",
        )
        .await
        .unwrap();
    drop(client);
    for (class, tier) in [("shop.order", "entity"), ("shop.batch", "coord")] {
        let notice = notices.recv().await.unwrap();
        assert_eq!(notice.severity(), "NOTICE");
        assert_eq!(
            notice.message(),
            format!(
                "class {class} was declared without a tier: it takes any issuer's tokens, and no grant ids"
            )
        );
        let call = format!("SELECT fence.declare('{class}', 'TIER')");
        assert!(notice.hint().unwrap().contains(&call), "{notice:?}");
        let found = format!("SELECT tier FROM fence.class WHERE name = '{class}'");
        assert_eq!(database.text(&found).await, tier);
    }
    assert_eq!(notices.recv().await.map(|more| more.message().to_owned()), None);
}

#[tokio::test]
async fn a_wrong_key_names_the_key_that_was_admitted() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute("CREATE TABLE item (id int); SELECT fence.protect('item', 'shop.item', 'id')")
        .await
        .unwrap();
    for (admitted, shown) in [("042", "'042'"), ("4 2:é/x", "'4 2:é/x'")] {
        let one_transaction = format!(
            "SELECT fence.admit('{OPEN}', 'other', 1);
             SELECT fence.admit('shop.item', '{admitted}', 1);
             INSERT INTO item VALUES (42);"
        );
        let error = failure(&client, &one_transaction).await;
        assert_eq!(error.code().code(), "ZF006");
        assert_eq!(
            error.detail().unwrap(),
            format!("class shop.item, key '42'; first admitted was key {shown}")
        );
    }
}

#[tokio::test]
async fn a_token_outside_every_range_is_told_which_call_would_open_one() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let with = |token: i64| format!("SELECT fence.admit('{CLASS}', 'a', {token}, 'g')");
    let epoch_7 = failure(&client, &with((7 << 48) + 1)).await;
    let hint = epoch_7.hint().unwrap();
    assert!(
        hint.contains("SELECT fence.register_epoch('entity', 7)"),
        "{hint}"
    );
    for no_epoch in [5, 7 << 48] {
        let foreign = failure(&client, &with(no_epoch)).await;
        let hint = foreign.hint().unwrap();
        assert!(
            hint.contains("without a tier") && !hint.contains("register_epoch"),
            "{hint}"
        );
    }
    database
        .run(&format!(
            "SELECT fence.register_epoch('entity', 2, {})",
            (2_i64 << 48) + 9
        ))
        .await;
    let above = (2_i64 << 48) + 10;
    let hint = failure(&client, &with(above)).await.hint().unwrap().to_owned();
    let (_, call) = hint.split_once("moves that up: ").unwrap();
    database.run(call.trim_end_matches('.')).await;
    database.run(&with(above)).await;
}

#[tokio::test]
async fn what_cannot_be_used_is_told_in_which_form_it_could() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let admission =
        |class: &str, grant: &str| format!("SELECT fence.admit('{class}', 'a', {}, '{grant}')", token(1));
    for (statement, words) in [
        (
            admission("paydb.acount", "g"),
            "SELECT name, tier FROM fence.class",
        ),
        (admission(CLASS, "a b"), "as the lock store gave it"),
        ("SELECT fence.register_epoch('entity', 0)".to_owned(), ">> 48"),
        (
            "SELECT fence.protect('transfer', 'c', 'account')".to_owned(),
            "id, from_account, amount",
        ),
    ] {
        let error = failure(&client, &statement).await;
        assert!(error.hint().unwrap().contains(words), "{statement}: {error:?}");
    }
}

#[tokio::test]
async fn a_refusal_shows_its_numbers_in_a_log_without_its_sources() {
    let database = Database::guarded().await;
    let newer = Claim {
        class: ClassName::new("shop.order").unwrap(),
        key: Key::integer(42),
        token: token(34),
        grant_id: Some(GrantId::new("b2f1").unwrap()),
    };
    database
        .run(
            "CREATE TABLE shop_order (id int PRIMARY KEY, state text NOT NULL);
             INSERT INTO shop_order VALUES (42, 'open');
             SELECT fence.declare('shop.order', 'entity'); SELECT fence.protect('shop_order', 'shop.order', 'id')",
        )
        .await;
    let mut guarded = fence_pg::sqlx::begin(&database.pool, &newer).await.unwrap();
    sqlx::query("UPDATE shop_order SET state = 'paid' WHERE id = 42")
        .execute(guarded.connection())
        .await
        .unwrap();
    drop(guarded.commit(Effect::Applied).await.unwrap());
    let older = Claim {
        token: token(33),
        ..newer
    };
    let refused = fence_pg::sqlx::begin(&database.pool, &older).await.unwrap_err();
    let shown = "stale token: presented 281474976710689, seen 281474976710690";
    assert_eq!(refused.to_string(), shown);
    assert!(include_str!("../../src/lib.rs").contains(shown));
    let typo = Claim {
        class: ClassName::new("shop.ordr").unwrap(),
        ..claim("a", 1)
    };
    let refused = fence_pg::sqlx::begin(&database.pool, &typo).await.unwrap_err();
    assert_eq!(refused.to_string(), "unknown class shop.ordr");
}

#[test]
fn the_docs_name_the_drivers_versions_that_the_build_takes() {
    let manifest = include_str!("../../../Cargo.toml");
    for (driver, entry) in [
        ("sqlx", "sqlx = { version = \"0.9\""),
        ("tokio-postgres", "tokio-postgres = \"0.7\""),
    ] {
        assert!(
            manifest.contains(entry),
            "{driver} has another version now: mend the crate docs"
        );
    }
    assert!(include_str!("../../src/lib.rs").contains("sqlx 0.9 (feature `sqlx`) and tokio-postgres 0.7"));
}
