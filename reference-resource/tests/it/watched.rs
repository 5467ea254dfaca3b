//! What paydb counts and describes.

use serde_json::json;

use super::bench::{Bench, problem};

#[tokio::test]
async fn refusals_raised_marks_and_waits_are_counted_by_class_and_reason() {
    let (_bench, paydb) = Bench::ready().await;
    assert_eq!(paydb.fence(34).await.status(), 204);
    problem(paydb.transfer(33, "g33:1").await, 412, "fence:problem:stale").await;
    problem(paydb.transfer(33, "g33:2").await, 412, "fence:problem:stale").await;
    assert_eq!(paydb.transfer(34, "g34:1").await.status(), 201);
    let bare = paydb
        .post("/accounts/acct-1/transfers", super::bench::order())
        .await;
    problem(bare, 428, "fence:problem:missing-token").await;
    problem(
        paydb.post("/nowhere", json!({})).await,
        404,
        "fence:problem:no-rule",
    )
    .await;
    let answer = paydb.get("/metrics").await;
    assert!(
        answer.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
    let page = answer.text().await.unwrap();
    for line in [
        r#"paydb_fence_refusals_total{class="paydb.account",reason="stale"} 2"#,
        r#"paydb_fence_refusals_total{class="paydb.account",reason="missing-token"} 1"#,
        r#"paydb_fence_refusals_total{class="",reason="no-rule"} 1"#,
        r#"paydb_fence_marks_raised_total{class="paydb.account"} 1"#,
        r#"paydb_fence_blocked_seconds_count{class="paydb.account",outcome="refused"} 2"#,
        r#"paydb_fence_blocked_seconds_count{class="paydb.account",outcome="admitted"} 2"#,
        r#"paydb_answers_total{method="POST",status="412"} 2"#,
        "# EOF",
    ] {
        assert!(
            page.lines().any(|found| found == line),
            "{line} is not in:\n{page}"
        );
    }
}

#[tokio::test]
async fn what_no_guard_stands_before_is_no_refusal_of_the_guard() {
    let (bench, paydb) = Bench::ready().await;
    let mut other = bench.client().await;
    let locked = other.transaction().await.unwrap();
    locked
        .batch_execute("LOCK TABLE account IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let body = json!({"id": "acct-3", "balance": 5});
    let (shown, made, moved) = tokio::join!(
        paydb.get("/accounts/acct-1"),
        paydb.post("/accounts", body),
        paydb.transfer(34, "g34:1"),
    );
    for blocked in [shown, made, moved] {
        problem(blocked, 503, "fence:problem:blocked").await;
    }
    locked.rollback().await.unwrap();
    let page = paydb.get("/metrics").await.text().await.unwrap();
    let refusals: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("paydb_fence_refusals_total"))
        .collect();
    assert_eq!(
        refusals,
        [r#"paydb_fence_refusals_total{class="paydb.account",reason="blocked"} 1"#],
        "the transfer alone"
    );
}

#[tokio::test]
async fn the_document_is_served_and_a_key_that_no_account_has_is_not_found() {
    let (_bench, paydb) = Bench::ready().await;
    let document: serde_json::Value = paydb.get("/openapi.json").await.json().await.unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    for path in ["/accounts/%00", "/accounts/a%00b/transfers"] {
        problem(paydb.get(path).await, 404, "paydb:problem:unknown-account").await;
    }
}

#[tokio::test]
async fn it_is_served_over_http_2_as_well() {
    let (bench, paydb) = Bench::ready().await;
    let client = reqwest::Client::builder()
        .no_proxy()
        .http2_prior_knowledge()
        .build()
        .unwrap();
    let send = |token: i64| {
        let request = client.post(paydb.url("/accounts/acct-1/transfers"));
        let request = request.header("Fencing-Token", super::bench::header(token));
        request
            .header("Idempotency-Key", format!("g{token}:1"))
            .json(&super::bench::order())
            .send()
    };
    let applied = send(34).await.unwrap();
    assert_eq!(
        (applied.version(), applied.status()),
        (reqwest::Version::HTTP_2, 201.try_into().unwrap())
    );
    problem(send(33).await.unwrap(), 412, "fence:problem:stale").await;
    assert_eq!(bench.transfers().await, 1);
}
