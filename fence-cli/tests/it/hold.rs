//! `fence hold` and `fence locks`, with real locks, real commands and real losses.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fence_core::{ClassName, Epoch, Key, TierName, Ttl};
use fence_lock::{EtcdStore, Hold, Release, Revoked, Session};
use pause_kit::reaper::Ended;
use pause_kit::services::{Child, DatabaseUrl, Etcd, ProcessSpec, for_tests};
use serde_json::Value;

use crate::command::Said;
use crate::database::{Database, fence_with};

const SOON: Duration = Duration::from_secs(20);

fn class() -> ClassName {
    ClassName::new("shop.order").unwrap()
}

fn key(text: &str) -> Key {
    Key::text(text).unwrap()
}

fn tier() -> TierName {
    TierName::new("entity").unwrap()
}

/// A store of the test's own, in epoch 1.
struct Locks {
    etcd: String,
    prefix: String,
    store: EtcdStore,
}

impl Locks {
    async fn new() -> Locks {
        Locks::on(for_tests().await.etcd()).await
    }

    async fn on(etcd: &Etcd) -> Locks {
        let prefix = for_tests().await.fresh_prefix().trim_end_matches('/').to_owned();
        let store = EtcdStore::connect(&[etcd.endpoint()], &prefix, tier())
            .await
            .unwrap();
        store.init(Epoch::FIRST, "a test").await.unwrap();
        Locks {
            etcd: etcd.endpoint(),
            prefix,
            store,
        }
    }

    /// The arguments that name the store.
    fn named(&self) -> [&str; 6] {
        ["--etcd", &self.etcd, "--prefix", &self.prefix, "--tier", "entity"]
    }

    /// `fence hold` of `order-7`, at once.
    fn hold(&self, more: &[&str], command: &[&str]) -> Said {
        fence_with(&self.words(&["order-7"], more, command), &[])
    }

    fn words<'a>(&'a self, keys: &[&'a str], more: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
        let mut words = vec!["hold", "--class", "shop.order", "--ttl", "2s"];
        for key in keys {
            words.extend(["--key", key]);
        }
        words.extend(self.named());
        words.extend(more);
        words.push("--");
        words.extend(command);
        words
    }

    /// `fence hold` of `order-7`, in the background.
    async fn start(&self, script: &str) -> Child {
        let words = self.words(&["order-7"], &[], &["sh", "-c", script]);
        let spec = ProcessSpec::new("hold", env!("CARGO_BIN_EXE_fence")).args(words);
        for_tests().await.services().spawn(spec).await.unwrap()
    }

    async fn session(&self) -> Session {
        Session::open(self.store.clone(), Ttl::from_secs(20).unwrap())
            .await
            .unwrap()
    }

    async fn taken(&self, session: &Session) -> Hold {
        session
            .acquire_within(&class(), &key("order-7"), SOON)
            .await
            .unwrap()
    }

    fn listed(&self) -> Value {
        let said = fence_with(&[&["locks", "--json"], self.named().as_slice()].concat(), &[]);
        assert_eq!(said.code, 0, "{}", said.err);
        serde_json::from_str::<Value>(&said.out).unwrap()["locks"].clone()
    }
}

async fn code(child: &Child) -> i32 {
    match tokio::time::timeout(SOON, child.exited()).await.unwrap().unwrap() {
        Ended::Code(code) => code,
        ended => panic!("{ended}: {}", child.tail()),
    }
}

fn said_by(child: &Child) -> String {
    std::fs::read_to_string(child.stdout()).unwrap()
}

#[tokio::test]
async fn the_command_runs_with_its_grant_and_its_exit_code_is_passed_on() {
    let locks = Locks::new().await;
    let script = "echo $FENCE_CLASS $FENCE_KEY $FENCING_TOKEN $FENCE_GRANT $FENCE_KEY_1; exit 7";
    let said = locks.hold(&[], &["sh", "-c", script]);
    assert_eq!(said.code, 7, "{}", said.err);
    let words: Vec<&str> = said.out.split_whitespace().collect();
    assert_eq!(words[..2], ["shop.order", "order-7"]);
    assert_eq!(
        (words[2].len(), words[3].len(), words.len()),
        (15, 32, 4),
        "{words:?}"
    );
    // It is free at once, and the next token is larger.
    let first: i64 = words[2].parse().unwrap();
    let second = locks.hold(&["--wait", "1s"], &["sh", "-c", "echo $FENCING_TOKEN"]);
    assert!(second.out.trim().parse::<i64>().unwrap() > first, "{second:?}");
}

