//! Stopping admissions by hand, letting them go on, and memories kept outside.

use crate::restored::of_epoch;
use crate::support::{CLASS, Database, OPEN, admit, code, failure, token, wait_for_lock_waiters};

const STOP: &str = "SELECT fence.stop('a restore is under way')";

#[tokio::test]
async fn a_stop_refuses_every_admission_and_says_who_lets_them_go_on() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client.batch_execute(&admit("acct-1", 33)).await.unwrap();
    let before = database.client().await;
    before
        .batch_execute(&format!("BEGIN; {}", admit("acct-2", 33)))
        .await
        .unwrap();
    client.batch_execute(STOP).await.unwrap();
    let stopped = failure(&client, &admit("acct-1", 33)).await;
    assert_eq!(stopped.code().code(), "ZF008");
    assert!(
        stopped.detail().unwrap().ends_with(": a restore is under way"),
        "{stopped:?}"
    );
    for sql in [
        admit("acct-1", 34),
        admit("acct-3", 1),
        format!("SELECT fence.raise_mark('{OPEN}', 'a', 5)"),
        "SELECT fence.declare('paydb.later'); SELECT fence.admit('paydb.later', 'a', 5)".to_owned(),
        "SELECT fence.remember()".to_owned(),
    ] {
        assert_eq!(code(&client, &sql).await, "ZF008", "{sql}");
    }
    // Admitted before it, and free to commit.
    before.batch_execute("COMMIT").await.unwrap();
    let status = "SELECT state || ': ' || reason FROM fence.history_status()";
    assert!(
        database
            .text(status)
            .await
            .starts_with("stopped: it was stopped at ")
    );
    // The first reason stays.
    client.batch_execute("SELECT fence.stop('again')").await.unwrap();
    assert!(database.text(status).await.ends_with("a restore is under way"));

    client
        .batch_execute("SELECT fence.acknowledge('nothing was restored after all', nothing_lost => true)")
        .await
        .unwrap();
    client.batch_execute(&admit("acct-1", 33)).await.unwrap();
    assert_eq!(
        database.text("SELECT state FROM fence.history_status()").await,
        "known"
    );
    let logged = "SELECT string_agg(what, ' ' ORDER BY id) FROM fence.danger_log";
    assert_eq!(database.text(logged).await, "stop stop acknowledge");
}

#[tokio::test]
async fn neither_a_stop_nor_an_acknowledgement_goes_without_a_reason() {
    let database = Database::guarded().await;
    let client = database.client().await;
    for reason in ["NULL", "''", "'  '"] {
        let stop = format!("SELECT fence.stop({reason})");
        assert_eq!(code(&client, &stop).await, "22023", "{reason}");
    }
    client.batch_execute(&admit("acct-1", 33)).await.unwrap();
    client.batch_execute(STOP).await.unwrap();
    let acknowledge = "SELECT fence.acknowledge('', nothing_lost => true)";
    assert_eq!(code(&client, acknowledge).await, "22023");
    assert_eq!(code(&client, &admit("acct-1", 33)).await, "ZF008");
}

#[tokio::test]
async fn what_is_sound_is_not_acknowledged() {
    let database = Database::guarded().await;
    let generation = "SELECT generation::text FROM fence.history";
    let before = database.text(generation).await;
    database
        .run("SELECT fence.acknowledge('to be sure'); SELECT fence.acknowledge('to be sure', true)")
        .await;
    assert_eq!(database.text(generation).await, before);
    assert_eq!(database.number("SELECT max(floor) FROM fence.class").await, 0);
}

#[tokio::test]
async fn applying_the_files_again_lets_nothing_go_on() {
    let database = Database::guarded().await;
    database.run(STOP).await;
    let client = database.client().await;
    for migration in fence_pg::MIGRATIONS {
        client.batch_execute(migration.sql).await.unwrap();
    }
    assert_eq!(code(&client, &admit("acct-1", 33)).await, "ZF008");
}

