//! Private PostgreSQL and etcd.

use std::time::{Duration, Instant};

use pause_kit::reaper::ReaperCommand;
use pause_kit::services::{Services, ServicesConfig, for_tests, locate};
use tokio_postgres::{Client, NoTls};

use crate::table::{becomes, ownerless_segments, strays, unmapped_files};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn etcd(endpoint: &str, call: &str, body: serde_json::Value) -> serde_json::Value {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    http.post(format!("{endpoint}/v3/{call}"))
        .json(&body)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_fresh_database_belongs_to_a_role_without_superuser_rights() {
    let database = for_tests().await.fresh_database().await;
    let client = connect(database.as_str()).await;
    let query = "SELECT rolsuper, rolname = current_user FROM pg_roles JOIN pg_database d ON datdba = pg_roles.oid \
                 WHERE datname = current_database()";
    let row = client.query_one(query, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get(1)), (false, true));
    client
        .batch_execute("CREATE SCHEMA fence; CREATE TABLE fence.t (a int)")
        .await
        .unwrap();
}

#[tokio::test]
async fn two_fresh_databases_and_prefixes_are_two_and_one_role_cannot_enter_the_other_database() {
    let shared = for_tests().await;
    assert_ne!(shared.fresh_prefix(), shared.fresh_prefix());
    let (one, other) = (shared.fresh_database().await, shared.fresh_database().await);
    let crossed = shared.postgres().url(other.database(), one.login());
    let error = tokio_postgres::connect(crossed.as_str(), NoTls)
        .await
        .err()
        .unwrap();
    assert_eq!(
        error.code(),
        Some(&tokio_postgres::error::SqlState::INSUFFICIENT_PRIVILEGE)
    );
}

#[tokio::test]
async fn a_second_server_is_of_the_release_that_was_chosen() {
    let shared = for_tests().await;
    let programs = locate::postgres_18().unwrap_or_else(|error| panic!("{error}"));
    let server = shared.services().start_postgres(&programs).await.unwrap();
    assert!(server.version().starts_with("18."), "{}", server.version());
    let database = server.create_database("paydb", "paydb_owner").await.unwrap();
    let row = connect(database.as_str())
        .await
        .query_one("SHOW server_version_num", &[])
        .await
        .unwrap();
    assert!(row.get::<_, &str>(0).starts_with("18"));
}

#[tokio::test]
async fn a_pooler_gives_each_transaction_any_of_its_connections_and_knows_later_roles() {
    let shared = for_tests().await;
    let pooler = shared
        .services()
        .start_pgbouncer(shared.postgres(), 1)
        .await
        .unwrap();
    let database = shared.fresh_database().await;
    let through = database.through(pooler.port());
    let (one, other) = (connect(through.as_str()).await, connect(through.as_str()).await);
    let pid = async |client: &Client| {
        let answer = client.simple_query("SELECT pg_backend_pid()").await.unwrap();
        let pid = answer.iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        pid.unwrap()
    };
    assert_eq!(pid(&one).await, pid(&other).await, "two clients, one connection");
    let mut wrong = database.login().clone();
    wrong.password = "x".to_owned();
    let url = shared
        .postgres()
        .url(database.database(), &wrong)
        .through(pooler.port());
    let refused = tokio_postgres::connect(url.as_str(), NoTls).await.err().unwrap();
    assert!(refused.to_string().contains("db error"), "{refused}");
}

