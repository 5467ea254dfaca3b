//! Classes, tiers and ranges.

use crate::support::{Database, OPEN, code, failure, token, wait_for_lock_waiters};

#[tokio::test]
async fn a_class_is_declared_once_and_stays_in_its_tier() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute("SELECT fence.declare('paydb.account', 'entity')")
        .await
        .unwrap();
    client
        .batch_execute(&format!("SELECT fence.declare('{OPEN}')"))
        .await
        .unwrap();
    for sql in [
        "SELECT fence.declare('paydb.account', 'coord')",
        "SELECT fence.declare('paydb.account')",
        "SELECT fence.declare(NULL)",
        "SELECT fence.declare('')",
        "SELECT fence.declare('Paydb')",
        "SELECT fence.declare('paydb..account')",
        "SELECT fence.declare('paydb.account ', 'entity')",
        "SELECT fence.declare('c', '1tier')",
        "SELECT fence.declare(repeat('c', 65))",
    ] {
        assert_eq!(code(&client, sql).await, "22023", "{sql}");
    }
    assert_eq!(database.number("SELECT count(*) FROM fence.class").await, 2);
}

#[tokio::test]
async fn sql_and_rust_agree_on_what_is_a_name() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let long = "a".repeat(64);
    for name in [
        "a",
        "a.b",
        "a1_-.b2",
        "a.1",
        ".a",
        "a.",
        "ä",
        "a b",
        "a\nb",
        "a\n",
        &long,
        &format!("{long}a"),
    ] {
        let in_rust = fence_core::ClassName::new(name).is_ok();
        let in_sql = client
            .execute("SELECT fence.require_name('class', $1)", &[&name])
            .await
            .is_ok();
        assert_eq!(in_sql, in_rust, "{name:?}");
    }
}

#[tokio::test]
async fn a_ceiling_only_moves_up_and_a_repeat_changes_nothing() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let register = |ceiling: i64| format!("SELECT fence.register_epoch('coord', 2, {ceiling})");
    let end = (2_i64 << 48) + 100;
    let ceiling = async || {
        database
            .number("SELECT ceiling FROM fence.epoch_range WHERE tier = 'coord'")
            .await
    };
    for higher in [end, end, end + 1] {
        client.batch_execute(&register(higher)).await.unwrap();
        assert_eq!(ceiling().await, higher);
    }
    assert_eq!(code(&client, &register(end)).await, "22023");
    client
        .batch_execute("SELECT fence.register_epoch('coord', 2)")
        .await
        .unwrap();
    assert_eq!(ceiling().await, end + 1);
    let last = (3_i64 << 48) - 1;
    client.batch_execute(&register(last)).await.unwrap();
    assert_eq!(ceiling().await, last);
}

#[tokio::test]
async fn an_epoch_outside_its_numbers_or_a_ceiling_outside_its_epoch_is_refused() {
    let database = Database::guarded().await;
    let client = database.client().await;
    for arguments in [
        "'entity', 0".to_owned(),
        "'entity', 32768".to_owned(),
        "'entity', -1".to_owned(),
        "'entity', NULL".to_owned(),
        "NULL, 1".to_owned(),
        format!("'entity', 2, {}", 2_i64 << 48),
        format!("'entity', 2, {}", 3_i64 << 48),
        "'entity', 2, 7".to_owned(),
    ] {
        assert_eq!(
            code(&client, &format!("SELECT fence.register_epoch({arguments})")).await,
            "22023",
            "{arguments}"
        );
    }
    client
        .batch_execute("SELECT fence.register_epoch('entity', 32767)")
        .await
        .unwrap();
    let last = database
        .number("SELECT max(ceiling) FROM fence.epoch_range")
        .await;
    assert_eq!(last, i64::MAX);
}

#[tokio::test]
async fn a_class_without_a_tier_or_a_mark_may_still_be_given_a_tier() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let give = format!("SELECT fence.declare('{OPEN}', 'entity')");
    client.batch_execute(&give).await.unwrap();
    client.batch_execute(&give).await.unwrap();
    let tier = format!("SELECT tier FROM fence.class WHERE name = '{OPEN}'");
    assert_eq!(database.text(&tier).await, "entity");
    for (tier, way_out) in [("'coord'", "'entity'"), ("NULL", "'entity'")] {
        let again = failure(&client, &format!("SELECT fence.declare('{OPEN}', {tier})")).await;
        assert_eq!(again.code().code(), "22023");
        assert!(again.hint().unwrap().contains(way_out), "{again:?}");
    }
    // From now on it takes a tier's tokens, with their grant ids.
    let bare = format!("SELECT fence.admit('{OPEN}', 'a', {})", token(1));
    assert_eq!(code(&client, &bare).await, "ZF002");
}

