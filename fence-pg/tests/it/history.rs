//! A database that has lost its newest marks: noticed, stopped, acknowledged; or, without a memory kept outside, unseen.

use tokio_postgres::Client;

use crate::restored::{Becomes, Copy, Origin, of_epoch};
use crate::support::{CLASS, Database, admit, code, failure, token};

/// Revision 34 was admitted and lost; 33 is the late one, whose own mark would let it in.
async fn newer_is_refused_until_it_is_acknowledged(client: &Client, why: &str) {
    for revision in [33, 34] {
        let doubted = failure(client, &admit("acct-1", revision)).await;
        assert_eq!(doubted.code().code(), "ZF008", "{doubted:?}");
        assert!(doubted.detail().unwrap().contains(why), "{doubted:?}");
        assert!(
            doubted.hint().unwrap().contains("fence.acknowledge("),
            "{doubted:?}"
        );
    }
    let acknowledge = "SELECT fence.acknowledge('the newest marks are lost')";
    let early = failure(client, acknowledge).await;
    assert_eq!(early.code().code(), "55000", "{early:?}");
    assert!(early.message().contains("tier entity"), "{early:?}");
    client
        .batch_execute("SELECT fence.register_epoch('entity', 2)")
        .await
        .unwrap();
    assert_eq!(code(client, &admit("acct-1", 33)).await, "ZF008");

    client.batch_execute(acknowledge).await.unwrap();
    for (key, revision) in [("acct-1", 33), ("acct-1", 34), ("acct-2", 34)] {
        let stale = failure(client, &admit(key, revision)).await;
        assert_eq!(stale.code().code(), "ZF001", "{stale:?}");
        assert_eq!(
            stale.detail().unwrap(),
            format!("presented {}, seen {}", token(revision), of_epoch(2, 1))
        );
    }
    admit_of_epoch_two(client).await;
}

async fn admit_of_epoch_two(client: &Client) {
    let newer = format!(
        "SELECT fence.admit('{CLASS}', 'acct-1', {}, 'h1')",
        of_epoch(2, 1)
    );
    client.batch_execute(&newer).await.unwrap();
}

