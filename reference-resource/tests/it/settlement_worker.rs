//! The worker that settles batches, straight in the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pause_kit::gates::Gates;
use pause_kit::reaper::Ended;
use pause_kit::services::{Child, ProcessSpec};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::account_worker::Lock;
use super::bench::{Bench, SOON, WORKER, stands_at};

const BATCH: &str =
    "SELECT state || ' ' || coalesce(settled_total::text, '-') || ' ' || coalesce(grant_id, '-')
    FROM settlement_batch WHERE id = 'batch-1'";

#[tokio::test]
async fn a_batch_is_settled_once_under_its_token() {
    let (bench, lock) = ready().await;
    let first = worker(&bench, &lock, None).await;
    assert_eq!(first.exited().await.unwrap(), Ended::Code(0), "{}", first.tail());
    let (token, grant) = granted(&first).await;
    assert_eq!(bench.ask(BATCH).await, format!("settled 5000 {grant}"));
    assert_eq!(bench.ask("SELECT fence_token FROM settlement_batch").await, token);

    let second = worker(&bench, &lock, None).await;
    assert_eq!(
        second.exited().await.unwrap(),
        Ended::Code(0),
        "{}",
        second.tail()
    );
    second.wait_line("batch-1: settled before", SOON).await.unwrap();
    assert_eq!(
        bench.ask(BATCH).await,
        format!("settled 5000 {grant}"),
        "left as it was"
    );
}

#[tokio::test]
async fn a_revived_worker_does_not_overwrite_what_its_successor_settled() {
    let (bench, lock) = ready().await;
    let gates = Gates::open(lock.socket(&bench), ["before-commit"]).unwrap();
    let first = worker(&bench, &lock, Some(&gates)).await;
    let gate = stands_at(&gates, "before-commit").await;
    lock.revoke("paydb.settlement", "batch-1", &first).await;
    // It holds the row; the successor is told so, and tries again until the server has ended the idle transaction.
    let second = worker(&bench, &lock, None).await;
    assert_eq!(
        second.exited().await.unwrap(),
        Ended::Code(0),
        "{}",
        second.tail()
    );
    second
        .wait_line("settle the batch: blocked by pid ", SOON)
        .await
        .unwrap();
    let (_, grant) = granted(&second).await;
    assert_eq!(bench.ask(BATCH).await, format!("settled 5000 {grant}"));

    gate.open().await.unwrap();
    assert_eq!(first.exited().await.unwrap(), Ended::Code(5), "{}", first.tail());
    first
        .wait_line("settle the batch: stale token", SOON)
        .await
        .unwrap();
    assert_eq!(
        bench.ask(BATCH).await,
        format!("settled 5000 {grant}"),
        "the successor's result stays"
    );
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_presented_again_and_settles_once() {
    let (bench, lock) = ready().await;
    let port = bench.services.postgres().port();
    let lossy = lose_first_commit(port).await;
    let url = bench
        .database
        .as_str()
        .replace(&format!(":{port}/"), &format!(":{lossy}/"));
    let worker = worker_at(&bench, &lock, &url, None).await;
    assert_eq!(
        worker.exited().await.unwrap(),
        Ended::Code(0),
        "{}",
        worker.tail()
    );
    worker
        .wait_line("settle the batch: the outcome is unknown", SOON)
        .await
        .unwrap();
    worker
        .wait_line("batch-1: settled, total 5000", SOON)
        .await
        .unwrap();
    let (_, grant) = granted(&worker).await;
    assert_eq!(bench.ask(BATCH).await, format!("settled 5000 {grant}"));
}

#[tokio::test]
async fn a_worker_in_time_goes_on_after_the_gate() {
    let (bench, lock) = ready().await;
    let gates = Gates::open(lock.socket(&bench), ["before-commit"]).unwrap();
    let worker = worker(&bench, &lock, Some(&gates)).await;
    let gate = stands_at(&gates, "before-commit").await;
    assert_eq!(
        bench.ask(BATCH).await,
        "open - -",
        "nothing shows before the commit"
    );
    gate.open().await.unwrap();
    assert_eq!(
        worker.exited().await.unwrap(),
        Ended::Code(0),
        "{}",
        worker.tail()
    );
}

#[tokio::test]
async fn a_batch_that_is_not_there_is_refused() {
    let (bench, lock) = ready().await;
    bench.sql("DELETE FROM settlement_batch").await;
    let worker = worker(&bench, &lock, None).await;
    assert_eq!(
        worker.exited().await.unwrap(),
        Ended::Code(1),
        "{}",
        worker.tail()
    );
    assert!(worker.tail().contains("no such row"), "{}", worker.tail());
}

#[tokio::test]
async fn the_token_of_a_batch_never_falls_whoever_writes() {
    let (bench, _) = ready().await;
    bench.sql("UPDATE settlement_batch SET fence_token = 34").await;
    let error = bench
        .try_sql("UPDATE settlement_batch SET fence_token = 33")
        .await
        .unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("ZF001"));
    assert_eq!(bench.ask("SELECT fence_token FROM settlement_batch").await, "34");
}

async fn ready() -> (Bench, Lock) {
    let (bench, _paydb) = Bench::ready().await;
    bench
        .sql("INSERT INTO settlement_batch (id, amount) VALUES ('batch-1', 5000)")
        .await;
    let lock = Lock::new(&bench).await;
    (bench, lock)
}

async fn worker(bench: &Bench, lock: &Lock, gates: Option<&Gates>) -> Child {
    worker_at(bench, lock, bench.database.as_str(), gates).await
}

async fn worker_at(bench: &Bench, lock: &Lock, database_url: &str, gates: Option<&Gates>) -> Child {
    let etcd = bench.services.etcd().endpoint();
    let mut spec = ProcessSpec::new("worker", WORKER).args([
        "settlement",
        "--etcd",
        &etcd,
        "--prefix",
        lock.coord(),
        "--ttl",
        "2s",
        "--database-url",
        database_url,
        "--batch",
        "batch-1",
    ]);
    if let Some(gates) = gates {
        spec = spec.env(pause_kit::gates::VARIABLE, gates.socket().to_str().unwrap());
    }
    bench.services.services().spawn(spec).await.unwrap()
}

/// Token and grant, as a worker reports them.
async fn granted(worker: &Child) -> (String, String) {
    let granted = worker.wait_line("granted token ", SOON).await.unwrap();
    let (token, grant) = granted.split_once(" grant ").unwrap();
    (token.to_owned(), grant.to_owned())
}

/// A port on which the database answers everything but the first COMMIT, whose connection goes once it has committed.
async fn lose_first_commit(port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let lost = Arc::new(AtomicBool::new(false));
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            tokio::spawn(carry(client, server, Arc::clone(&lost)));
        }
    });
    own
}

async fn carry(mut client: TcpStream, mut server: TcpStream, lost: Arc<AtomicBool>) {
    let (mut asked, mut answered) = ([0; 8192], [0; 8192]);
    let mut losing = false;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let n = read.unwrap_or(0);
                losing |= asked[..n].windows(6).any(|word| word == b"COMMIT") && !lost.swap(true, Ordering::SeqCst);
                if n == 0 || server.write_all(&asked[..n]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let n = read.unwrap_or(0);
                if n == 0 || losing || client.write_all(&answered[..n]).await.is_err() {
                    return;
                }
            }
        }
    }
}