#[tokio::test]
async fn a_class_with_a_mark_gets_no_tier_and_is_told_the_way_out() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let give = format!("SELECT fence.declare('{OPEN}', 'entity')");
    client
        .batch_execute(&format!("SELECT fence.admit('{OPEN}', 'a', 5)"))
        .await
        .unwrap();
    let refused = failure(&client, &give).await;
    assert_eq!(refused.code().code(), "22023");
    assert!(refused.message().contains("has marks"), "{refused:?}");
    assert!(refused.hint().unwrap().contains("new class"), "{refused:?}");
    client
        .batch_execute(&format!("SELECT fence.declare('{OPEN}')"))
        .await
        .unwrap();
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT fence.declare('paydb.new');";
    let above = failure(
        &client,
        &format!("{begin} SELECT fence.declare('paydb.new', 'entity')"),
    )
    .await;
    assert_eq!(above.code().code(), "55000");
}

#[tokio::test]
async fn a_first_mark_and_a_tier_never_pass_each_other() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let give = format!("SELECT fence.declare('{OPEN}', 'entity')");
    let admit = format!("SELECT fence.admit('{OPEN}', 'a', 5)");
    // A tier that is being given: the first mark does not come beneath it.
    client.batch_execute("BEGIN").await.unwrap();
    client.batch_execute(&give).await.unwrap();
    let other = database.client().await;
    assert_eq!(code(&other, &admit).await, "55P03");
    client.batch_execute("ROLLBACK").await.unwrap();
    // A first mark that is being made: the tier waits for it, and then sees it.
    other.batch_execute("BEGIN").await.unwrap();
    other.batch_execute(&admit).await.unwrap();
    let giving = failure(&client, &give);
    let done = async {
        wait_for_lock_waiters(&database, 1).await;
        other.batch_execute("COMMIT").await.unwrap();
    };
    let (refused, ()) = tokio::join!(giving, done);
    assert!(refused.message().contains("has marks"), "{refused:?}");
}

#[tokio::test]
async fn sql_and_rust_agree_on_which_tokens_an_epoch_has() {
    let database = Database::guarded().await;
    let client = database.client().await;
    for number in [1_u16, 2, 31, 32, 255, 256, 16384, 32766, 32767] {
        let epoch = fence_core::Epoch::new(number).unwrap();
        let (first, last) = epoch.tokens();
        client
            .execute("SELECT fence.register_epoch('coord', $1)", &[&i32::from(number)])
            .await
            .unwrap();
        let row = client
            .query_one(
                "SELECT first, ceiling FROM fence.known_epochs() WHERE tier = 'coord' AND epoch = $1",
                &[&i32::from(number)],
            )
            .await
            .unwrap();
        assert_eq!((row.get(0), row.get(1)), (first.as_i64(), last.as_i64()));
    }
    // One epoch's tokens end before the next one's begin.
    let overlaps = "SELECT count(*) FROM fence.epoch_range a, fence.epoch_range b
                    WHERE a.tier = 'coord' AND b.tier = 'coord' AND a.epoch < b.epoch AND a.ceiling >= b.first";
    assert_eq!(database.number(overlaps).await, 0);
}

#[tokio::test]
async fn an_advance_that_was_interrupted_again_and_again_uses_one_epoch() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let register = "SELECT fence.register_epoch('entity', 2)";
    for attempt in 0..100 {
        // Given up before its commit, or after it and told nothing.
        let end = if attempt % 2 == 0 { "ROLLBACK" } else { "COMMIT" };
        client
            .batch_execute(&format!("BEGIN; {register}; {end}"))
            .await
            .unwrap();
    }
    let known = "SELECT string_agg(epoch::text, ' ') FROM fence.known_epochs()";
    assert_eq!(database.text(known).await, "1 2");
}
