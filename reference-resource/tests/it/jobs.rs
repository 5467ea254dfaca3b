//! Transfers that are accepted with 202 and made later, by paydb-jobs.

use pause_kit::reaper::Ended;
use pause_kit::services::{Child, ProcessSpec};
use reqwest::Response;
use serde_json::{Value, json};

use super::account_worker::Lock;
use super::bench::{Bench, Paydb, SOON, client, header, order, problem, token, wait_for_lock};

const JOBS: &str = env!("CARGO_BIN_EXE_paydb-jobs");

#[tokio::test]
async fn a_transfer_accepted_for_later_is_admitted_then_and_made_once_under_its_own_claim() {
    let (bench, paydb) = Bench::ready().await;
    let first = later(&paydb, 33, "g33:1", order()).await;
    assert_eq!(first.status(), 202);
    let first = first.text().await.unwrap();
    assert_eq!(bench.transfers().await, 0);
    assert_eq!(bench.mark("acct-1").await, token(33).to_string());
    let accepted = json!({
        "id": 1, "from": "acct-1", "to": "acct-2", "amount": 10, "reference": "order-7", "idempotency_key": "g33:1",
        "state": "accepted",
    });
    assert_eq!(jobs(&paydb).await, std::slice::from_ref(&accepted));

    assert_eq!(work(&bench).await.0, Ended::Code(0));
    let mut done = accepted.clone();
    done["state"] = "done".into();
    done["transfer"] = 1.into();
    assert_eq!(jobs(&paydb).await, [done.clone()]);
    assert_eq!(bench.transfers().await, 1);
    let (ended, nothing_left) = work(&bench).await;
    assert_eq!((ended, nothing_left.as_str()), (Ended::Code(0), ""));

    // The same request has one job and one answer.
    let again = later(&paydb, 33, "g33:1", order()).await;
    assert_eq!(again.status(), 202);
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(again.text().await.unwrap(), first);
    assert_eq!(jobs(&paydb).await, [done]);
    assert_eq!(work(&bench).await.0, Ended::Code(0));
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn a_job_whose_holder_was_fenced_since_is_refused_and_says_so() {
    let (bench, paydb) = Bench::ready().await;
    assert_eq!(later(&paydb, 33, "g33:1", order()).await.status(), 202);
    assert_eq!(paydb.fence(34).await.status(), 204);
    assert_eq!(paydb.transfer(34, "g34:1").await.status(), 201);
    let (ended, said) = work(&bench).await;
    assert_eq!(ended, Ended::Code(0), "a job that is refused is decided");
    assert!(said.contains("job 1: stale token"), "{said}");
    let refused = &jobs(&paydb).await[0];
    assert_eq!(refused["state"], "refused");
    assert_eq!(refused["problem"]["type"], "urn:fence:problem:stale");
    assert_eq!(refused["problem"]["presented"], token(33).to_string());
    assert!(
        !refused.to_string().contains(&token(34).to_string()),
        "the mark is not told"
    );
    assert_eq!(bench.transfers().await, 1);
    // Who is stale already is refused at once.
    let late = later(&paydb, 33, "g33:2", order()).await;
    problem(late, 412, "fence:problem:stale").await;
    assert_eq!(jobs(&paydb).await.len(), 1);
}

#[tokio::test]
async fn a_job_is_judged_by_its_own_merits_when_it_is_made() {
    let (bench, paydb) = Bench::ready().await;
    let body = |to: &str, amount: i64| json!({"to": to, "amount": amount, "reference": "r"});
    let senseless = later(&paydb, 33, "g33:1", body("acct-2", -1)).await;
    problem(senseless, 422, "paydb:problem:invalid").await;
    for (number, (to, amount)) in [("acct-9", 5), ("acct-2", 2000), ("acct-2", 700)]
        .iter()
        .enumerate()
    {
        let accepted = later(&paydb, 33, &format!("g33:{}", number + 2), body(to, *amount)).await;
        assert_eq!(accepted.status(), 202);
    }
    assert_eq!(work(&bench).await.0, Ended::Code(0));
    let found: Vec<String> = jobs(&paydb)
        .await
        .iter()
        .map(|job| job["problem"]["type"].as_str().unwrap_or("made").to_owned())
        .collect();
    assert_eq!(
        found,
        [
            "urn:paydb:problem:unknown-account",
            "urn:paydb:problem:too-little-money",
            "made"
        ]
    );
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn workers_that_run_at_once_make_each_job_once() {
    let (bench, paydb) = Bench::ready().await;
    for number in 1..=20 {
        let accepted = later(&paydb, 33, &format!("g33:{number}"), order()).await;
        assert_eq!(accepted.status(), 202);
    }
    let (one, other, third) = tokio::join!(work(&bench), work(&bench), work(&bench));
    for (ended, said) in [one, other, third] {
        assert_eq!(ended, Ended::Code(0), "{said}");
    }
    assert_eq!(bench.transfers().await, 20);
    let twice =
        "SELECT count(*) FROM (SELECT FROM transfer GROUP BY idempotency_key HAVING count(*) > 1) AS t";
    assert_eq!(bench.ask(twice).await, "0");
    assert!(jobs(&paydb).await.iter().all(|job| job["state"] == "done"));
}

#[tokio::test]
async fn a_job_that_cannot_be_decided_now_is_left_for_the_next_run() {
    let (bench, paydb) = Bench::ready().await;
    assert_eq!(later(&paydb, 33, "g33:1", order()).await.status(), 202);
    let mut other = bench.client().await;
    let holding = other.transaction().await.unwrap();
    let mark = "SELECT FROM fence.high_water WHERE key = 'acct-1' FOR UPDATE";
    assert_eq!(holding.query(mark, &[]).await.unwrap().len(), 1);
    let (ended, said) = work(&bench).await;
    assert_eq!(ended, Ended::Code(3), "{said}");
    assert_eq!(jobs(&paydb).await[0]["state"], "accepted");
    holding.rollback().await.unwrap();
    assert_eq!(work(&bench).await.0, Ended::Code(0));
    assert_eq!(jobs(&paydb).await[0]["state"], "done");
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn a_job_that_cannot_be_noted_is_not_made_and_those_after_it_keep_their_order() {
    let (bench, paydb) = Bench::ready().await;
    for key in ["g33:1", "g33:2"] {
        assert_eq!(later(&paydb, 33, key, order()).await.status(), 202);
    }
    bench
        .sql(
            "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
             CREATE TRIGGER keep BEFORE UPDATE ON transfer_job FOR EACH ROW WHEN (OLD.id = 1) EXECUTE FUNCTION keep()",
        )
        .await;
    let (ended, said) = work(&bench).await;
    assert_eq!(ended, Ended::Code(3), "{said}");
    assert_eq!(bench.transfers().await, 0);
    bench.sql("DROP TRIGGER keep ON transfer_job").await;
    assert_eq!(work(&bench).await.0, Ended::Code(0));
    let made = jobs(&paydb).await;
    let transfers: Vec<_> = made.iter().map(|job| &job["transfer"]).collect();
    assert!(transfers[0].as_i64() < transfers[1].as_i64(), "{made:?}");
    assert_eq!(bench.transfers().await, 2);
}

#[tokio::test]
async fn a_job_that_is_refused_by_hand_while_it_is_made_is_refused_before_or_not_at_all() {
    let (bench, paydb) = Bench::ready().await;
    assert_eq!(later(&paydb, 33, "g33:1", order()).await.status(), 202);
    let mut other = bench.client().await;
    let holding = other.transaction().await.unwrap();
    holding
        .batch_execute("SELECT FROM account WHERE id = 'acct-1' FOR UPDATE")
        .await
        .unwrap();
    let working = work(&bench);
    let refusing = async {
        wait_for_lock(&bench).await;
        let refused = bench.try_sql(
            "SET lock_timeout = '200ms';
             UPDATE transfer_job SET state = 'refused', problem = '{}' WHERE state = 'accepted'",
        );
        assert!(refused.await.is_err(), "the worker has it");
        holding.rollback().await.unwrap();
    };
    let ((ended, said), ()) = tokio::join!(working, refusing);
    assert_eq!(ended, Ended::Code(0), "{said}");
    assert_eq!(jobs(&paydb).await[0]["state"], "done");
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn a_holder_keeps_its_lock_until_its_job_is_made_or_refused() {
    let (bench, paydb) = Bench::ready().await;
    let lock = Lock::new(&bench).await;
    let first = lock.worker_for(&bench, &paydb, "order-7", &["--later"]).await;
    let accepted = "have the transfer made: answered 202";
    first.wait_line(accepted, SOON).await.unwrap();
    assert_eq!(first.ended(), None);
    assert_eq!(work(&bench).await.0, Ended::Code(0));
    assert_eq!(first.exited().await.unwrap(), Ended::Code(0), "{}", first.tail());
    assert_eq!(bench.transfers().await, 1);

    let second = lock.worker_for(&bench, &paydb, "order-8", &["--later"]).await;
    second.wait_line(accepted, SOON).await.unwrap();
    lock.revoke("paydb.account", "acct-1", &second).await;
    let third = lock.worker_for(&bench, &paydb, "order-8", &[]).await;
    assert_eq!(third.exited().await.unwrap(), Ended::Code(0), "{}", third.tail());
    assert_eq!(work(&bench).await.0, Ended::Code(0));
    assert_eq!(
        second.exited().await.unwrap(),
        Ended::Code(5),
        "{}",
        second.tail()
    );
    assert!(second.tail().contains("stale"), "{}", second.tail());
    assert_eq!(bench.transfers().await, 2);
}

async fn later(paydb: &Paydb, number: i64, key: &str, body: Value) -> Response {
    let request = client().post(paydb.url("/accounts/acct-1/transfers"));
    let request = request
        .header("Fencing-Token", header(number))
        .header("Idempotency-Key", key);
    request
        .header("Prefer", "respond-async")
        .json(&body)
        .send()
        .await
        .unwrap()
}

async fn jobs(paydb: &Paydb) -> Vec<Value> {
    let answer = paydb.get("/accounts/acct-1/jobs").await;
    assert_eq!(answer.status(), 200);
    answer.json().await.unwrap()
}

/// Runs paydb-jobs to its end, and gives that and what it said.
async fn work(bench: &Bench) -> (Ended, String) {
    let mut spec = ProcessSpec::new("jobs", JOBS).args(["--database-url", bench.database.as_str()]);
    spec.env_remove = vec!["DATABASE_URL".to_owned()];
    let child: Child = bench.services.services().spawn(spec).await.unwrap();
    (child.exited().await.unwrap(), child.tail())
}
