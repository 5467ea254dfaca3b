//! Tokens that came through other hands: as doubles, decimals, JSON and text, and at the ends of their range.

use crate::enforce::in_transaction;
use crate::support::{CLASS, Database, code};

/// What a program makes of a token that it keeps as a double.
fn rounded(token: i64) -> i64 {
    token as f64 as i64
}

#[tokio::test]
async fn a_token_that_went_through_a_double_never_writes_unseen_under_another_grants_number() {
    let database = Database::guarded().await;
    let client = database.client().await;
    // From epoch 32 on a double holds every second token only.
    client
        .batch_execute("SELECT fence.register_epoch('entity', 32)")
        .await
        .unwrap();
    let token = |revision: i64| (32 << 48) + revision;
    let present = |key: &str, token: i64, grant: i64| {
        format!("SELECT fence.admit('{CLASS}', '{key}', {token}, 'g{grant}')")
    };
    for (revision, kept) in [(1, 0), (2, 2), (3, 4), (4, 4), (5, 4), (7, 8)] {
        assert_eq!(rounded(token(revision)), token(kept));
    }
    // No revision is 0: the first token of the epoch is outside the range once it is rounded.
    assert_eq!(code(&client, &present("a", rounded(token(1)), 1)).await, "ZF005");
    // Rounded down: stale, or the number of an older grant that was here.
    client.batch_execute(&present("b", token(4), 4)).await.unwrap();
    assert_eq!(code(&client, &present("b", rounded(token(5)), 5)).await, "ZF004");
    // Rounded up: the number of a grant that is still to come, which is told, and does not write beside the first.
    client
        .batch_execute(&present("c", rounded(token(3)), 3))
        .await
        .unwrap();
    assert_eq!(code(&client, &present("c", token(4), 4)).await, "ZF004");
    client.batch_execute(&present("c", token(5), 5)).await.unwrap();
}

#[tokio::test]
async fn sql_takes_a_token_as_an_integer_and_never_rounds_another_number_to_one() {
    let database = Database::guarded().await;
    let client = database.client().await;
    let token = crate::support::token(40).as_i64();
    for (value, expected) in [
        (format!("{token}::float8"), "42883"),
        (format!("{token}::real"), "42883"),
        (format!("{token}::numeric"), "42883"),
        (format!("{token}.0"), "42883"),
        (format!("{token}::text"), "42883"),
        (format!("to_jsonb({token})"), "42883"),
        (format!("'{token}.0'"), "22P02"),
        ("'2.81e14'".to_owned(), "22P02"),
        ("''".to_owned(), "22P02"),
        ("'9223372036854775808'".to_owned(), "22003"),
        ("0".to_owned(), "ZF003"),
        ("-9223372036854775808".to_owned(), "ZF003"),
        ("NULL".to_owned(), "ZF002"),
    ] {
        for call in ["admit", "raise_mark"] {
            let present = format!("SELECT fence.{call}('{CLASS}', 'acct-1', {value}, 'g40')");
            assert_eq!(code(&client, &present).await, expected, "{present}");
        }
    }
    assert_eq!(database.number("SELECT count(*) FROM fence.high_water").await, 0);
    // As a parameter too: a driver that sends a double is refused by its own type check or by the server.
    let call = format!("SELECT fence.admit('{CLASS}', 'acct-1', $1, 'g40')");
    assert!(client.execute(&call, &[&(token as f64)]).await.is_err());
    client.execute(&call, &[&token]).await.unwrap();
}

#[tokio::test]
async fn a_token_in_a_json_body_is_read_exactly_from_its_text_and_from_a_number_that_nobody_rounded() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute("SELECT fence.register_epoch('entity', 32)")
        .await
        .unwrap();
    let token = (32_i64 << 48) + 1;
    for read in [
        "('{\"token\": \"T\"}'::jsonb ->> 'token')::bigint",
        "('{\"token\": T}'::jsonb -> 'token')::bigint",
    ] {
        let present = format!(
            "SELECT fence.admit('{CLASS}', 'acct-1', {}, 'g1')",
            read.replace('T', &token.to_string())
        );
        client.batch_execute(&present).await.unwrap();
    }
    let mark = database.number("SELECT token FROM fence.high_water").await;
    assert_eq!(mark, token);
}

#[tokio::test]
async fn both_guards_hold_at_the_largest_token() {
    let database = Database::guarded().await;
    database
        .run(
            "SELECT fence.register_epoch('entity', 32767);
             CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL, fence bigint NOT NULL DEFAULT 0);
             SELECT fence.protect_column('account', 'paydb.balance', 'id', 'fence');
             INSERT INTO account VALUES (1, 100, 0);",
        )
        .await;
    let client = database.client().await;
    let mark =
        |token: i64, grant: &str| format!("SELECT fence.admit('{CLASS}', 'acct-1', {token}, '{grant}')");
    let column = |token: i64| {
        format!(
            "UPDATE account SET balance = balance + 1, fence = {token} WHERE id = 1 AND fence <= {token};
             SELECT fence.explain_column('account', 'id', 'fence', '1', {token})"
        )
    };
    let largest = i64::MAX;
    for (token, stale) in [
        (largest - 1, false),
        (largest, false),
        (largest, false),
        (largest - 1, true),
    ] {
        let expected = stale.then(|| "ZF001".to_owned());
        let (mark, column) = (mark(token, &format!("g{token}")), column(token));
        assert_eq!(in_transaction(&client, &[&mark]).await.err(), expected, "{token}");
        assert_eq!(
            in_transaction(&client, &[&column]).await.err(),
            expected,
            "{token}"
        );
    }
    assert_eq!(database.number("SELECT balance FROM account").await, 103);
}

#[tokio::test]
async fn a_token_that_was_forgotten_or_is_none_is_told_as_that_and_not_as_a_row_that_is_absent() {
    let database = crate::column::accounts().await;
    let client = database.client().await;
    for (key, presented, expected) in [
        ("'1'", "NULL", Some("ZF002")),
        ("'999'", "NULL", Some("ZF002")),
        ("'1'", "0", Some("ZF003")),
        ("'999'", "-5", Some("ZF003")),
        ("NULL", "34", Some("ZF006")),
        ("'2'", "34", Some("ZF001")),
        ("'999'", "34", None),
    ] {
        // What a program sends when its variable is empty: the UPDATE touches nothing, and is explained.
        let update = format!("UPDATE account SET balance = 0 WHERE id = {key} AND fence <= {presented}");
        let explain = format!("SELECT fence.explain_column('account', 'id', 'fence', {key}, {presented})");
        client.batch_execute("BEGIN").await.unwrap();
        assert_eq!(client.execute(&update, &[]).await.unwrap(), 0, "{update}");
        let came = client.batch_execute(&explain).await.err();
        let came = came.map(|error| error.code().unwrap().code().to_owned());
        assert_eq!(came.as_deref(), expected, "{key}, {presented}");
        client.batch_execute("ROLLBACK").await.unwrap();
    }
}
