//! `fence epoch`, with a database as the witness of a real store.

use std::time::Duration;

use pause_kit::reaper::Ended;
use pause_kit::services::{ProcessSpec, for_tests};
use serde_json::{Value, json};

use crate::command::Said;
use crate::database::{Database, fence_with};

/// A store that nobody has initialised, and a database that is to be its witness.
struct Bed {
    etcd: String,
    prefix: String,
    witness: Database,
}

impl Bed {
    async fn new() -> Bed {
        let services = for_tests().await;
        Bed {
            etcd: services.etcd().endpoint(),
            prefix: services.fresh_prefix().trim_end_matches('/').to_owned(),
            witness: Database::migrated().await,
        }
    }

    /// The words of a command for a tier of it, each tier with a prefix of its own.
    fn words(&self, command: &str, tier: &str, more: &[&str]) -> Vec<String> {
        let prefix = format!("{}-{tier}", self.prefix);
        let mut words = vec![
            "epoch", command, "--etcd", &self.etcd, "--prefix", &prefix, "--tier", tier,
        ];
        words.extend(more);
        words.into_iter().map(ToOwned::to_owned).collect()
    }

    fn fence(&self, command: &str, tier: &str, more: &[&str]) -> Said {
        let words = self.words(command, tier, more);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        fence_with(&words, &[])
    }

    /// The same, with the witness.
    fn witnessed(&self, command: &str, tier: &str, more: &[&str]) -> Said {
        let url = self.witness.url.as_str();
        self.fence(command, tier, &[&["--witness", url], more].concat())
    }

    fn shown(&self) -> (i32, Value) {
        let said = self.witnessed("show", "entity", &["--json"]);
        let value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        (said.code, value)
    }

