//! Classes, tiers and ranges.

use crate::support::{Database, OPEN, code, failure};

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
        "SELECT fence.declare('paydb.open', 'entity')",
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
    let hint = failure(&client, "SELECT fence.admit('paydb.account', 'a', 5, 'g')").await;
    assert!(hint.hint().unwrap().contains("fence.register_epoch"));
}
