//! Many at once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};

use super::bench::{Bench, client, order, problem, token, transfer, wait_for_lock};

const TASKS: usize = 8;
const TRANSFERS: usize = 25;
const ACCOUNTS: usize = 5;

#[tokio::test]
async fn under_load_the_ledger_holds_every_answer_and_no_other() {
    let (bench, paydb) = Bench::ready().await;
    for number in 3..=ACCOUNTS {
        let account = json!({"id": format!("acct-{number}"), "balance": 1000});
        assert_eq!(paydb.post("/accounts", account).await.status(), 201);
    }
    // Every account pays every other, so that transfers cross; each has its one holder, whose grant all tasks share.
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let address = paydb.address.clone();
            tokio::spawn(async move {
                let client = client();
                let mut made = BTreeSet::new();
                for n in 0..TRANSFERS {
                    let from = 1 + (task + n) % ACCOUNTS;
                    let to = 1 + (from + task * 7 + n) % ACCOUNTS;
                    let to = if to == from { 1 + from % ACCOUNTS } else { to };
                    let key = format!("g{from}:{task}-{n}");
                    let answer = client
                        .post(format!("http://{address}/accounts/acct-{from}/transfers"))
                        .header(
                            "Fencing-Token",
                            format!("\"{}\";grant=\"g{from}\"", token(100 + from as i64)),
                        )
                        .header("Idempotency-Key", &key)
                        .json(&json!({"to": format!("acct-{to}"), "amount": 1 + n, "reference": "load"}))
                        .send()
                        .await
                        .unwrap();
                    assert_eq!(answer.status(), 201, "{}", answer.text().await.unwrap());
                    made.insert(key);
                }
                made
            })
        })
        .collect();
    let mut made = BTreeSet::new();
    for task in tasks {
        made.extend(task.await.unwrap());
    }
    assert_eq!(made.len(), TASKS * TRANSFERS);
    let mut listed = BTreeSet::new();
    for number in 1..=ACCOUNTS {
        let path = format!("/accounts/acct-{number}/transfers");
        let transfers: Vec<Value> = paydb.get(&path).await.json().await.unwrap();
        listed.extend(
            transfers
                .iter()
                .map(|one| one["idempotency_key"].as_str().unwrap().to_owned()),
        );
    }
    assert_eq!(listed, made);
    assert_eq!(bench.transfers().await, made.len() as i64);
}

#[tokio::test]
async fn an_account_that_is_blocked_leaves_connections_to_the_others() {
    let (bench, paydb) = Bench::ready().await;
    assert_eq!(paydb.fence(33).await.status(), 204);
    let mut other = bench.client().await;
    let holding = other.transaction().await.unwrap();
    let mark = "SELECT FROM fence.high_water WHERE key = 'acct-1' FOR UPDATE";
    assert_eq!(holding.query(mark, &[]).await.unwrap().len(), 1);
    let mut blocked: FuturesUnordered<_> = (0..40)
        .map(|number| {
            let address = paydb.address.clone();
            tokio::spawn(async move { transfer(&address, 33, &format!("g33:{number}"), order()).await })
        })
        .collect();
    wait_for_lock(&bench).await;
    let mut longest = Duration::ZERO;
    let first = loop {
        let began = Instant::now();
        tokio::select! {
            biased;
            first = blocked.next() => break first.unwrap().unwrap(),
            healthy = paydb.get("/healthz") => assert_eq!(healthy.status(), 204),
        }
        longest = longest.max(began.elapsed());
    };
    assert!(
        longest < Duration::from_secs(1),
        "another request took {longest:?}"
    );
    problem(first, 503, "fence:problem:blocked").await;
    while let Some(answer) = blocked.next().await {
        problem(answer.unwrap(), 503, "fence:problem:blocked").await;
    }
    holding.rollback().await.unwrap();
    assert_eq!(paydb.transfer(33, "g33:0").await.status(), 201);
    assert_eq!(bench.transfers().await, 1);
}