#[tokio::test]
async fn several_keys_are_taken_in_one_step_and_all_of_them_are_named() {
    let locks = Locks::new().await;
    let held = ["b", "a b\nc"];
    let script = "printf '%s|' \"$FENCE_KEY\" \"$FENCE_KEY_1\" \"$FENCE_KEY_2\"";
    let said = fence_with(&locks.words(&held, &[], &["sh", "-c", script]), &[]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "a b\nc|a b\nc|b|"),
        "{}",
        said.err
    );
    // None of them while one is somebody else's.
    let session = locks.session().await;
    let hold = session.acquire(&class(), &key("b")).await.unwrap();
    let said = fence_with(&locks.words(&held, &["--wait", "1s"], &["echo", "ran"]), &[]);
    assert_eq!((said.code, said.out.as_str()), (124, ""), "{}", said.err);
    assert!(
        session
            .acquire_within(&class(), &key("a b\nc"), SOON)
            .await
            .is_ok()
    );
    drop(hold);
}

#[tokio::test]
async fn a_lock_that_is_not_granted_in_time_runs_nothing_and_leaves_the_queue() {
    let locks = Locks::new().await;
    let session = locks.session().await;
    let hold = locks.taken(&session).await;
    let said = locks.hold(&["--wait", "1s"], &["echo", "ran"]);
    assert_eq!((said.code, said.out.as_str()), (124, ""));
    assert!(said.err.contains("was not granted within 1s"), "{}", said.err);
    assert_eq!(locks.listed()[0]["waiting"], serde_json::json!([]));
    assert_eq!(hold.release().await.unwrap(), Release::Released);
}

#[tokio::test]
async fn signals_reach_the_whole_group_of_the_command() {
    let locks = Locks::new().await;
    let child = locks
        .start("trap 'echo told; wait; exit 3' TERM; (trap 'echo told too; exit' TERM; echo ready; while :; do sleep 0.05; done) & wait; wait")
        .await;
    child.wait_line("ready", SOON).await.unwrap();
    child.terminate().await.unwrap();
    assert_eq!(code(&child).await, 3);
    let said = said_by(&child);
    assert!(said.contains("told\n") && said.contains("told too\n"), "{said}");
    // And the command's own end by a signal is passed on as shells do.
    let said = locks.hold(&["--wait", "5s"], &["sh", "-c", "kill -9 $$"]);
    assert_eq!(said.code, 137);
}

#[tokio::test]
async fn who_ends_the_waiting_ends_it_at_once_and_leaves_the_queue() {
    let locks = Locks::new().await;
    let session = locks.session().await;
    let hold = locks.taken(&session).await;
    let waiting = locks.start("echo ran").await;
    let queued = async {
        while locks.listed()[0]["waiting"].as_array().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, queued).await.unwrap();
    waiting.terminate().await.unwrap();
    assert_eq!(code(&waiting).await, 143);
    assert_eq!(said_by(&waiting), "");
    assert_eq!(locks.listed()[0]["waiting"], serde_json::json!([]));
    let _ = hold.release().await.unwrap();
}

#[tokio::test]
async fn a_command_whose_lock_is_revoked_is_asked_to_end_and_then_killed() {
    let locks = Locks::new().await;
    let child = locks
        .start("trap 'echo asked' TERM; echo ready; while :; do sleep 0.05; done")
        .await;
    child.wait_line("ready", SOON).await.unwrap();
    let held = locks
        .store
        .holder(&class(), &key("order-7"))
        .await
        .unwrap()
        .unwrap();
    let revoked = locks
        .store
        .revoke_grant(&class(), &key("order-7"), &held.grant_id)
        .await;
    assert_eq!(revoked.unwrap(), Revoked::Revoked);
    assert_eq!(code(&child).await, 123);
    assert!(said_by(&child).ends_with("asked\n"), "{}", said_by(&child));
}

