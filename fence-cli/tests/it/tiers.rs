//! `fence hold`, `fence locks` and `fence epoch` with the lock stores that `fence.toml` names.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fence_core::{ClassName, Epoch, Key, TierName};
use fence_lock::{EtcdStore, PostgresStore};
use pause_kit::services::{ProcessSpec, for_tests};
use serde_json::Value;

use crate::command::Said;

const SOON: Duration = Duration::from_secs(20);

/// A folder with a `fence.toml` of two tiers in one etcd, each under a prefix of its own and in epoch 1.
struct Shop {
    folder: tempfile::TempDir,
    etcd: String,
    prefix: String,
}

impl Shop {
    async fn new() -> Shop {
        let services = for_tests().await;
        let etcd = services.etcd().endpoint();
        let prefix = services.fresh_prefix().trim_end_matches('/').to_owned();
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            r#"[tiers.coord]
about = "few locks"
etcd = ["{etcd}"]
prefix = "{prefix}-coord"

[tiers.entity]
about = "many locks"
etcd = ["{etcd}"]
prefix = "{prefix}-entity"

[classes."shop.leader"]
purpose = "efficiency"
enforcement = "advisory"
tier = "coord"

[classes."shop.order"]
purpose = "correctness"
enforcement = "fenced"
tier = "entity"
ttl = "4s"

# What a proof needs is not here, and no lock needs it.
[targets.shop]
guard_sql = "nowhere"
"#
        );
        let shop = Shop { folder, etcd, prefix };
        shop.write(&text);
        std::fs::create_dir_all(shop.below()).unwrap();
        for tier in ["coord", "entity"] {
            let said = shop.fence(&[
                "epoch",
                "init",
                "--tier",
                tier,
                "--classes-of",
                "../../fence.toml",
            ]);
            assert_eq!(said.code, 0, "{}", said.err);
        }
        shop
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("fence.toml")
    }

    fn below(&self) -> std::path::PathBuf {
        self.folder.path().join("some/where")
    }

    fn write(&self, text: &str) {
        std::fs::write(self.file(), text).unwrap();
    }

    /// Writes the file with something else in one place.
    fn change(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.file()).unwrap();
        assert_eq!(text.matches(from).count(), 1, "{from}");
        self.write(&text.replace(from, to));
    }

    /// Runs the command two folders below the file.
    fn fence(&self, words: &[&str]) -> Said {
        fence_with(&self.below(), words, &[])
    }

    /// `fence hold` of a lock of this class, which says who holds what meanwhile.
    fn list_under(&self, class: &str, more: &[&str]) -> Said {
        let hold = ["hold", "--class", class, "--key", "42", "--wait", "5s"];
        let fence = env!("CARGO_BIN_EXE_fence");
        self.fence(&[&hold, more, &["--", fence, "locks", "--json"]].concat())
    }

    async fn store(&self, tier: &str) -> EtcdStore {
        let prefix = format!("{}-{tier}", self.prefix);
        EtcdStore::connect(&[&self.etcd], &prefix, TierName::new(tier).unwrap())
            .await
            .unwrap()
    }
}

