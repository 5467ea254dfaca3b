//! What is wrong about the body or the idempotency key, under a good token.

use super::{BODY, GOOD, KEY, PATH, Raw, request};

pub(super) fn bodies() -> Vec<Raw> {
    let mut all = Vec::new();
    let headers = format!("{GOOD}{KEY}");
    for body in include_str!("bodies.txt").lines() {
        all.push(request(
            "POST",
            PATH,
            &headers,
            body,
            &[400],
            format!("body {body:.60}"),
        ));
    }
    for body in [
        r#"{"to":"acct-2","amount":0,"reference":"r"}"#,
        r#"{"to":"acct-2","amount":-1,"reference":"r"}"#,
        r#"{"to":"acct-2","amount":-9223372036854775808,"reference":"r"}"#,
        r#"{"to":"acct-1","amount":1,"reference":"r"}"#,
    ] {
        all.push(request(
            "POST",
            PATH,
            &headers,
            body,
            &[422],
            format!("body {body:.60}"),
        ));
    }
    let large = format!(
        r#"{{"to":"acct-2","amount":1,"reference":"{}"}}"#,
        "x".repeat(70_000)
    );
    all.push(request(
        "POST",
        PATH,
        &headers,
        &large,
        &[413],
        "a large body".to_owned(),
    ));
    let deep = "[".repeat(20_000);
    all.push(request(
        "POST",
        PATH,
        &headers,
        &deep,
        &[400],
        "a deep body".to_owned(),
    ));
    let long = "k".repeat(256);
    for key in [
        "",
        "Idempotency-Key: \r\n",
        "Idempotency-Key: a b\r\n",
        "Idempotency-Key: \u{e9}\r\n",
        "Idempotency-Key: a\r\nIdempotency-Key: b\r\n",
        "Idempotency_Key: a\r\n",
        &format!("Idempotency-Key: {long}\r\n"),
    ] {
        all.push(request(
            "POST",
            PATH,
            &format!("{GOOD}{key}"),
            BODY,
            &[400],
            format!("key {key:.40}"),
        ));
    }
    all
}
