//! The classes that nothing enforces, and what that means.

use axum::Router;
use axum::routing::post;
use pause_kit::gates::Gates;
use pause_kit::reaper::Ended;
use pause_kit::services::{Child, ProcessSpec};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::account_worker::Lock;
use super::bench::{Bench, SOON, WORKER, stands_at};

/// A provider that takes what comes, and checks nothing.
async fn provider() -> (String, UnboundedReceiver<Value>) {
    let (send, receive) = unbounded_channel();
    let take = move |body: axum::Json<Value>| {
        let send = send.clone();
        async move { send.send(body.0).unwrap() }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/hook", post(take))).await });
    (url, receive)
}

async fn worker(bench: &Bench, lock: &Lock, gates: Option<&Gates>, arguments: &[&str]) -> Child {
    let etcd = bench.services.etcd().endpoint();
    let (job, further) = arguments.split_first().unwrap();
    let mut spec = ProcessSpec::new("worker", WORKER)
        .args([job, "--etcd", &etcd, "--prefix", lock.entity(), "--ttl", "2s"])
        .args(further.iter().copied());
    if let Some(gates) = gates {
        spec = spec.env(pause_kit::gates::VARIABLE, gates.socket().to_str().unwrap());
    }
    bench.services.services().spawn(spec).await.unwrap()
}

#[tokio::test]
async fn a_late_webhook_is_refused_by_nobody_and_only_its_version_tells() {
    let bench = Bench::new().await;
    let lock = Lock::new(&bench).await;
    let (url, mut told) = provider().await;
    let hook = |state, version| {
        [
            "webhook",
            "--provider",
            &url,
            "--order",
            "order-7",
            "--state",
            state,
            "--version",
            version,
        ]
        .map(str::to_owned)
    };
    let gates = Gates::open(lock.socket(&bench), ["after-grant", "before-send"]).unwrap();
    let (old, new) = (hook("paid", "1"), hook("refunded", "2"));
    let first = worker(&bench, &lock, Some(&gates), &old.each_ref().map(String::as_str)).await;
    stands_at(&gates, "after-grant").await.open().await.unwrap();
    let held = stands_at(&gates, "before-send").await;
    lock.revoke("paydb.webhook", "order-7", &first).await;
    let second = worker(&bench, &lock, None, &new.each_ref().map(String::as_str)).await;
    assert_eq!(
        second.exited().await.unwrap(),
        Ended::Code(0),
        "{}",
        second.tail()
    );
    assert_eq!(told.recv().await.unwrap()["version"], 2);
    held.open().await.unwrap();
    assert_eq!(first.exited().await.unwrap(), Ended::Code(0), "{}", first.tail());
    let late = told.recv().await.unwrap();
    assert_eq!(
        (&late["state"], &late["version"]),
        (&"paid".into(), &1.into()),
        "the old state, after the new one"
    );
}

#[tokio::test]
async fn a_report_is_built_under_its_lock_and_replaced_whole() {
    let (bench, paydb) = Bench::ready().await;
    let lock = Lock::new(&bench).await;
    assert_eq!(paydb.transfer(33, "g33:1").await.status(), 201);
    let out = bench
        .services
        .services()
        .folder()
        .join(format!("report-{}.json", lock.entity().replace('/', "-")));
    let (resource, file) = (paydb.url("/"), out.display().to_string());
    let job = [
        "report",
        "--resource",
        &resource,
        "--day",
        "2026-11-02",
        "--accounts",
        "acct-1,acct-2",
        "--out",
        &file,
    ];
    for _ in 0..2 {
        let builder = worker(&bench, &lock, None, &job).await;
        assert_eq!(
            builder.exited().await.unwrap(),
            Ended::Code(0),
            "{}",
            builder.tail()
        );
        builder.wait_line("2026-11-02: reported", SOON).await.unwrap();
        let report: Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
        assert_eq!(
            report["accounts"]["acct-1"],
            serde_json::json!({"transfers": 1, "sent": 10})
        );
        assert_eq!(
            report["accounts"]["acct-2"],
            serde_json::json!({"transfers": 0, "sent": 0})
        );
    }
}
