//! A guarded table at the subscribing end of logical replication.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::enforce::in_transaction;
use crate::support::{Database, code};

/// Asks until the answer is the wanted one, and fails after half a minute: replication tells nobody when it has applied.
async fn until(client: &Client, sql: &str, wanted: &str) {
    let began = Instant::now();
    loop {
        let found: Option<String> = client.query_one(sql, &[]).await.unwrap().get(0);
        if found.as_deref() == Some(wanted) {
            return;
        }
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{sql}: {found:?}, not {wanted}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_subscriber_takes_replicated_rows_and_nobody_elses_until_it_is_enforced() {
    let publisher = Database::bare().await;
    let subscriber = Database::guarded().await;
    let name = subscriber.url.database().to_owned();
    publisher
        .run("CREATE TABLE item (id text PRIMARY KEY, n int); INSERT INTO item VALUES ('a', 1), ('b', 1)")
        .await;
    let publishing = publisher.superuser().await;
    publishing
        .batch_execute("CREATE PUBLICATION items FOR TABLE item")
        .await
        .unwrap();
    publishing
        .batch_execute(&format!(
            "SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')"
        ))
        .await
        .unwrap();
    let client = subscriber.client().await;
    client
        .batch_execute(
            "CREATE TABLE item (id text PRIMARY KEY, n int); SELECT fence.protect('item', 'shop.item', 'id', mode => 'standby')",
        )
        .await
        .unwrap();
    let subscribing = subscriber.superuser().await;
    let source = pause_kit::services::for_tests()
        .await
        .postgres()
        .superuser_url_of(publisher.url.database());
    subscribing
        .batch_execute(&format!(
            "CREATE SUBSCRIPTION {name} CONNECTION '{}' PUBLICATION items WITH (create_slot = false, slot_name = '{name}')",
            source.as_str()
        ))
        .await
        .unwrap();

    // The first copy, then every kind of change.
    let rows = "SELECT string_agg(id || n, ' ' ORDER BY id) FROM item";
    until(&client, rows, "a1 b1").await;
    let ready = "SELECT string_agg(srsubstate::text, '') FROM pg_subscription_rel";
    until(&subscribing, ready, "r").await;
    publisher
        .run("UPDATE item SET n = 2 WHERE id = 'a'; DELETE FROM item WHERE id = 'b'")
        .await;
    until(&client, rows, "a2").await;
    publisher
        .run("TRUNCATE item; INSERT INTO item VALUES ('c', 3)")
        .await;
    until(&client, rows, "c3").await;
    assert_eq!(
        subscriber.number("SELECT count(*) FROM fence.observation").await,
        0
    );

    // Nobody else, not even one that calls itself a replica.
    let insert = "INSERT INTO item VALUES ('d', 4)";
    for sql in [
        insert,
        "UPDATE item SET n = 0",
        "DELETE FROM item",
        "TRUNCATE item",
    ] {
        assert_eq!(code(&client, sql).await, "ZF002", "{sql}");
        let as_replica = format!("SET session_replication_role = replica; {sql}");
        assert_eq!(code(&subscribing, &as_replica).await, "ZF002", "{sql}");
    }
    in_transaction(&client, &["SELECT fence.admit('shop.item', 'd', 1)", insert])
        .await
        .unwrap();

    // Promoted: what still comes from the old publisher is refused, as anybody's.
    client
        .batch_execute("SELECT fence.enforce('shop.item')")
        .await
        .unwrap();
    publisher.run("INSERT INTO item VALUES ('late', 5)").await;
    let refused = format!(
        "SELECT (apply_error_count > 0)::text FROM pg_stat_subscription_stats WHERE subname = '{name}'"
    );
    until(&subscribing, &refused, "true").await;
    until(&client, rows, "c3 d4").await;
    subscribing
        .batch_execute(&format!(
            "ALTER SUBSCRIPTION {name} DISABLE; ALTER SUBSCRIPTION {name} SET (slot_name = NONE); DROP SUBSCRIPTION {name}"
        ))
        .await
        .unwrap();
    let slots =
        format!("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = '{name}' AND NOT active");
    until(&publishing, &slots, "1").await;
    publishing
        .batch_execute(&format!("SELECT pg_drop_replication_slot('{name}')"))
        .await
        .unwrap();
}