#[tokio::test]
async fn a_stop_waits_for_whoever_is_just_remembering_that_all_is_sound() {
    let database = Database::guarded().await;
    let first = database.client().await;
    // The first admission of a class looks, and remembers with its commit.
    first
        .batch_execute(&format!("BEGIN; {}", admit("acct-1", 33)))
        .await
        .unwrap();
    // So does one whose class nobody else sees yet.
    let second = database.client().await;
    second
        .batch_execute(
            "BEGIN; SELECT fence.declare('paydb.later'); SELECT fence.admit('paydb.later', 'a', 5)",
        )
        .await
        .unwrap();
    let client = database.client().await;
    let other = database.client().await;
    let stopping = async { client.batch_execute(STOP).await.unwrap() };
    let commit = async {
        wait_for_lock_waiters(&database, 1).await;
        // Another looks for itself, and waits for neither.
        other.batch_execute(&admit("acct-2", 33)).await.unwrap();
        first.batch_execute("COMMIT").await.unwrap();
        second.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(stopping, commit);
    assert_eq!(code(&other, &admit("acct-1", 33)).await, "ZF008");
    let later = "SELECT fence.admit('paydb.later', 'a', 5)";
    assert_eq!(code(&other, later).await, "ZF008");
}

#[tokio::test]
async fn an_acknowledged_loss_needs_an_epoch_above_every_mark_and_a_floor_for_a_class_without_a_tier() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute(&format!(
            "{} SELECT fence.admit('{OPEN}', 'a', 50); SELECT fence.register_epoch('entity', 2); {STOP}",
            admit("acct-1", 33)
        ))
        .await
        .unwrap();
    let acknowledge = "SELECT fence.acknowledge('restored')";
    // Epoch 2 was there before: tokens of it may be among what was lost.
    let early = failure(&client, acknowledge).await;
    assert_eq!(early.code().code(), "55000");
    assert!(
        early.hint().unwrap().contains("fence.register_epoch('entity'"),
        "{early:?}"
    );
    client
        .batch_execute("SELECT fence.register_epoch('entity', 3)")
        .await
        .unwrap();
    let open = failure(&client, acknowledge).await;
    assert_eq!(open.code().code(), "55000");
    assert!(
        open.hint()
            .unwrap()
            .contains(&format!("fence.raise_floor('{OPEN}'")),
        "{open:?}"
    );
    client
        .batch_execute(&format!("SELECT fence.raise_floor('{OPEN}', 60); {acknowledge}"))
        .await
        .unwrap();
    for sql in [
        admit("acct-1", 33),
        format!("SELECT fence.admit('{CLASS}', 'acct-9', {}, 'g')", of_epoch(2, 9)),
        format!("SELECT fence.admit('{OPEN}', 'a', 59)"),
    ] {
        assert_eq!(code(&client, &sql).await, "ZF001", "{sql}");
    }
    for sql in [
        format!("SELECT fence.admit('{CLASS}', 'acct-1', {}, 'g')", of_epoch(3, 1)),
        format!("SELECT fence.admit('{OPEN}', 'a', 60)"),
    ] {
        client.batch_execute(&sql).await.unwrap();
    }
}

#[tokio::test]
async fn a_database_that_has_forgotten_its_history_is_in_doubt() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client.batch_execute("DELETE FROM fence.history").await.unwrap();
    let doubted = failure(&client, &admit("acct-1", 33)).await;
    assert_eq!(doubted.code().code(), "ZF008");
    client
        .batch_execute("SELECT fence.acknowledge('it was deleted by hand', true)")
        .await
        .unwrap();
    client.batch_execute(&admit("acct-1", 33)).await.unwrap();
}

#[tokio::test]
async fn a_memory_of_elsewhere_or_of_nothing_stops_nothing() {
    let (database, other) = (Database::guarded().await, Database::guarded().await);
    let memory = other.text("SELECT fence.remember()").await;
    let client = database.client().await;
    let compare = |memory: &str| format!("SELECT fence.compare_memory('{memory}')");
    assert_eq!(database.text(&compare(&memory)).await, "stranger");
    assert_eq!(other.text(&compare(&format!(" {memory}\n"))).await, "same");
    for no_memory in [
        "",
        "same",
        "fence-memory-1 database=x",
        &memory.replace("word=", "ward="),
        &memory[..memory.len() / 2],
    ] {
        assert_eq!(code(&client, &compare(no_memory)).await, "22023", "{no_memory}");
    }
    client.batch_execute(&admit("acct-1", 33)).await.unwrap();
    let when = "SELECT coalesce(outside_memory_at::text, 'never') FROM fence.history_status()";
    assert_eq!(database.text(when).await, "never");
    assert_ne!(other.text(when).await, "never");
}

