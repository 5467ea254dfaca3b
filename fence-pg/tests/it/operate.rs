//! Floors, pruning behind them, and lowering the mark of a key that a forged token has bricked.

use fence_core::Effect;

use crate::restored::of_epoch;
use crate::support::{CLASS, Database, OPEN, admit, claim, code, failure, token, wait_for_lock_waiters};

fn raise_floor(revision: i64) -> String {
    format!("SELECT fence.raise_floor('{CLASS}', {});", token(revision))
}

const PRUNE: &str = "SELECT fence.prune('paydb.account')";
const MARKS: &str = "SELECT count(*) FROM fence.high_water";

#[tokio::test]
async fn below_the_floor_every_token_is_stale_with_or_without_a_mark() {
    let database = Database::guarded().await;
    let client = database.client().await;
    for (key, revision) in [("low", 10), ("high", 60)] {
        client.batch_execute(&admit(key, revision)).await.unwrap();
    }
    client.batch_execute(&raise_floor(50)).await.unwrap();
    for (key, presented, seen) in [
        ("low", 10, 50),
        ("low", 49, 50),
        ("none", 49, 50),
        ("high", 49, 60),
        ("high", 59, 60),
    ] {
        let stale = failure(&client, &admit(key, presented)).await;
        assert_eq!(stale.code().code(), "ZF001", "{key} {presented}");
        assert_eq!(
            stale.detail().unwrap(),
            format!("presented {}, seen {}", token(presented), token(seen))
        );
    }
    for (key, revision) in [("low", 50), ("none", 51), ("high", 60)] {
        client.batch_execute(&admit(key, revision)).await.unwrap();
    }
    // Of another class nothing changes.
    client
        .batch_execute(&format!("SELECT fence.admit('{OPEN}', 'low', 1)"))
        .await
        .unwrap();
}

#[tokio::test]
async fn pruning_removes_only_marks_below_the_floor_and_refuses_the_same_tokens_after_as_before() {
    let database = Database::guarded().await;
    let client = database.client().await;
    for revision in [10, 20, 49, 50, 51] {
        client
            .batch_execute(&admit(&format!("acct-{revision}"), revision))
            .await
            .unwrap();
    }
    client
        .batch_execute(&format!("SELECT fence.admit('{OPEN}', 'acct-10', 1)"))
        .await
        .unwrap();
    assert_eq!(database.number(PRUNE).await, 0);
    client.batch_execute(&raise_floor(50)).await.unwrap();
    let two = "SELECT fence.prune('paydb.account', 2)";
    assert_eq!(database.number(two).await, 2);
    assert_eq!(database.number(two).await, 1);
    assert_eq!(database.number(PRUNE).await, 0);
    assert_eq!(database.number(MARKS).await, 3);
    for (key, presented) in [("acct-10", 10), ("acct-10", 49), ("acct-49", 49), ("acct-51", 50)] {
        assert_eq!(code(&client, &admit(key, presented)).await, "ZF001", "{key}");
    }
    client.batch_execute(&admit("acct-10", 50)).await.unwrap();
    for limit in ["0", "-1", "NULL"] {
        let prune = format!("SELECT fence.prune('{CLASS}', {limit})");
        assert_eq!(code(&client, &prune).await, "22023", "{limit}");
    }
    assert_eq!(code(&client, "SELECT fence.prune('paydb.acount')").await, "ZF007");
}

#[tokio::test]
async fn a_mark_at_or_above_the_floor_is_removed_by_nobody() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute(&format!(
            "{} {} {}",
            admit("a", 49),
            admit("b", 50),
            raise_floor(50)
        ))
        .await
        .unwrap();
    for sql in [
        "DELETE FROM fence.high_water WHERE key = 'b'",
        "DELETE FROM fence.high_water",
        "TRUNCATE fence.high_water",
    ] {
        assert_eq!(code(&client, sql).await, "55000", "{sql}");
    }
    client
        .batch_execute("DELETE FROM fence.high_water WHERE key = 'a'")
        .await
        .unwrap();
    assert_eq!(database.number(MARKS).await, 1);
}

