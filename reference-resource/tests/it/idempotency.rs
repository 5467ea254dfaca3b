//! The same request again.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::bench::{Bench, client, header, order, problem, refused, transfer};

#[tokio::test]
async fn a_request_that_comes_again_gets_its_stored_answer_and_has_one_effect() {
    let (bench, paydb) = Bench::ready().await;
    let first = paydb.transfer(33, "g33:1").await;
    assert!(first.headers().get("idempotency-replayed").is_none());
    let first = first.text().await.unwrap();
    // The same order in other bytes.
    let spaced = " { \"reference\" : \"order-7\", \"amount\":10 ,\"to\":\"acct-2\" } ";
    let request = client().post(paydb.url("/accounts/acct-1/transfers"));
    let request = request
        .header("Fencing-Token", header(33))
        .header("Idempotency-Key", "g33:1");
    let again = request.body(spaced).send().await.unwrap();
    assert_eq!(again.status(), 201);
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(again.headers()["content-type"], "application/json");
    assert_eq!(again.text().await.unwrap(), first);
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn a_completed_request_is_answered_also_to_a_holder_that_was_fenced_since() {
    let (bench, paydb) = Bench::ready().await;
    let first = paydb.transfer(33, "g33:1").await.text().await.unwrap();
    assert_eq!(paydb.fence(34).await.status(), 204);
    let again = paydb.transfer(33, "g33:1").await;
    assert_eq!(again.status(), 201);
    assert_eq!(again.text().await.unwrap(), first);
    // Anything else is fenced first: another key, another body, no key, no sense, no end.
    problem(paydb.transfer(33, "g33:2").await, 412, "fence:problem:stale").await;
    for (key, body) in [
        (
            "g33:1",
            json!({"to": "acct-2", "amount": 11, "reference": "order-7"}),
        ),
        ("", order()),
        ("g33:3", json!({"to": 5})),
        ("g33:4", json!({"to": "acct-2", "amount": -1, "reference": "r"})),
        (
            "g33:5",
            json!({"to": "acct-2", "amount": 1, "reference": "x".repeat(20 << 20)}),
        ),
    ] {
        problem(
            transfer(&paydb.address, 33, key, body).await,
            412,
            "fence:problem:stale",
        )
        .await;
    }
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn the_key_of_another_request_is_422() {
    let (bench, paydb) = Bench::ready().await;
    assert_eq!(paydb.transfer(33, "g33:1").await.status(), 201);
    let other = json!({"to": "acct-2", "amount": 11, "reference": "order-7"});
    let answer = transfer(&paydb.address, 33, "g33:1", other).await;
    problem(answer, 422, "paydb:problem:idempotency-key-reused").await;
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn a_refusal_under_the_lock_is_an_answer_that_stays() {
    let (bench, paydb) = Bench::ready().await;
    let body = json!({"to": "acct-9", "amount": 10, "reference": "r"});
    let first = refused(transfer(&paydb.address, 33, "g33:1", body.clone()).await, 422).await;
    let made = paydb
        .post("/accounts", json!({"id": "acct-9", "balance": 1000}))
        .await;
    assert_eq!(made.status(), 201);
    let again = refused(transfer(&paydb.address, 33, "g33:1", body.clone()).await, 422).await;
    assert_eq!(again, first, "one key, one answer");
    assert_eq!(
        transfer(&paydb.address, 33, "g33:2", body).await.status(),
        201,
        "a new key"
    );
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn a_transfer_needs_one_idempotency_key() {
    let (bench, paydb) = Bench::ready().await;
    for keys in [&[][..], &["a", "b"], &[""], &["a b"], &["é"]] {
        let mut request = client().post(paydb.url("/accounts/acct-1/transfers"));
        for key in keys {
            request = request.header("Idempotency-Key", *key);
        }
        let answer = request
            .header("Fencing-Token", header(5))
            .json(&order())
            .send()
            .await
            .unwrap();
        problem(answer, 400, "paydb:problem:idempotency-key").await;
    }
    assert_eq!(bench.transfers().await, 0);
}

#[tokio::test]
async fn copies_sent_to_two_replicas_at_once_have_one_effect_and_one_answer() {
    let (bench, first) = Bench::ready().await;
    let second = bench.paydb().await;
    for number in 0..5 {
        let key = format!("g33:{number}");
        let copies = [&first, &second, &first, &second].map(|paydb| {
            let (address, key) = (paydb.address.clone(), key.clone());
            tokio::spawn(async move { transfer(&address, 33, &key, order()).await })
        });
        let mut answers = Vec::new();
        for copy in copies {
            let answer = copy.await.unwrap();
            assert_eq!(answer.status(), 201);
            answers.push(answer.text().await.unwrap());
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        assert_eq!(bench.transfers().await, number + 1);
    }
}

#[tokio::test]
async fn a_lost_answer_is_found_by_sending_the_request_again() {
    let (bench, paydb) = Bench::ready().await;
    let body = order().to_string();
    let mut lost = TcpStream::connect(&paydb.address).await.unwrap();
    let request = format!(
        "POST /accounts/acct-1/transfers HTTP/1.1\r\nHost: x\r\nFencing-Token: {}\r\nIdempotency-Key: g33:1\r\n\
         Content-Length: {}\r\n\r\n{body}",
        header(33),
        body.len()
    );
    lost.write_all(request.as_bytes()).await.unwrap();
    // The write is there: its answer is on its way, and nobody will read it.
    lost.readable().await.unwrap();
    drop(lost);
    let again = paydb.transfer(33, "g33:1").await;
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    let again: Value = again.json().await.unwrap();
    assert_eq!(again["idempotency_key"], "g33:1");
    assert_eq!(bench.transfers().await, 1);
}
