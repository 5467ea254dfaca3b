//! `fence doctor` against a real database.

use serde_json::Value;

use crate::database::Database;

/// The names of the findings, without those of the tests' server, whose `fsync` is off and which can prepare transactions.
fn names(said: &Value) -> Vec<&str> {
    said["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["finding"].as_str().unwrap())
        .filter(|name| !["server-not-durable", "prepared-transactions"].contains(name))
        .collect()
}

#[tokio::test]
async fn each_finding_comes_with_its_fix_and_exit_code_1() {
    let database = Database::bare().await;
    let (code, said) = database.json(&["doctor"]);
    assert_eq!((code, names(&said)), (1, vec!["not-installed"]));
    assert_eq!(said["findings"][0]["fix"], "fence pg migrate");

    let database = Database::guarded().await;
    let login = database.application().await;
    database.fence(&["pg", "grant", &login.role]);
    database.run("SELECT fence.remember()").await;
    let (code, said) = database.json(&["doctor"]);
    assert_eq!(names(&said), Vec::<&str>::new(), "{said}");
    assert_eq!(code, 1, "the tests' server is not durable");

    database
        .run("ALTER TABLE orders DISABLE TRIGGER fence_enforce")
        .await;
    let said = database.fence(&["doctor"]);
    assert_eq!(said.code, 1);
    assert!(
        said.out.contains(
            "open     trigger-off  public.orders\n         trigger fence_enforce of public.orders is off: "
        ),
        "{}",
        said.out
    );
    assert!(
        said.out
            .contains("fix: SELECT fence.protect('public.orders', 'shop.order', 'id')\n"),
        "{}",
        said.out
    );
    assert!(
        said.out.ends_with("2 open, 1 weak, 0 not judged\n"),
        "{}",
        said.out
    );

    let owner = database.url.login().role.clone();
    let (_, said) = database.json(&["doctor", "--application-role", &owner]);
    assert_eq!(names(&said), ["application-owner", "trigger-off"]);
    assert_eq!(
        database.fence(&["doctor", "--application-role", "nobody"]).code,
        2
    );
}

#[tokio::test]
async fn a_guard_that_is_behind_or_newer_is_found() {
    let database = Database::migrated().await;
    database
        .run("UPDATE fence.migration SET sha256 = repeat('0', 64) WHERE name = '0003_mark.sql'")
        .await;
    let (_, said) = database.json(&["doctor"]);
    assert!(names(&said).contains(&"guard-behind"), "{said}");
    database
        .run("INSERT INTO fence.migration (name) VALUES ('9999_later.sql')")
        .await;
    let (_, said) = database.json(&["doctor"]);
    let newer = said["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["finding"] == "guard-newer");
    assert_eq!(newer.unwrap()["severity"], "unknown");
}

#[tokio::test]
async fn a_memory_kept_outside_finds_a_database_that_was_put_back_and_stops_it() {
    let database = Database::guarded().await;
    let folder = tempfile::tempdir().unwrap();
    let look = || {
        let said = database.fence_in(folder.path(), &["doctor", "--json", "--memory", "shop.memory"]);
        serde_json::from_str::<Value>(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    };
    let (_, before) = database.json(&["doctor"]);
    assert!(names(&before).contains(&"no-outside-memory"), "{before}");
    assert!(!names(&look()).contains(&"no-outside-memory"));
    let first = std::fs::read_to_string(folder.path().join("shop.memory")).unwrap();
    assert!(first.starts_with("fence-memory-1 "), "{first}");
    assert!(!names(&look()).contains(&"history-lost"));
    assert_ne!(
        std::fs::read_to_string(folder.path().join("shop.memory")).unwrap(),
        first,
        "it remembers the newest"
    );

    // As a directory does that was copied before the newest memory was taken, and put back now.
    database
        .run_as_superuser("DELETE FROM fence.memory WHERE number = (SELECT max(number) FROM fence.memory)")
        .await;
    let said = look();
    let found = names(&said);
    assert!(
        found.contains(&"history-lost") && found.contains(&"history-in-doubt"),
        "{said}"
    );
    assert_eq!(
        database
            .code("SELECT fence.admit('shop.order', '42', 281474976710690, 'g1')")
            .await,
        "ZF008"
    );
    // What was remembered stays until somebody has acknowledged.
    assert!(names(&look()).contains(&"history-lost"));

    let other = Database::guarded().await;
    let said = other.fence_in(folder.path(), &["doctor", "--json", "--memory", "shop.memory"]);
    let said: Value = serde_json::from_str(&said.out).unwrap();
    assert!(names(&said).contains(&"memory-of-another"), "{said}");

    let bad = folder.path().join("bad.memory");
    std::fs::write(&bad, "nonsense").unwrap();
    assert_eq!(
        database
            .fence_in(folder.path(), &["doctor", "--memory", "bad.memory"])
            .code,
        2
    );
    assert_eq!(
        database
            .fence_in(folder.path(), &["doctor", "--memory", "."])
            .code,
        2
    );
}