async fn text(client: &Client, sql: &str) -> String {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

async fn compare(client: &Client, memory: &str) -> String {
    let sql = "SELECT fence.compare_memory($1)";
    client.query_one(sql, &[&memory]).await.unwrap().get(0)
}

const REMEMBER: &str = "SELECT fence.remember()";

#[tokio::test]
async fn a_standby_that_was_promoted_without_the_newest_mark_admits_nobody_until_that_is_acknowledged() {
    let origin = Origin::start("promoted").await;
    let data = origin.back_up("standby", Becomes::Standby).await;
    origin
        .client()
        .await
        .batch_execute(&admit("acct-1", 34))
        .await
        .unwrap();
    origin.fail().await;

    let standby = Copy::start(&origin, &data).await;
    standby.promote(&origin).await;
    let client = standby.client().await;
    newer_is_refused_until_it_is_acknowledged(&client, "timeline was 00000001, and is 00000002").await;
    let log = "SELECT string_agg(what || ': ' || reason, '; ') FROM fence.danger_log";
    assert_eq!(text(&client, log).await, "acknowledge: the newest marks are lost");
}

#[tokio::test]
async fn a_planned_switchover_is_acknowledged_as_one_that_lost_nothing() {
    let origin = Origin::start("switched").await;
    let data = origin.back_up("standby", Becomes::Standby).await;
    let standby = Copy::start(&origin, &data).await;
    standby.promote(&origin).await;
    let client = standby.client().await;
    assert_eq!(code(&client, &admit("acct-1", 30)).await, "ZF008");
    client
        .batch_execute("SELECT fence.acknowledge('switched over for maintenance', nothing_lost => true)")
        .await
        .unwrap();
    client.batch_execute(&admit("acct-1", 30)).await.unwrap();
    client.batch_execute(&admit("acct-1", 31)).await.unwrap();
    assert_eq!(code(&client, &admit("acct-1", 30)).await, "ZF001");
}

#[tokio::test]
async fn a_restore_to_a_point_in_time_admits_nobody_until_that_is_acknowledged() {
    let origin = Origin::start("point").await;
    let data = origin.back_up("point", Becomes::PointInTime).await;
    origin
        .client()
        .await
        .batch_execute(&admit("acct-1", 34))
        .await
        .unwrap();
    origin.fail().await;
    let restored = Copy::start(&origin, &data).await;
    newer_is_refused_until_it_is_acknowledged(&restored.client().await, "timeline was 00000001").await;
}

#[tokio::test]
async fn a_data_directory_put_back_goes_unnoticed_inside_and_is_noticed_by_a_memory_outside() {
    let origin = Origin::start("back").await;
    let primary = origin.client().await;
    let early = text(&primary, REMEMBER).await;
    let data = origin.back_up("put-back", Becomes::Itself).await;
    primary.batch_execute(&admit("acct-1", 34)).await.unwrap();
    let late = text(&primary, REMEMBER).await;
    assert_eq!(compare(&primary, &early).await, "ahead");
    assert_eq!(compare(&primary, &late).await, "same");
    origin.fail().await;

    let mut restored = Copy::start(&origin, &data).await;
    let client = restored.client().await;
    // The limit that is documented: from inside nothing shows.
    client.batch_execute(&admit("acct-1", 33)).await.unwrap();
    assert_eq!(compare(&client, &early).await, "same");
    client.batch_execute(&admit("acct-1", 33)).await.unwrap();

    assert_eq!(compare(&client, &late).await, "lost");
    restored.restart(true).await;
    let client = restored.client().await;
    newer_is_refused_until_it_is_acknowledged(&client, "it has lost what was remembered outside").await;
    // What was acknowledged is not reported again.
    assert_eq!(compare(&client, &late).await, "ahead");
    assert_eq!(compare(&client, &text(&client, REMEMBER).await).await, "same");
}

#[tokio::test]
async fn a_memory_is_missed_also_when_as_many_were_given_out_since() {
    let origin = Origin::start("since").await;
    let primary = origin.client().await;
    let data = origin.back_up("put-back", Becomes::Itself).await;
    let lost = text(&primary, REMEMBER).await;
    origin.fail().await;
    let restored = Copy::start(&origin, &data).await;
    let client = restored.client().await;
    let since = text(&client, REMEMBER).await;
    let number = |memory: &str| memory.split(' ').nth(3).unwrap().to_owned();
    assert_eq!(number(&lost), number(&since));
    assert_eq!(compare(&client, &since).await, "same");
    assert_eq!(compare(&client, &lost).await, "lost");
}

#[tokio::test]
async fn a_restart_orderly_or_not_is_no_loss() {
    let origin = Origin::start("restart").await;
    let data = origin.back_up("same", Becomes::Itself).await;
    origin.fail().await;
    let mut server = Copy::start(&origin, &data).await;
    for (orderly, revision) in [(true, 31), (false, 32)] {
        let client = server.client().await;
        client.batch_execute(&admit("acct-1", revision)).await.unwrap();
        let looked = "SELECT (sound_start = pg_postmaster_start_time())::text FROM fence.class";
        assert_eq!(text(&client, looked).await, "true");
        server.restart(orderly).await;
        let client = server.client().await;
        assert_eq!(text(&client, looked).await, "false");
        // Looked at and remembered by the first, at any isolation level.
        let level = if orderly { "SERIALIZABLE" } else { "READ COMMITTED" };
        let first = format!(
            "BEGIN ISOLATION LEVEL {level}; {} COMMIT",
            admit("acct-1", revision)
        );
        client.batch_execute(&first).await.unwrap();
        assert_eq!(text(&client, looked).await, "true");
        assert_eq!(code(&client, &admit("acct-1", revision - 1)).await, "ZF001");
        client.batch_execute(&admit("acct-1", revision)).await.unwrap();
        assert_eq!(text(&client, looked).await, "true");
    }
}

#[tokio::test]
async fn a_dump_restored_into_another_cluster_is_in_doubt() {
    let (origin, other) = (Origin::start("dumped").await, Origin::start("taker").await);
    let url = origin.dump_into(&other).await;
    let client = crate::support::client(&url).await;
    newer_is_refused_until_it_is_acknowledged(&client, "its system identifier was ").await;
}

#[tokio::test]
async fn a_copy_in_the_same_server_is_in_doubt_and_its_origin_is_not() {
    let database = Database::guarded().await;
    database.run(&admit("acct-1", 30)).await;
    let name = database.url.database();
    let superuser = database.superuser().await;
    let copy = format!("{name}_copy");
    let postgres = pause_kit::services::for_tests().await.postgres();
    let admin = crate::support::client(&postgres.superuser_url()).await;
    database.pool.close().await;
    drop(superuser);
    wait_until_alone(&admin, name).await;
    admin
        .batch_execute(&format!("CREATE DATABASE {copy} TEMPLATE {name}"))
        .await
        .unwrap();
    let copied = crate::support::client(&postgres.superuser_url_of(&copy)).await;
    newer_is_refused_until_it_is_acknowledged(&copied, "it is a copy").await;
    database.run(&admit("acct-1", 31)).await;
}

async fn wait_until_alone(admin: &Client, name: &str) {
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1";
    let began = std::time::Instant::now();
    while admin.query_one(others, &[&name]).await.unwrap().get::<_, i64>(0) > 0 {
        assert!(began.elapsed() < std::time::Duration::from_secs(20));
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