#[tokio::test]
async fn a_floor_never_falls_and_stays_inside_what_is_registered() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let floor = "SELECT floor FROM fence.class WHERE name = 'paydb.account'";
    for (revision, then) in [(50, 50), (49, 50), (50, 50), (51, 51)] {
        client.batch_execute(&raise_floor(revision)).await.unwrap();
        assert_eq!(database.number(floor).await, token(then).as_i64());
    }
    for sql in [
        "UPDATE fence.class SET floor = floor - 1",
        "UPDATE fence.class SET floor = NULL",
    ] {
        assert_eq!(code(&client, sql).await, "55000", "{sql}");
    }
    for (arguments, refused) in [
        (format!("'{CLASS}', {}", of_epoch(2, 1)), "ZF005"),
        (format!("'{CLASS}', 7"), "ZF005"),
        (format!("'{CLASS}', 0"), "ZF003"),
        (format!("'{CLASS}', NULL"), "ZF003"),
        ("'paydb.acount', 7".to_owned(), "ZF007"),
    ] {
        let sql = format!("SELECT fence.raise_floor({arguments})");
        assert_eq!(code(&client, &sql).await, refused, "{sql}");
    }
}

#[tokio::test]
async fn a_first_admission_that_waits_while_its_mark_is_pruned_meets_the_floor() {
    for begin in ["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"] {
        let database = Database::guarded().await;
        database.run(&admit("acct-1", 8)).await;
        let waiter = database.client().await;
        waiter.batch_execute(begin).await.unwrap();
        // Somebody else has the queue of the key.
        let holder = database.client().await;
        holder
            .batch_execute("BEGIN; SELECT pg_advisory_xact_lock(fence.queue_of('paydb.account', 'acct-1'))")
            .await
            .unwrap();
        let late_admission = admit("acct-1", 6);
        let late = code(&waiter, &late_admission);
        let prune = async {
            wait_for_lock_waiters(&database, 1).await;
            let client = database.client().await;
            client.batch_execute(&raise_floor(10)).await.unwrap();
            assert_eq!(database.number(PRUNE).await, 1);
            holder.batch_execute("COMMIT").await.unwrap();
        };
        let (refused, ()) = tokio::join!(late, prune);
        assert!(
            ["ZF001", "40001"].contains(&refused.as_str()),
            "{begin}: {refused}"
        );
        assert_eq!(database.number(MARKS).await, 0);
    }
}

#[tokio::test]
async fn a_mark_whose_transaction_is_open_is_not_pruned() {
    let database = Database::guarded().await;
    database.run(&admit("acct-1", 8)).await;
    let mut open = fence_pg::sqlx::begin(&database.pool, &claim("acct-1", 9))
        .await
        .unwrap();
    database.run(&raise_floor(10)).await;
    assert_eq!(database.number(PRUNE).await, 0);
    sqlx::query("INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5)")
        .execute(open.connection())
        .await
        .unwrap();
    drop(open.commit(Effect::Applied).await.unwrap());
    assert_eq!(database.number(PRUNE).await, 1);
}

/// A key that a forged token near the top of its range has bricked.
async fn bricked(database: &Database) -> i64 {
    let forged = (2_i64 << 48) - 1;
    let sql = format!("SELECT fence.admit('{CLASS}', 'acct-1', {forged}, 'forged')");
    database.run(&format!("{} {sql}", admit("acct-1", 33))).await;
    forged
}

fn lower(revision: i64, reason: &str) -> String {
    format!(
        "SELECT fence.danger_lower('{CLASS}', 'acct-1', {}, 'g{revision}', {reason})",
        token(revision)
    )
}

#[tokio::test]
async fn a_forged_token_outside_the_ranges_is_refused_and_one_near_their_top_is_undone_by_an_operator() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let outside = format!(
        "SELECT fence.admit('{CLASS}', 'acct-1', {}, 'forged')",
        of_epoch(2, 1)
    );
    assert_eq!(code(&client, &outside).await, "ZF005");
    let forged = bricked(&database).await;
    assert_eq!(code(&client, &admit("acct-1", 34)).await, "ZF001");

    client
        .batch_execute(&lower(33, "'forged, ticket 7'"))
        .await
        .unwrap();
    assert_eq!(code(&client, &admit("acct-1", 32)).await, "ZF001");
    client.batch_execute(&admit("acct-1", 33)).await.unwrap();
    client.batch_execute(&admit("acct-1", 34)).await.unwrap();
    let logged =
        "SELECT format('%s %s %s %s %s %s', what, class, key, before, after, reason) FROM fence.danger_log";
    assert_eq!(
        database.text(logged).await,
        format!(
            "danger_lower {CLASS} acct-1 {forged} {} forged, ticket 7",
            token(33)
        )
    );
}