    /// The epochs that the witness has registered.
    async fn registered(&self) -> Vec<(String, i32)> {
        use sqlx::Row as _;
        let rows = self
            .witness
            .run("SELECT tier, epoch FROM fence.known_epochs() ORDER BY epoch")
            .await;
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// Has the witness remember a lineage that the store never had.
    async fn remember_more(&self) {
        let changed = self
            .witness
            .run("UPDATE fence.store_memory SET memory = regexp_replace(memory, '\"generation\":\\d+', '\"generation\":5000') RETURNING 1")
            .await;
        assert_eq!(changed.len(), 1);
    }
}

fn pair(tier: &str, epoch: i32) -> (String, i32) {
    (tier.to_owned(), epoch)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_are_one_sequence_over_all_tiers_registered_with_the_witness_and_shown() {
    let bed = Bed::new().await;
    let (code, shown) = bed.shown();
    assert_eq!(
        (code, &shown["grants"], &shown["record"]),
        (1, &json!(false), &Value::Null)
    );

    let begun = bed.witnessed("init", "entity", &["--class", "shop.order"]);
    assert_eq!(begun.code, 0, "{}", begun.err);
    let again = bed.witnessed("init", "entity", &[]);
    assert_eq!(again.code, 2, "{}", again.out);
    assert!(
        again.err.contains("initialised already, with epoch 1"),
        "{}",
        again.err
    );
    let taken = bed.witnessed("init", "coord", &[]);
    assert_eq!(taken.code, 2, "{}", taken.out);
    assert!(taken.err.contains("another tier"), "{}", taken.err);
    assert_eq!(bed.witnessed("init", "coord", &["--epoch", "2"]).code, 0);

    let advanced = bed.witnessed(
        "advance",
        "entity",
        &["--reason", "a test", "--class", "shop.stock"],
    );
    assert_eq!(advanced.code, 0, "{}", advanced.err);
    assert!(
        advanced.out.starts_with("epoch 3 of tier entity is in force"),
        "{}",
        advanced.out
    );
    assert_eq!(
        bed.registered().await,
        [pair("entity", 1), pair("coord", 2), pair("entity", 3)]
    );

    let (code, shown) = bed.shown();
    assert_eq!(code, 0);
    assert_eq!(shown["record"]["epoch"], 3);
    assert_eq!(shown["record"]["reason"], "a test");
    assert_eq!(shown["classes"], json!(["shop.order", "shop.stock"]));
    assert_eq!(shown["witnesses"][0]["remembers"]["epoch"], 3);
    assert_eq!(shown["intent"], Value::Null);

    let unnumbered = bed.fence("advance", "entity", &["--reason", "a test"]);
    assert_eq!(unnumbered.code, 2);
    assert!(unnumbered.err.contains("--at-least"), "{}", unnumbered.err);
    let numbered = bed.fence("advance", "entity", &["--reason", "a test", "--at-least", "9"]);
    assert_eq!(numbered.code, 0, "{}", numbered.err);
    assert!(
        numbered.out.contains("SELECT fence.register_epoch('entity', 9)"),
        "{}",
        numbered.out
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_seals_a_store_that_its_witness_has_seen_further_and_an_advance_opens_it() {
    let bed = Bed::new().await;
    assert_eq!(bed.witnessed("init", "entity", &[]).code, 0);
    let words = bed.words("watch", "entity", &["--witness", bed.witness.url.as_str()]);
    let spec = ProcessSpec::new("watch", env!("CARGO_BIN_EXE_fence")).args(words);
    let watch = for_tests().await.services().spawn(spec).await.unwrap();
    let knows = format!("database {}", bed.witness.url.database());
    watch.wait_line(&knows, Duration::from_secs(30)).await.unwrap();
    assert_eq!(bed.shown().0, 0);

    bed.remember_more().await;
    let ended = tokio::time::timeout(Duration::from_secs(40), watch.exited())
        .await
        .unwrap();
    assert!(matches!(ended.unwrap(), Ended::Code(1)), "{}", watch.tail());
    let said = std::fs::read_to_string(watch.stdout()).unwrap();
    assert!(said.contains("its lineage had 5000 links"), "{said}");
    let (code, shown) = bed.shown();
    assert_eq!((code, &shown["grants"]), (1, &json!(false)));
    assert_eq!(shown["record"]["epoch"], 1);
    assert_eq!(bed.witnessed("watch", "entity", &["--once"]).code, 1);
    assert_eq!(bed.witnessed("init", "entity", &["--epoch", "2"]).code, 2);

    let advanced = bed.witnessed("advance", "entity", &["--reason", "it was put back"]);
    assert_eq!(advanced.code, 0, "{}", advanced.err);
    let (code, shown) = bed.shown();
    assert_eq!((code, &shown["grants"]), (0, &json!(true)));
    // The init that was refused has registered nothing.
    assert_eq!(shown["record"]["epoch"], 2);
    assert_eq!(bed.witnessed("watch", "entity", &["--once"]).code, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_advance_that_is_killed_again_and_again_uses_one_epoch() {
    let bed = Bed::new().await;
    assert_eq!(bed.witnessed("init", "entity", &[]).code, 0);
    let in_force = || bed.shown().1["record"]["epoch"].clone();
    for after in 0..100_u64 {
        let words = bed.words(
            "advance",
            "entity",
            &["--reason", "a test", "--witness", bed.witness.url.as_str()],
        );
        let spec = ProcessSpec::new("advance", env!("CARGO_BIN_EXE_fence")).args(words);
        let advance = for_tests().await.services().spawn(spec).await.unwrap();
        tokio::time::sleep(Duration::from_millis(after % 25)).await;
        advance.kill().await.unwrap();
        if in_force() != 1 {
            break;
        }
    }
    if in_force() == 1 {
        assert_eq!(
            bed.witnessed("advance", "entity", &["--reason", "a test"]).code,
            0
        );
    }
    assert_eq!(in_force(), 2);
    assert_eq!(bed.registered().await, [pair("entity", 1), pair("entity", 2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_witness_whose_own_history_is_in_doubt_is_none() {
    let bed = Bed::new().await;
    assert_eq!(bed.witnessed("init", "entity", &[]).code, 0);
    bed.witness.run("SELECT fence.stop('a test')").await;
    for command in [
        ["advance", "--reason", "a test"].as_slice(),
        &["watch", "--once"],
        &["show"],
    ] {
        let said = bed.witnessed(command[0], "entity", &command[1..]);
        assert_eq!(said.code, 4, "{command:?}: {} {}", said.out, said.err);
        assert!(said.err.contains("ZF008"), "{}", said.err);
    }
}