#[tokio::test]
async fn a_command_that_ended_under_a_lock_that_was_gone_is_told_apart() {
    let locks = Locks::new().await;
    let child = locks
        .start("echo ready; while [ ! -e \"$0.go\" ]; do sleep 0.02; done; exit 0")
        .await;
    child.wait_line("ready", SOON).await.unwrap();
    // The key itself is deleted: no keepalive tells.
    let mut etcd = ["del", "--prefix"].to_vec();
    let under = format!("{}/lock/", locks.prefix);
    etcd.push(&under);
    let deleted = std::process::Command::new("etcdctl")
        .args(etcd)
        .env("ETCDCTL_API", "3")
        .env("ETCDCTL_ENDPOINTS", &locks.etcd)
        .status();
    assert!(deleted.expect("etcdctl is installed with etcd-client").success());
    child.terminate().await.unwrap();
    assert_eq!(code(&child).await, 123, "{}", child.tail());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_store_falls_silent_the_command_is_gone_before_the_lease_can_end() {
    let shared = for_tests().await.services();
    let reaper = pause_kit::reaper::ReaperCommand::find().unwrap();
    let config = pause_kit::services::ServicesConfig {
        reaper,
        postgres: false,
        etcd: vec!["silent".to_owned()],
    };
    let own = pause_kit::services::Services::start(config).await.unwrap();
    let etcd = own.etcd("silent").unwrap();
    let locks = Locks::on(etcd).await;
    let words = locks.words(
        &["order-7"],
        &[],
        &[
            "sh",
            "-c",
            "trap '' TERM; echo ready; while :; do date +%s%N; done",
        ],
    );
    let spec = ProcessSpec::new("hold", env!("CARGO_BIN_EXE_fence")).args(words);
    let child = shared.spawn(spec).await.unwrap();
    child.wait_line("ready", SOON).await.unwrap();
    let stopped = etcd.process().stop().await.unwrap();
    let silent_since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // Its last keepalive was sent before; its lease lives 2 s from then on at least.
    assert_eq!(code(&child).await, 123);
    drop(stopped);
    let said = said_by(&child);
    let last: u64 = said.lines().rev().find_map(|line| line.parse().ok()).unwrap();
    let after = Duration::from_nanos(last).saturating_sub(silent_since);
    assert!(
        after < Duration::from_secs(2),
        "it worked {after:?} after the store fell silent"
    );
}

#[tokio::test]
async fn what_the_command_leaves_running_is_killed_before_the_lock_is_free() {
    let locks = Locks::new().await;
    let said = locks.hold(&[], &["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let pid: u32 = said.out.trim().parse().unwrap();
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z"), "it runs on: {state}");
}

#[tokio::test]
async fn the_mark_is_raised_before_the_command_runs_and_a_refusal_runs_nothing() {
    let locks = Locks::new().await;
    let database = Database::guarded().await;
    let url = database.url.as_str();
    let said = locks.hold(&["--raise", url], &["sh", "-c", "echo $FENCING_TOKEN"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let token: i64 = said.out.trim().parse().unwrap();
    let mark = "SELECT token FROM fence.high_water WHERE class = 'shop.order' AND key = 'order-7'";
    assert_eq!(database.number(mark).await, token);
    // A resource that has seen a newer token.
    database
        .run("SELECT fence.admit('shop.order', 'order-7', 281474976710655 + 281474976710655, 'newer')")
        .await;
    let said = locks.hold(&["--raise", url], &["echo", "ran"]);
    assert_eq!((said.code, said.out.as_str()), (125, ""));
    assert!(
        said.err.contains("stale") && said.err.contains("seen"),
        "{}",
        said.err
    );
}

#[tokio::test]
async fn what_cannot_be_run_and_what_was_asked_wrongly_have_codes_of_their_own() {
    let locks = Locks::new().await;
    assert_eq!(locks.hold(&[], &["/nonexistent/program"]).code, 127);
    assert_eq!(locks.hold(&[], &["/etc/passwd"]).code, 126);
    for wrong in [
        &["hold"][..],
        &[
            "hold",
            "--class",
            "shop.order",
            "--key",
            "k",
            "--tier",
            "entity",
            "--",
            "true",
        ],
        &[
            "hold",
            "--class",
            "no class",
            "--key",
            "k",
            "--etcd",
            "http://127.0.0.1:1",
            "--tier",
            "entity",
            "--",
            "true",
        ],
        &[
            "hold",
            "--class",
            "shop.order",
            "--key",
            "k",
            "--etcd",
            "http://127.0.0.1:1",
            "--tier",
            "entity",
            "--",
            "true",
        ],
    ] {
        let said = fence_with(wrong, &[]);
        assert_eq!(
            (said.code, said.out.as_str()),
            (125, ""),
            "{wrong:?}: {}",
            said.err
        );
        assert!(!said.err.is_empty());
    }
}

/// A lock store in a database of its own.
async fn in_postgresql() -> (DatabaseUrl, fence_lock::PostgresStore) {
    let url = for_tests().await.fresh_database().await;
    let store = fence_lock::PostgresStore::connect(url.as_str(), tier())
        .await
        .unwrap();
    store.install().await.unwrap();
    store.init(Epoch::FIRST, "a test").await.unwrap();
    (url, store)
}

#[tokio::test]
async fn a_store_in_postgresql_serves_as_well() {
    let (url, store) = in_postgresql().await;
    let named = ["--lock-database", url.as_str(), "--tier", "entity"];
    let hold = [
        &["hold", "--class", "shop.order", "--key", "order-7"],
        &named[..],
        &["--", "sh", "-c", "exit 9"],
    ]
    .concat();
    assert_eq!(fence_with(&hold, &[]).code, 9);
    let session = Session::open(store, Ttl::from_secs(20).unwrap()).await.unwrap();
    let held = session.acquire(&class(), &key("order-7")).await.unwrap();
    let said = fence_with(&[&["locks"], &named[..]].concat(), &[]);
    let expected = format!(
        "shop.order order-7: held for 0s by grant {} of session {}, token {}\n",
        held.grant_id(),
        session.id(),
        held.token().unwrap()
    );
    assert_eq!((said.code, said.out), (0, expected), "{}", said.err);
}

#[tokio::test]
async fn locks_lists_holders_tokens_ages_and_waiters_in_line() {
    let locks = Locks::new().await;
    let list = |more: &[&str]| fence_with(&[&["locks"], &locks.named()[..], more].concat(), &[]);
    assert_eq!(list(&[]).out, "nothing is held or waited for\n");
    let (first, second, third) = (
        locks.session().await,
        locks.session().await,
        locks.session().await,
    );
    let hold = locks.taken(&first).await;
    let wait = |session: &Session| {
        let session = session.clone();
        tokio::spawn(async move {
            session
                .acquire(&class(), &key("order-7"))
                .await
                .map(|hold| hold.token())
        })
    };
    let mut waiting = Vec::new();
    for (number, session) in [&second, &third].into_iter().enumerate() {
        waiting.push(wait(session));
        let queued = async {
            while locks.listed()[0]["waiting"].as_array().unwrap().len() <= number {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(SOON, queued).await.unwrap();
    }
    let listed = locks.listed();
    let lock = &listed[0];
    assert_eq!(
        (lock["class"].as_str(), lock["key"].as_str()),
        (Some("shop.order"), Some("order-7"))
    );
    assert_eq!(lock["held"]["token"], hold.token().unwrap().to_string());
    assert_eq!(lock["held"]["grant"], hold.grant_id().as_str());
    let age = lock["held"]["age_s"].as_f64().unwrap();
    assert!((0.0..60.0).contains(&age), "{age}");
    let in_line: Vec<&str> = lock["waiting"]
        .as_array()
        .unwrap()
        .iter()
        .map(|waiting| waiting["session"].as_str().unwrap())
        .collect();
    assert_eq!(in_line, [second.id().as_str(), third.id().as_str()]);
    let said = list(&["--class", "shop.order"]);
    assert_eq!(said.out.lines().count(), 3, "{}", said.out);
    assert_eq!(
        list(&["--class", "shop.other"]).out,
        "nothing is held or waited for\n"
    );
    let _ = hold.release().await.unwrap();
    second.close().await.unwrap();
    third.close().await.unwrap();
}

/// What a shell script says at a terminal, which is answered so.
fn at_a_terminal(script: &str, talk: &[&str]) -> String {
    let program = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/terminal.py");
    // A terminal that nobody reads any more must not hang the test.
    let output = std::process::Command::new("timeout")
        .args(["60", "python3"])
        .arg(program)
        .arg(script)
        .args(talk)
        .output()
        .expect("python3 is installed");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn at_a_terminal_the_command_has_it_and_the_script_gets_it_back() {
    let locks = Locks::new().await;
    // It is given the terminal once it runs: what is typed before that is the script's.
    let command = "python3 -c \"import os, time; \
                   all(time.sleep(0.01) is None for _ in iter(lambda: os.tcgetpgrp(0) == os.getpgrp(), True))\"; \
                   echo ready; read x; echo got $x";
    let words = locks
        .words(&["order-7"], &["--wait", "5s"], &["sh", "-c"])
        .join(" ");
    let fence = env!("CARGO_BIN_EXE_fence");
    let script = format!("{fence} {words} '{command}'; echo code $?; read y; echo then $y");
    let said = at_a_terminal(&script, &["ready", "hello\\n", "code 0", "again\\n"]);
    assert!(
        said.contains("got hello") && said.contains("then again"),
        "{said}"
    );
    // Ctrl-C is the command's, and so is its end.
    let said = at_a_terminal(&script, &["ready", "\\x03", "code 130", "again\\n"]);
    assert!(!said.contains("got") && said.contains("then again"), "{said}");
    // Ctrl-Z suspends nobody who holds a lock.
    let said = at_a_terminal(
        &script,
        &["ready", "\\x1a", "^Z", "hello\\n", "code 0", "again\\n"],
    );
    assert!(
        said.contains("got hello") && said.contains("then again"),
        "{said}"
    );
}
