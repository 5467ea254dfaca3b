//! Requests on their own merits.

use serde_json::{Value, json};

use super::bench::{Bench, client, header, problem, transfer};

#[tokio::test]
async fn a_transfer_moves_money_and_shows_in_the_list() {
    let (bench, paydb) = Bench::ready().await;
    let made = paydb.transfer(5, "g5:1").await;
    assert_eq!(made.status(), 201);
    let made: Value = made.json().await.unwrap();
    let expected = json!({
        "id": made["id"], "from": "acct-1", "to": "acct-2", "amount": 10, "reference": "order-7",
        "idempotency_key": "g5:1",
    });
    assert_eq!(made, expected);
    let listed: Value = paydb
        .get("/accounts/acct-1/transfers")
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(listed, json!([expected]));
    for (account, balance) in [("acct-1", 990), ("acct-2", 1010)] {
        let shown: Value = paydb
            .get(&format!("/accounts/{account}"))
            .await
            .json()
            .await
            .unwrap();
        assert_eq!(shown, json!({"id": account, "balance": balance}));
    }
    assert_eq!(bench.transfers().await, 1);
    assert_eq!(paydb.get("/healthz").await.status(), 204);
}

#[tokio::test]
async fn a_request_refused_for_what_it_asks_writes_nothing_and_commits_its_admission() {
    let (bench, paydb) = Bench::ready().await;
    let invalid = "paydb:problem:invalid";
    let mut number = 10;
    for (body, status, kind) in [
        (
            json!({"to": "acct-9", "amount": 10, "reference": "r"}),
            422,
            "paydb:problem:unknown-account",
        ),
        (
            json!({"to": "acct-2", "amount": 1001, "reference": "r"}),
            422,
            "paydb:problem:too-little-money",
        ),
        (
            json!({"to": "acct-2", "amount": 0, "reference": "r"}),
            422,
            invalid,
        ),
        (
            json!({"to": "acct-2", "amount": -10, "reference": "r"}),
            422,
            invalid,
        ),
        (
            json!({"to": "acct-1", "amount": 10, "reference": "r"}),
            422,
            invalid,
        ),
        (
            json!({"to": "acct-2", "amount": 1.5, "reference": "r"}),
            400,
            "paydb:problem:malformed",
        ),
        (
            json!({"to": "acct-2", "amount": "10", "reference": "r"}),
            400,
            "paydb:problem:malformed",
        ),
        (
            json!({"to": "acct-2", "amount": 10}),
            400,
            "paydb:problem:malformed",
        ),
        (json!(["acct-2", 10, "r"]), 400, "paydb:problem:malformed"),
        (
            json!({"to": "acct-2", "amount": 10, "reference": "a\0b"}),
            400,
            "paydb:problem:malformed",
        ),
        (
            json!({"to": "acct-2", "amount": 10, "reference": "x".repeat(70_000)}),
            413,
            "paydb:problem:too-large",
        ),
    ] {
        number += 1;
        let answer = transfer(&paydb.address, number, &format!("g{number}:1"), body).await;
        problem(answer, status, kind).await;
        assert_eq!(
            bench.mark("acct-1").await,
            super::bench::token(number).to_string(),
            "{kind}: a contact"
        );
    }
    assert_eq!(bench.transfers().await, 0);
}

#[tokio::test]
async fn a_transfer_from_an_unknown_account_is_refused() {
    let (bench, paydb) = Bench::ready().await;
    let request = client().post(paydb.url("/accounts/acct-9/transfers"));
    let request = request
        .header("Fencing-Token", header(5))
        .header("Idempotency-Key", "k");
    let answer = request.json(&super::bench::order()).send().await.unwrap();
    problem(answer, 404, "paydb:problem:unknown-account").await;
    assert_eq!(bench.transfers().await, 0);
    problem(
        paydb.get("/accounts/acct-9").await,
        404,
        "paydb:problem:unknown-account",
    )
    .await;
    problem(
        paydb.get("/accounts/acct-9/transfers").await,
        404,
        "paydb:problem:unknown-account",
    )
    .await;
}

#[tokio::test]
async fn the_largest_amounts_do_not_overflow_a_balance() {
    let (bench, paydb) = Bench::ready().await;
    let rich = paydb
        .post("/accounts", json!({"id": "acct-3", "balance": i64::MAX}))
        .await;
    assert_eq!(rich.status(), 201);
    let body = json!({"to": "acct-3", "amount": 1, "reference": "r"});
    problem(
        transfer(&paydb.address, 5, "g5:1", body).await,
        422,
        "paydb:problem:too-much-money",
    )
    .await;
    assert_eq!(bench.ask("SELECT count(*) FROM transfer").await, "0");
}

#[tokio::test]
async fn an_account_is_made_once_and_makes_sense() {
    let (bench, paydb) = Bench::ready().await;
    let again = paydb
        .post("/accounts", json!({"id": "acct-1", "balance": 5}))
        .await;
    problem(again, 409, "paydb:problem:account-exists").await;
    for body in [
        json!({"id": "", "balance": 1}),
        json!({"id": "acct-3", "balance": -1}),
    ] {
        problem(paydb.post("/accounts", body).await, 422, "paydb:problem:invalid").await;
    }
    for body in [
        json!({"id": 3, "balance": 1}),
        json!({"id": "acct-3"}),
        json!({"id": "a", "balance": 1, "x": 1}),
        json!(["acct-3", 1]),
    ] {
        problem(
            paydb.post("/accounts", body).await,
            400,
            "paydb:problem:malformed",
        )
        .await;
    }
    assert_eq!(
        bench
            .ask("SELECT string_agg(id, ' ' ORDER BY id) FROM account")
            .await,
        "acct-1 acct-2"
    );
}