#[tokio::test]
async fn a_memory_that_was_never_committed_here_counts_as_lost() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client.batch_execute("BEGIN").await.unwrap();
    let memory: String = client
        .query_one("SELECT fence.remember()", &[])
        .await
        .unwrap()
        .get(0);
    client.batch_execute("ROLLBACK").await.unwrap();
    let compare = format!("SELECT fence.compare_memory('{memory}')");
    // Without a commit, the stop is not there either.
    client
        .batch_execute(&format!("BEGIN; {compare}; ROLLBACK"))
        .await
        .unwrap();
    client.batch_execute(&admit("acct-1", 33)).await.unwrap();
    assert_eq!(database.text(&compare).await, "lost");
    assert_eq!(code(&client, &admit("acct-1", 33)).await, "ZF008");
}

#[tokio::test]
async fn a_tier_that_no_class_uses_is_noticed_when_its_epoch_is_registered() {
    let database = Database::guarded().await;
    let witness = "SELECT string_agg(format('%s %s %s %s', tier, epoch, ceiling, classes), '; ') FROM fence.known_epochs()";
    let last = (2_i64 << 48) - 1;
    assert_eq!(database.text(witness).await, format!("entity 1 {last} 1"));
    let end = token(7);
    database
        .run(&format!("SELECT fence.register_epoch('coord', 1, {end})"))
        .await;
    assert_eq!(
        database.text(witness).await,
        format!("coord 1 {end} 0; entity 1 {last} 1")
    );
    let notices = crate::roles::warnings(&database, "SELECT fence.register_epoch('cord', 1)").await;
    assert!(
        notices[0].contains("no class is declared in tier cord"),
        "{notices:?}"
    );
    let notices = crate::roles::warnings(&database, "SELECT fence.register_epoch('entity', 2)").await;
    assert!(notices.is_empty(), "{notices:?}");
}

#[tokio::test]
async fn an_acknowledged_loss_names_the_token_columns_that_have_to_be_raised_by_hand() {
    let database = Database::guarded().await;
    database
        .run(&format!(
            "CREATE TABLE \"the batch\" (id bigint PRIMARY KEY, fence_token bigint NOT NULL DEFAULT 0);
             INSERT INTO \"the batch\" VALUES (1, {});
             SELECT fence.protect_column('\"the batch\"', '{CLASS}', 'id', 'fence_token');
             {STOP}",
            token(30)
        ))
        .await;
    database.run("SELECT fence.register_epoch('entity', 2)").await;
    let said = crate::roles::warnings(&database, "SELECT fence.acknowledge('restored')").await;
    let (_, update) = said[0].split_once("by hand: ").unwrap();
    database.run(update).await;
    let late = format!(
        "UPDATE \"the batch\" SET fence_token = {} WHERE id = 1",
        token(33)
    );
    assert_eq!(code(&database.client().await, &late).await, "ZF001");
    assert_eq!(said.len(), 1, "{said:?}");
}

#[tokio::test]
async fn above_read_committed_a_stop_since_the_snapshot_is_seen_and_anothers_memory_is_no_hindrance() {
    for stopped in [false, true] {
        let database = Database::guarded().await;
        // As after a restart.
        let unlooked = "UPDATE fence.class SET sound_start = NULL";
        database.run(&format!("{} {unlooked}", admit("acct-2", 32))).await;
        let old = database.client().await;
        old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
            .await
            .unwrap();
        database.run(&admit("acct-1", 33)).await;
        if stopped {
            database.run(STOP).await;
        }
        let admission = old.batch_execute(&admit("acct-2", 33)).await;
        if stopped {
            let refused = admission.unwrap_err();
            assert_eq!(refused.code().unwrap().code(), "40001");
        } else {
            admission.unwrap();
            old.batch_execute("COMMIT").await.unwrap();
        }
    }
}
