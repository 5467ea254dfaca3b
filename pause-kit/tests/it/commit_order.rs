//! The order of commits, from a real PostgreSQL.

use std::error::Error;

use pause_kit::commit_order::{Change, CommitOrder, CommitOrderError, Operation};
use pause_kit::services::{DatabaseUrl, for_tests};
use tokio_postgres::{Client, Config, NoTls};

use crate::wait::soon;

async fn connect(database: &DatabaseUrl) -> Client {
    let (client, connection) = tokio_postgres::connect(database.as_str(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn start(database: &DatabaseUrl) -> CommitOrder {
    let superuser: Config = for_tests()
        .await
        .postgres()
        .superuser_url()
        .as_str()
        .parse()
        .unwrap();
    soon(CommitOrder::start(&superuser, database.database()))
        .await
        .unwrap()
}

fn ids(changes: &[Change]) -> Vec<&str> {
    changes
        .iter()
        .map(|change| change.columns["id"].as_deref().unwrap())
        .collect()
}

#[tokio::test]
async fn changes_come_in_the_order_of_their_commits_and_those_rolled_back_not_at_all() {
    let database = for_tests().await.fresh_database().await;
    let (early, late) = (connect(&database).await, connect(&database).await);
    early
        .batch_execute("CREATE TABLE t (id int PRIMARY KEY, note text)")
        .await
        .unwrap();
    let mut order = start(&database).await;
    early
        .batch_execute("BEGIN; INSERT INTO t VALUES (1, 'began first')")
        .await
        .unwrap();
    late.batch_execute(
        "BEGIN; INSERT INTO t VALUES (2, 'committed first'); INSERT INTO t VALUES (3, NULL); COMMIT",
    )
    .await
    .unwrap();
    late.batch_execute("BEGIN; INSERT INTO t VALUES (4, 'no'); ROLLBACK")
        .await
        .unwrap();
    early.batch_execute("COMMIT").await.unwrap();

    let changes = soon(order.read()).await.unwrap();
    assert_eq!(ids(&changes), ["2", "3", "1"]);
    assert_eq!(
        changes
            .iter()
            .map(|change| (change.order, change.commit))
            .collect::<Vec<_>>(),
        [(1, 1), (2, 1), (3, 2)]
    );
    assert!(
        changes[0].xid > changes[2].xid,
        "the transaction that committed last has the lower id"
    );
    assert_eq!(
        (changes[0].xid, &changes[0].commit_lsn),
        (changes[1].xid, &changes[1].commit_lsn)
    );
    assert_eq!(changes[0].relation, "public.t");
    assert_eq!(changes[1].columns["note"], None);

    late.batch_execute("UPDATE t SET id = 5 WHERE id = 1; DELETE FROM t WHERE id = 2; TRUNCATE t")
        .await
        .unwrap();
    let more = soon(order.read()).await.unwrap();
    assert_eq!(
        more.iter()
            .map(|change| (change.order, change.operation))
            .collect::<Vec<_>>(),
        [
            (4, Operation::Update),
            (5, Operation::Delete),
            (6, Operation::Truncate)
        ]
    );
    assert_eq!(more[0].old_key["id"].as_deref(), Some("1"));
    assert_eq!(more[0].columns["id"].as_deref(), Some("5"));
    assert_eq!(soon(order.read()).await.unwrap(), []);
}

#[tokio::test]
async fn values_and_names_of_every_kind_come_back_as_they_were() {
    let database = for_tests().await.fresh_database().await;
    let client = connect(&database).await;
    client
        .batch_execute(
            r#"CREATE SCHEMA "Odd. Schema"; CREATE TYPE "Odd. Schema"."mood ]" AS ENUM ('it''s fine');
               CREATE TABLE "Odd. Schema"."T: a" (id bigint PRIMARY KEY, "x[1]: y" text, tags text[], flag boolean,
                   bits bit varying, mood "Odd. Schema"."mood ]", amount numeric(20, 2), code character varying(9))"#,
        )
        .await
        .unwrap();
    let mut order = start(&database).await;
    let awkward = "it's\n\"null\" new-tuple: \\ end";
    let insert = r#"INSERT INTO "Odd. Schema"."T: a" VALUES
                    (562949953421399, $1, '{a,"b c"}', true, B'0101', 'it''s fine', -1.50, 'null')"#;
    client.execute(insert, &[&awkward]).await.unwrap();
    let change = soon(order.read()).await.unwrap().remove(0);
    assert_eq!(change.relation, "Odd. Schema.T: a");
    let values: Vec<_> = change
        .columns
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_deref().unwrap()))
        .collect();
    assert_eq!(
        values,
        [
            ("amount", "-1.50"),
            ("bits", "0101"),
            ("code", "null"),
            ("flag", "true"),
            ("id", "562949953421399"),
            ("mood", "it's fine"),
            ("tags", "{a,\"b c\"}"),
            ("x[1]: y", awkward),
        ]
    );
}

#[tokio::test]
async fn a_commit_that_did_not_wait_for_the_disk_is_read_too() {
    let database = for_tests().await.fresh_database().await;
    let client = connect(&database).await;
    client
        .batch_execute("CREATE TABLE t (id int PRIMARY KEY); SET synchronous_commit = off")
        .await
        .unwrap();
    let mut order = start(&database).await;
    for id in 1..=20 {
        client.execute("INSERT INTO t VALUES ($1)", &[&id]).await.unwrap();
        let changes = soon(order.read()).await.unwrap();
        assert_eq!(ids(&changes), [id.to_string()]);
    }
}

#[tokio::test]
async fn the_slot_goes_with_its_reader() {
    let services = for_tests().await;
    let database = services.fresh_database().await;
    let order = start(&database).await;
    let watcher = connect(&services.postgres().superuser_url()).await;
    let count = "SELECT count(*) FROM pg_replication_slots WHERE database = $1";
    let slots = async || -> i64 {
        watcher
            .query_one(count, &[&database.database()])
            .await
            .unwrap()
            .get(0)
    };
    assert_eq!(slots().await, 1);
    drop(order);
    soon(async { while slots().await > 0 {} }).await;
}

#[tokio::test]
async fn a_role_that_may_not_decode_is_told_what_is_needed() {
    let database = for_tests().await.fresh_database().await;
    let owner: Config = database.as_str().parse().unwrap();
    let error = soon(CommitOrder::start(&owner, database.database()))
        .await
        .unwrap_err();
    assert!(matches!(&error, CommitOrderError::Slot { wal_level, .. } if wal_level == "logical"));
    assert!(
        error
            .to_string()
            .contains("the plugin test_decoding, and the role needs REPLICATION"),
        "{error}"
    );
    assert!(error.source().is_some());
}