#[tokio::test]
async fn commits_can_be_decoded_and_the_server_listens_on_the_loopback_address_alone() {
    let shared = for_tests().await;
    let database = shared.fresh_database().await;
    let client = connect(shared.postgres().superuser_url_of(database.database()).as_str()).await;
    let slot =
        "SELECT count(*) FROM pg_create_logical_replication_slot('order_of_commits', 'test_decoding', true)";
    assert_eq!(client.query_one(slot, &[]).await.unwrap().get::<_, i64>(0), 1);
    for (name, value) in [
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", ""),
        ("dynamic_shared_memory_type", "mmap"),
        ("synchronous_commit", "on"),
    ] {
        let row = client
            .query_one("SELECT current_setting($1)", &[&name])
            .await
            .unwrap();
        assert_eq!(row.get::<_, &str>(0), value, "{name}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_refused() {
    let shared = for_tests().await;
    let mut login = shared.fresh_database().await.login().clone();
    login.password = "wrong".to_owned();
    let url = shared.postgres().url("postgres", &login);
    let error = tokio_postgres::connect(url.as_str(), NoTls).await.err().unwrap();
    assert_eq!(
        error.code(),
        Some(&tokio_postgres::error::SqlState::INVALID_PASSWORD)
    );
}

#[tokio::test]
async fn a_lease_of_two_seconds_ends_after_two_seconds() {
    let endpoint = for_tests().await.etcd().endpoint();
    let key = "bGVhc2U=";
    let granted = etcd(&endpoint, "lease/grant", serde_json::json!({"TTL": 2})).await;
    let began = Instant::now();
    assert_eq!(granted["TTL"], "2");
    etcd(
        &endpoint,
        "kv/put",
        serde_json::json!({"key": key, "value": key, "lease": granted["ID"]}),
    )
    .await;
    while etcd(&endpoint, "kv/range", serde_json::json!({"key": key})).await["count"] == "1" {
        assert!(began.elapsed() < Duration::from_secs(10), "the lease never ends");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let lived = began.elapsed();
    assert!(
        lived > Duration::from_millis(1900) && lived < Duration::from_millis(3500),
        "{lived:?}"
    );
}

#[tokio::test]
async fn two_clusters_of_one_run_have_ids_of_their_own() {
    let etcd_names = vec!["coord".to_owned(), "entity".to_owned()];
    let reaper = ReaperCommand::find().unwrap();
    let services = Services::start(ServicesConfig {
        reaper,
        postgres: false,
        etcd: etcd_names,
    })
    .await
    .unwrap();
    let mut ids = Vec::new();
    for name in ["coord", "entity"] {
        let endpoint = services.etcd(name).unwrap().endpoint();
        let status = etcd(&endpoint, "maintenance/status", serde_json::json!({})).await;
        ids.push(status["header"]["cluster_id"].clone());
    }
    assert!(ids[0].is_string() && ids[0] != ids[1], "{ids:?}");
    assert!(services.etcd("other").is_none() && services.postgres().is_none());
    assert_eq!(services.versions().postgres, None);
}

#[tokio::test]
async fn the_versions_are_those_that_the_servers_tell_themselves() {
    let shared = for_tests().await;
    let client = connect(shared.postgres().superuser_url().as_str()).await;
    let told: String = client
        .query_one("SELECT current_setting('server_version')", &[])
        .await
        .unwrap()
        .get(0);
    let versions = shared.services().versions();
    assert_eq!(versions.postgres.as_deref(), told.split(' ').next());
    let status = etcd(
        &shared.etcd().endpoint(),
        "maintenance/status",
        serde_json::json!({}),
    )
    .await;
    assert_eq!(versions.etcd.as_deref(), status["version"].as_str());
}

#[tokio::test]
async fn a_start_that_is_given_up_at_any_moment_leaves_nothing() {
    let left = || [strays(), ownerless_segments(), unmapped_files()].concat();
    let before = left();
    let new = || {
        left()
            .into_iter()
            .filter(|one| !before.contains(one))
            .collect::<Vec<_>>()
    };
    for after in (0..1000).step_by(70) {
        let config = ServicesConfig {
            reaper: ReaperCommand::find().unwrap(),
            postgres: true,
            etcd: vec!["given-up".to_owned()],
        };
        let started = tokio::time::timeout(Duration::from_millis(after), Services::start(config)).await;
        let began = Instant::now();
        drop(started);
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{after} ms: {:?}",
            began.elapsed()
        );
        assert!(
            becomes(Duration::from_secs(5), || new().is_empty()).is_some(),
            "{after} ms: {:?}",
            new()
        );
    }
}