#[tokio::test]
async fn lowering_is_no_admission_and_lets_no_other_write_of_the_mark_fall() {
    let database = Database::guarded().await;
    bricked(&database).await;
    let client = database.client().await;
    let write = "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5)";
    let lowered = format!("BEGIN; {}; {write}", lower(33, "'forged'"));
    assert_eq!(code(&client, &lowered).await, "ZF002");
    client.batch_execute("ROLLBACK").await.unwrap();
    // In the same transaction, only to the token that was logged; in a later one, not at all.
    let fall = |revision: i64| {
        format!(
            "UPDATE fence.high_water SET token = {} WHERE key = 'acct-1'",
            token(revision)
        )
    };
    client
        .batch_execute(&format!("BEGIN; {}; {}; COMMIT", lower(33, "'forged'"), fall(12)))
        .await
        .unwrap();
    let mark = "SELECT token FROM fence.high_water WHERE key = 'acct-1'";
    assert_eq!(database.number(mark).await, token(33).as_i64());
    client
        .batch_execute(&format!("{}; {}", admit("acct-1", 40), fall(33)))
        .await
        .unwrap();
    assert_eq!(database.number(mark).await, token(40).as_i64());
}

#[tokio::test]
async fn a_mark_is_lowered_only_with_a_reason_below_itself_and_to_what_could_have_been_granted() {
    let database = Database::guarded().await;
    let forged = bricked(&database).await;
    let client = database.client().await;
    client.batch_execute(&raise_floor(20)).await.unwrap();
    let call = |class: &str, key: &str, token: &str, grant: &str| {
        format!("SELECT fence.danger_lower('{class}', '{key}', {token}, {grant}, 'forged')")
    };
    let t33 = token(33).to_string();
    for (sql, refused) in [
        (lower(33, "NULL"), "22023"),
        (lower(33, "' '"), "22023"),
        (lower(19, "'below the floor'"), "55000"),
        (call(CLASS, "acct-1", &forged.to_string(), "'g'"), "55000"),
        (call(CLASS, "none", &t33, "'g'"), "55000"),
        (call(CLASS, "acct-1", "7", "'g'"), "ZF005"),
        (call(CLASS, "acct-1", "0", "'g'"), "ZF003"),
        (call(CLASS, "acct-1", "NULL", "'g'"), "ZF003"),
        (call(CLASS, "acct-1", &t33, "'no grant'"), "22023"),
        (call(OPEN, "acct-1", "7", "'g'"), "22023"),
        (call("paydb.acount", "acct-1", &t33, "'g'"), "ZF007"),
    ] {
        assert_eq!(code(&client, &sql).await, refused, "{sql}");
    }
    assert_eq!(database.number("SELECT count(*) FROM fence.danger_log").await, 0);
    // Without a grant id nobody goes on with an equal token; the next one does.
    client
        .batch_execute(&call(CLASS, "acct-1", &t33, "NULL"))
        .await
        .unwrap();
    assert_eq!(code(&client, &admit("acct-1", 33)).await, "ZF004");
    client.batch_execute(&admit("acct-1", 34)).await.unwrap();
}

#[tokio::test]
async fn a_held_key_is_not_lowered_under_its_holder() {
    let database = Database::guarded().await;
    bricked(&database).await;
    let holder = database.client().await;
    holder
        .batch_execute("BEGIN; SELECT FROM fence.high_water FOR UPDATE")
        .await
        .unwrap();
    let client = database.client().await;
    client.batch_execute("SET lock_timeout = '100ms'").await.unwrap();
    assert_eq!(code(&client, &lower(33, "'forged'")).await, "55P03");
    holder.batch_execute("COMMIT").await.unwrap();
    client.batch_execute(&lower(33, "'forged'")).await.unwrap();
}