fn fence_with(folder: &Path, words: &[&str], variables: &[(&str, &str)]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_fence"))
        .args(words)
        .current_dir(folder)
        .env_remove("ETCD_PASSWORD")
        .env_remove("PGPASSWORD")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    Said {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The tier and the class of each lock in an answer of `fence locks --json`.
fn listed(said: &Said) -> Vec<(String, String)> {
    let value: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let locks = value["locks"].as_array().unwrap().iter();
    locks
        .map(|lock| (text(&lock["tier"]), text(&lock["class"])))
        .collect()
}

fn pair(tier: &str, class: &str) -> (String, String) {
    (tier.to_owned(), class.to_owned())
}

#[tokio::test]
async fn a_class_is_enough_where_the_file_says_the_rest() {
    let shop = Shop::new().await;
    for (class, tier) in [("shop.order", "entity"), ("shop.leader", "coord")] {
        let said = shop.list_under(class, &[]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(listed(&said), [pair(tier, class)]);
    }
    // The store of the other tier knows nothing of the class, and says so.
    let moved = shop.list_under("shop.order", &["--tier", "coord"]);
    assert_eq!((moved.code, moved.out.as_str()), (125, ""));
    assert!(
        moved.err.contains("shop.order") && moved.err.contains("coord"),
        "{}",
        moved.err
    );
}

#[tokio::test]
async fn locks_lists_every_tier_or_those_of_the_classes() {
    let shop = Shop::new().await;
    let fence = env!("CARGO_BIN_EXE_fence");
    let under = |more: &str| {
        let inner = format!("{fence} hold --class shop.leader --key 1 -- {fence} locks --json {more}");
        let said = shop.fence(&[
            "hold",
            "--class",
            "shop.order",
            "--key",
            "42",
            "--",
            "sh",
            "-c",
            &inner,
        ]);
        assert_eq!(said.code, 0, "{}", said.err);
        listed(&said)
    };
    let (leader, order) = (pair("coord", "shop.leader"), pair("entity", "shop.order"));
    assert_eq!(under(""), [leader.clone(), order.clone()]);
    assert_eq!(under("--class shop.order"), [order]);
    assert_eq!(under("--tier coord"), [leader]);
    // A tier whose store nobody knows is asked for only where it is meant.
    let coord = format!("prefix = \"{}-coord\"\n", shop.prefix);
    shop.change(&format!("etcd = [\"{}\"]\n{coord}", shop.etcd), &coord);
    let said = shop.fence(&["locks", "--class", "shop.order"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "nothing is held or waited for\n"),
        "{}",
        said.err
    );
    assert_eq!(shop.fence(&["locks"]).code, 2);
    let said = shop.fence(&["locks", "--etcd", &shop.etcd]);
    assert_eq!(said.code, 2, "{}", said.out);
    assert!(said.err.contains("say --tier as well"), "{}", said.err);
}

#[tokio::test]
async fn the_ttl_is_the_classes_unless_it_is_named() {
    let shop = Shop::new().await;
    let store = shop.store("entity").await;
    let file = shop.file();
    let (class, key) = (ClassName::new("shop.order").unwrap(), Key::text("42").unwrap());
    for (more, at_least, at_most) in [(&[][..], 0, 4), (&["--ttl", "60s"], 40, 60)] {
        let words = [
            &["hold", "--class", "shop.order", "--key", "42"],
            more,
            &["--config", file.to_str().unwrap()],
            &["--", "sh", "-c", "echo ready; exec sleep 60"],
        ]
        .concat();
        let spec = ProcessSpec::new("hold", env!("CARGO_BIN_EXE_fence")).args(words);
        let child = for_tests().await.services().spawn(spec).await.unwrap();
        child.wait_line("ready", SOON).await.unwrap();
        let holder = store.holder(&class, &key).await.unwrap().unwrap();
        let left = store.lease_ttl_remaining(&class, &key, &holder.grant_id).await;
        let left = left.unwrap().unwrap().as_secs();
        assert!((at_least..=at_most).contains(&left), "{more:?}: {left} s");
        child.terminate().await.unwrap();
        tokio::time::timeout(SOON, child.exited()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_is_named_wins_over_the_file() {
    let shop = Shop::new().await;
    shop.change("[tiers.entity]", "[tiers.entity]\netcd_user = \"locks\"");
    // The file's address is asked as the file's user, whose password is not in the file.
    let said = shop.list_under("shop.order", &[]);
    assert_eq!(said.code, 125);
    assert!(
        said.err.contains("locks") && said.err.contains("ETCD_PASSWORD"),
        "{}",
        said.err
    );
    // Another address is not: it is none of that user's. Everything else of the file stands.
    let hold = ["hold", "--class", "shop.order", "--key", "42"];
    let said = shop.fence(&[&hold[..], &["--etcd", &shop.etcd, "--", "echo", "ran"]].concat());
    assert_eq!((said.code, said.out.as_str()), (0, "ran\n"), "{}", said.err);
    let said = shop.fence(&[&hold[..], &["--etcd", "http://127.0.0.1:1", "--", "echo", "ran"]].concat());
    assert_eq!((said.code, said.out.as_str()), (125, ""));
    assert!(said.err.contains("127.0.0.1:1"), "{}", said.err);
    let elsewhere = [
        &hold[..],
        &["--etcd", &shop.etcd, "--prefix", "none", "--", "echo", "ran"],
    ]
    .concat();
    let said = shop.fence(&elsewhere);
    assert_eq!((said.code, said.out.as_str()), (125, ""));
    assert!(said.err.contains("fence epoch init"), "{}", said.err);
    // With tier and address named, no file is looked at.
    shop.write("not a fence.toml");
    let prefix = format!("{}-entity", shop.prefix);
    let whole = ["--tier", "entity", "--etcd", &shop.etcd, "--prefix", &prefix];
    let said = shop.fence(&[&hold[..], &whole, &["--", "echo", "ran"]].concat());
    assert_eq!((said.code, said.out.as_str()), (0, "ran\n"), "{}", said.err);
    let said = shop.fence(
        &[
            &hold[..],
            &whole,
            &["--config", "../../fence.toml", "--", "echo", "ran"],
        ]
        .concat(),
    );
    assert_eq!(said.code, 125);
    assert!(said.err.contains("fence.toml:1"), "{}", said.err);
}

#[tokio::test]
async fn what_neither_says_is_asked_for() {
    let shop = Shop::new().await;
    let hold = |more: &[&str]| {
        let said = shop.fence(&[&["hold", "--key", "42"], more, &["--", "echo", "ran"]].concat());
        assert_eq!((said.code, said.out.as_str()), (125, ""), "{more:?}");
        said.err
    };
    let said = hold(&["--class", "shop.odrer"]);
    let words = "there are shop.leader, shop.order: correct the name, declare it there, or name its lock store with --tier and --etcd";
    assert!(
        said.contains("class shop.odrer is not declared in") && said.contains(words),
        "{said}"
    );
    let said = hold(&["--class", "shop.order", "--tier", "entiyt"]);
    assert!(said.contains("tier entiyt is not declared in"), "{said}");
    let said = shop.fence(&["epoch", "show", "--tier", "entiyt"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("there are coord, entity"), "{}", said.err);

    shop.change(
        &format!(
            "etcd = [\"{}\"]\nprefix = \"{}-entity\"\n",
            shop.etcd, shop.prefix
        ),
        "",
    );
    let said = hold(&["--class", "shop.order"]);
    let words = "the tier does not say where its lock store is: add etcd = [\"http://127.0.0.1:2379\"]";
    assert!(said.contains("fence.toml:6: ") && said.contains(words), "{said}");

    let nowhere = tempfile::tempdir().unwrap();
    let said = fence_with(nowhere.path(), &["locks"], &[]);
    assert_eq!(said.code, 2);
    let words =
        "name it with --tier and --etcd or --lock-database, or in fence.toml: there is no fence.toml in";
    assert!(said.err.contains(words), "{}", said.err);
}

#[tokio::test]
async fn a_fault_in_a_tiers_table_is_named_by_its_line() {
    let shop = Shop::new().await;
    let sound = std::fs::read_to_string(shop.file()).unwrap();
    let etcd = format!(
        "etcd = [\"{}\"]\nprefix = \"{}-entity\"\n",
        shop.etcd, shop.prefix
    );
    let secret = "postgresql://locks:hunter2@db.internal/locks";
    for (text, line, words) in [
        (
            "etcd = [\"127.0.0.1:2379\"]\n",
            8,
            "a client URL is http://HOST:PORT",
        ),
        (
            "etcd = \"http://127.0.0.1:2379\"\n",
            8,
            "write it like etcd = [\"http://127.0.0.1:2379\"]",
        ),
        (
            "etcd = [\"http://locks:hunter2@127.0.0.1:2379\"]\n",
            8,
            "a client URL is http://HOST:PORT",
        ),
        (
            &format!("lock_database_variable = \"{secret}\"\n"),
            8,
            "is the name of a variable",
        ),
        (
            &format!("lock_database = \"{secret}\"\n"),
            8,
            "unknown field `lock_database`",
        ),
        (
            "prefix = \"shop\"\nlock_database_variable = \"SHOP_LOCKS\"\n",
            9,
            "a tier has one store",
        ),
        ("tls_cert = \"client.pem\"\n", 8, "a certificate has a key"),
        ("tls_key = \"client.key\"\n", 8, "a key is of a certificate"),
    ] {
        shop.write(&sound);
        shop.change(&etcd, text);
        for said in [
            shop.fence(&["locks", "--tier", "entity"]),
            shop.fence(&["register", "check"]),
        ] {
            assert_eq!(said.code, 2, "{text}");
            let place = format!("fence.toml:{line}: ");
            assert!(
                said.err.contains(&place) && said.err.contains(words),
                "{text}: {}",
                said.err
            );
            assert!(!said.err.contains("hunter2"), "{}", said.err);
        }
    }
    // Files are seen from the file's own folder.
    shop.write(&sound);
    shop.change(
        &format!(
            "etcd = [\"{}\"]\nprefix = \"{}-entity\"\n",
            shop.etcd, shop.prefix
        ),
        "etcd = [\"https://127.0.0.1:1\"]\ntls_ca = \"ca.pem\"\n",
    );
    let said = shop.fence(&["locks", "--tier", "entity"]);
    assert_eq!(said.code, 2);
    let ca = shop.folder.path().join("ca.pem");
    assert!(
        said.err.contains(&format!("cannot read {}", ca.display())),
        "{}",
        said.err
    );
}

#[tokio::test]
async fn a_store_in_postgresql_is_named_by_a_variable() {
    let url = for_tests().await.fresh_database().await;
    let tier = TierName::new("entity").unwrap();
    let store = PostgresStore::connect(url.as_str(), tier).await.unwrap();
    store.install().await.unwrap();
    store.init(Epoch::FIRST, "a test").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let text = r#"[tiers.entity]
about = "many locks"
lock_database_variable = "SHOP_LOCKS"

[classes."shop.order"]
purpose = "efficiency"
enforcement = "advisory"
tier = "entity"
"#;
    std::fs::write(folder.path().join("fence.toml"), text).unwrap();
    let fence = env!("CARGO_BIN_EXE_fence");
    let hold = [
        "hold",
        "--class",
        "shop.order",
        "--key",
        "42",
        "--",
        fence,
        "locks",
        "--json",
    ];
    let said = fence_with(folder.path(), &hold, &[("SHOP_LOCKS", url.as_str())]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(listed(&said), [pair("entity", "shop.order")]);
    // A password may stand apart from the address.
    let (login, place) = url.as_str().split_once('@').unwrap();
    let (login, password) = login.rsplit_once(':').unwrap();
    let bare = format!("{login}@{place}");
    for (variables, code) in [
        (&[("SHOP_LOCKS", bare.as_str()), ("PGPASSWORD", password)][..], 0),
        (&[("SHOP_LOCKS", bare.as_str())], 125),
    ] {
        let said = fence_with(folder.path(), &hold, variables);
        assert_eq!(said.code, code, "{}", said.err);
    }
    let said = fence_with(folder.path(), &hold, &[]);
    assert_eq!((said.code, said.out.as_str()), (125, ""));
    assert!(
        said.err.contains("the variable SHOP_LOCKS, which is not set"),
        "{}",
        said.err
    );
    // Its epochs are begun in SQL.
    let said = fence_with(
        folder.path(),
        &["epoch", "show", "--tier", "entity"],
        &[("SHOP_LOCKS", url.as_str())],
    );
    assert_eq!(said.code, 2);
    assert!(said.err.contains("fence_lock.advance"), "{}", said.err);
}
