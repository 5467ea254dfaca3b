//! The worker that pays once, over HTTP.

use fence_core::{ClassName, Epoch, GrantId, Key, TierName};
use fence_lock::{EtcdStore, Revoked};
use pause_kit::gates::Gates;
use pause_kit::path::{Connection, Path, PathOptions};
use pause_kit::reaper::Ended;
use pause_kit::services::{Child, ProcessSpec};
use pause_kit::wire::http;

use super::bench::{Bench, Paydb, SOON, WORKER, stands_at};

#[tokio::test]
async fn a_worker_pays_once_and_the_next_finds_it_done() {
    let (bench, paydb) = Bench::ready().await;
    let lock = Lock::new(&bench).await;
    let first = lock.worker(&bench, &paydb, None).await;
    assert_eq!(first.exited().await.unwrap(), Ended::Code(0), "{}", first.tail());
    let granted = first.wait_line("granted token ", SOON).await.unwrap();
    let (token, grant) = granted.split_once(" grant ").unwrap();
    let key = bench.ask("SELECT idempotency_key FROM transfer").await;
    assert_eq!(key, format!("{grant}:1"));
    assert_eq!(bench.mark("acct-1").await, token);

    let second = lock.worker(&bench, &paydb, None).await;
    assert_eq!(
        second.exited().await.unwrap(),
        Ended::Code(0),
        "{}",
        second.tail()
    );
    second.wait_line("order-7: done before", SOON).await.unwrap();
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn a_worker_held_before_it_sends_is_refused_after_a_takeover() {
    let (bench, paydb) = Bench::ready().await;
    let lock = Lock::new(&bench).await;
    let gates = Gates::open(lock.socket(&bench), ["after-grant", "after-read", "before-send"]).unwrap();
    let first = lock.worker(&bench, &paydb, Some(&gates)).await;
    stands_at(&gates, "after-grant").await.open().await.unwrap();
    stands_at(&gates, "after-read").await.open().await.unwrap();
    let gate = stands_at(&gates, "before-send").await;
    lock.revoke("paydb.account", "acct-1", &first).await;
    let second = lock.worker(&bench, &paydb, None).await;
    assert_eq!(
        second.exited().await.unwrap(),
        Ended::Code(0),
        "{}",
        second.tail()
    );
    gate.open().await.unwrap();
    assert_eq!(first.exited().await.unwrap(), Ended::Code(5), "{}", first.tail());
    first
        .wait_line("make the transfer: answered 412", SOON)
        .await
        .unwrap();
    assert!(first.tail().contains("fenced"), "{}", first.tail());
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn a_worker_told_to_speak_http_2_pays_and_is_refused_in_it() {
    let (bench, paydb) = Bench::ready().await;
    let lock = Lock::new(&bench).await;
    let address = paydb.address.parse().unwrap();
    let path = Path::open(address, PathOptions::http()).await.unwrap();
    let paydb = Paydb {
        address: path.address().to_string(),
        ..paydb
    };
    let gates = Gates::open(lock.socket(&bench), ["after-grant", "after-read", "before-send"]).unwrap();
    let first = lock.worker_with(&bench, &paydb, Some(&gates), &["--http2"]).await;
    for gate in ["after-grant", "after-read"] {
        stands_at(&gates, gate).await.open().await.unwrap();
    }
    let gate = stands_at(&gates, "before-send").await;
    lock.revoke("paydb.account", "acct-1", &first).await;
    let second = lock.worker_with(&bench, &paydb, None, &["--http2"]).await;
    let ended = second.exited().await.unwrap();
    assert_eq!(ended, Ended::Code(0), "{}", second.tail());
    gate.open().await.unwrap();
    assert_eq!(first.exited().await.unwrap(), Ended::Code(5), "{}", first.tail());
    assert_eq!(bench.transfers().await, 1);
    let of_each = |look: fn(&Connection) -> bool| {
        path.read(|log| log.connections().iter().map(look).collect::<Vec<_>>())
    };
    let in_http_2 = of_each(|one| one.to_resource.bytes().starts_with(b"PRI * HTTP/2.0\r\n"));
    assert_eq!(
        in_http_2, [true; 6],
        "each of two workers raises, reads and writes"
    );
    assert_eq!(of_each(http::answered), [true; 6]);
    let exchanges: Vec<http::Exchange> = path.read(|log| {
        let each = log.connections().iter();
        each.flat_map(|one| http::exchanges(one).unwrap()).collect()
    });
    let answers: Vec<_> = exchanges.iter().filter_map(|one| one.answer.as_ref()).collect();
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [204, 200, 204, 200, 201, 412]);
    let (late, refused) = (&exchanges[5].request, answers[5]);
    assert_eq!(
        (late.method.as_str(), late.target.as_str()),
        ("POST", "/accounts/acct-1/transfers")
    );
    assert!(
        late.headers
            .only("fencing-token")
            .is_some_and(|token| token.contains("grant="))
    );
    assert!(late.body.starts_with(b"{") && late.body.ends_with(b"}"));
    assert_eq!(refused.problem_type().unwrap(), "urn:fence:problem:stale");
}

#[tokio::test]
async fn a_worker_that_loses_its_hold_during_its_work_leaves_the_rest_to_the_guard() {
    let (bench, paydb) = Bench::ready().await;
    let lock = Lock::new(&bench).await;
    let mut other = bench.client().await;
    let locked = other.transaction().await.unwrap();
    // Its read waits.
    locked
        .batch_execute("LOCK TABLE transfer IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let worker = lock.worker(&bench, &paydb, None).await;
    worker
        .wait_line("raise the mark: answered 204", SOON)
        .await
        .unwrap();
    lock.revoke("paydb.account", "acct-1", &worker).await;
    let next = lock.worker(&bench, &paydb, None).await;
    next.wait_line("raise the mark: answered 204", SOON)
        .await
        .unwrap();
    locked.rollback().await.unwrap();
    for (worker, code) in [(worker, 5), (next, 0)] {
        let ended = worker.exited().await.unwrap();
        assert_eq!(ended, Ended::Code(code), "{}", worker.tail());
    }
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn a_worker_of_two_parts_presents_the_second_whatever_the_first_was_answered() {
    let (bench, paydb) = Bench::ready().await;
    let lock = Lock::new(&bench).await;
    let gates = Gates::open(lock.socket(&bench), ["after-grant", "after-read", "before-send"]).unwrap();
    let two = ["--writes", "2"];
    let first = lock.worker_with(&bench, &paydb, Some(&gates), &two).await;
    for gate in ["after-grant", "after-read"] {
        stands_at(&gates, gate).await.open().await.unwrap();
    }
    let gate = stands_at(&gates, "before-send").await;
    lock.revoke("paydb.account", "acct-1", &first).await;
    let second = lock.worker_with(&bench, &paydb, None, &two).await;
    let ended = second.exited().await.unwrap();
    assert_eq!(ended, Ended::Code(0), "{}", second.tail());
    gate.open().await.unwrap();
    stands_at(&gates, "before-send").await.open().await.unwrap();
    assert_eq!(first.exited().await.unwrap(), Ended::Code(5), "{}", first.tail());
    let refused = "make the transfer: answered 412";
    assert_eq!(first.tail().matches("fenced").count(), 1, "{}", first.tail());
    first.wait_line(refused, SOON).await.unwrap();
    let paid = bench.ask("SELECT string_agg(reference, ', ' ORDER BY reference) FROM transfer");
    assert_eq!(paid.await, "order-7 part 1, order-7 part 2");
}

#[tokio::test]
async fn a_worker_killed_before_it_sends_goes_on_from_its_journal_and_asks_nobody() {
    let (bench, paydb) = Bench::ready().await;
    let lock = Lock::new(&bench).await;
    let file = lock.socket(&bench).with_extension("journal");
    let journal = ["--journal", file.to_str().unwrap()];
    let gates = Gates::open(lock.socket(&bench), ["after-grant", "after-read", "before-send"]).unwrap();
    let first = lock.worker_with(&bench, &paydb, Some(&gates), &journal).await;
    for gate in ["after-grant", "after-read"] {
        stands_at(&gates, gate).await.open().await.unwrap();
    }
    let _gate = stands_at(&gates, "before-send").await;
    let granted = first.wait_line("granted token ", SOON).await.unwrap();
    let grant = granted.split_once(" grant ").unwrap().1;
    first.kill().await.unwrap();
    assert!(file.is_file());

    let again = lock.worker_with(&bench, &paydb, None, &journal).await;
    assert_eq!(again.exited().await.unwrap(), Ended::Code(0), "{}", again.tail());
    for said in ["granted", "raise the mark", "read the transfers"] {
        assert!(!again.tail().contains(said), "{}", again.tail());
    }
    let key = bench.ask("SELECT idempotency_key FROM transfer").await;
    assert_eq!(key, format!("{grant}:1"));
    assert!(
        !file.exists(),
        "what was answered for good is not presented again"
    );
}

#[tokio::test]
async fn a_worker_that_reads_first_has_not_raised_the_mark() {
    let (bench, paydb) = Bench::ready().await;
    let lock = Lock::new(&bench).await;
    let gates = Gates::open(lock.socket(&bench), ["after-grant", "after-read", "before-send"]).unwrap();
    let worker = lock
        .worker_with(&bench, &paydb, Some(&gates), &["--read-first"])
        .await;
    stands_at(&gates, "after-grant").await.open().await.unwrap();
    stands_at(&gates, "after-read").await.open().await.unwrap();
    let gate = stands_at(&gates, "before-send").await;
    assert_eq!(
        bench
            .ask("SELECT count(*)::text FROM fence.high_water WHERE class = 'paydb.account'")
            .await,
        "0"
    );
    gate.open().await.unwrap();
    assert_eq!(
        worker.exited().await.unwrap(),
        Ended::Code(0),
        "{}",
        worker.tail()
    );
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn a_worker_says_what_it_cannot_reach_and_what_it_cannot_read() {
    let (bench, paydb) = Bench::ready().await;
    let lock = Lock::new(&bench).await;
    let nobody = format!("http://127.0.0.1:{}", pause_kit::services::free_port().unwrap());
    let resource = paydb.url("");
    let etcd = bench.services.etcd().endpoint();
    for (etcd, resource, ttl, code) in [
        (&nobody, &resource, "2s", 4),
        (&etcd, &nobody, "2s", 4),
        (&etcd, &resource, "1s", 2),
        (&etcd, &"nowhere".to_owned(), "2s", 2),
    ] {
        let args = [
            "account",
            "--etcd",
            etcd,
            "--prefix",
            &lock.prefix,
            "--ttl",
            ttl,
            "--resource",
            resource,
            "--account",
            "acct-1",
            "--to",
            "acct-2",
            "--amount",
            "10",
            "--reference",
            "order-7",
        ];
        let spec = ProcessSpec::new("worker", WORKER).args(args);
        let worker = bench.services.services().spawn(spec).await.unwrap();
        assert_eq!(
            worker.exited().await.unwrap(),
            Ended::Code(code),
            "{args:?}: {}",
            worker.tail()
        );
    }
    assert_eq!(bench.transfers().await, 0);
}

/// A lock store of a test's own: both tiers under one prefix each.
pub(crate) struct Lock {
    pub(crate) prefix: String,
    stores: [(String, EtcdStore); 2],
}

impl Lock {
    pub(crate) async fn new(bench: &Bench) -> Lock {
        let prefix = bench.services.fresh_prefix().trim_matches('/').to_owned();
        let store = async |tier: &str| {
            let endpoint = bench.services.etcd().endpoint();
            let prefix = format!("{prefix}/{tier}");
            let store = EtcdStore::connect(&[endpoint], &prefix, TierName::new(tier).unwrap())
                .await
                .unwrap();
            store.init(Epoch::FIRST, "a test").await.unwrap();
            (prefix, store)
        };
        let stores = [store("entity").await, store("coord").await];
        Lock {
            prefix: stores[0].0.clone(),
            stores,
        }
    }

    pub(crate) fn entity(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn coord(&self) -> &str {
        &self.stores[1].0
    }

    pub(crate) fn socket(&self, bench: &Bench) -> std::path::PathBuf {
        let name = format!("gates-{}", self.prefix.replace('/', "-"));
        bench.services.services().folder().join(name)
    }

    /// Ends the lease under the grant that a worker has reported.
    pub(crate) async fn revoke(&self, class: &str, key: &str, worker: &Child) {
        let granted = worker.wait_line("granted token ", SOON).await.unwrap();
        let grant = GrantId::new(granted.split_once(" grant ").unwrap().1).unwrap();
        let (class, key) = (ClassName::new(class).unwrap(), Key::text(key).unwrap());
        for (_, store) in &self.stores {
            if store.revoke_grant(&class, &key, &grant).await.unwrap() == Revoked::Revoked {
                return;
            }
        }
        panic!("grant {grant} did not hold the lock");
    }

    async fn worker(&self, bench: &Bench, paydb: &Paydb, gates: Option<&Gates>) -> Child {
        self.worker_with(bench, paydb, gates, &[]).await
    }

    async fn worker_with(
        &self,
        bench: &Bench,
        paydb: &Paydb,
        gates: Option<&Gates>,
        further: &[&str],
    ) -> Child {
        let further = [&["--reference", "order-7"], further].concat();
        self.spawn(bench, paydb, gates, &further).await
    }

    /// A worker that pays for this reference.
    pub(crate) async fn worker_for(
        &self,
        bench: &Bench,
        paydb: &Paydb,
        reference: &str,
        further: &[&str],
    ) -> Child {
        let further = [&["--reference", reference], further].concat();
        self.spawn(bench, paydb, None, &further).await
    }

    async fn spawn(&self, bench: &Bench, paydb: &Paydb, gates: Option<&Gates>, further: &[&str]) -> Child {
        let etcd = bench.services.etcd().endpoint();
        let resource = paydb.url("/");
        let mut spec = ProcessSpec::new("worker", WORKER).args([
            "account",
            "--etcd",
            &etcd,
            "--prefix",
            &self.prefix,
            "--ttl",
            "2s",
            "--resource",
            &resource,
            "--account",
            "acct-1",
            "--to",
            "acct-2",
            "--amount",
            "10",
        ]);
        spec = spec.args(further.iter().copied());
        if let Some(gates) = gates {
            spec = spec.env(pause_kit::gates::VARIABLE, gates.socket().to_str().unwrap());
        }
        bench.services.services().spawn(spec).await.unwrap()
    }
}
