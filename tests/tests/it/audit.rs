//! The audit program: what happened in a lock store, from its revision stream alone.

use std::process::Command;

use fence_core::{ClassName, Epoch, Key, TierName, Ttl};
use fence_lock::{Advance, EtcdStore, Keys, Session};
use pause_kit::services::for_tests;

fn audit(words: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_audit"))
        .args(words)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(ToOwned::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grants_releases_losses_and_epochs_are_told_apart_each_once_and_the_same_twice() {
    let services = for_tests().await;
    let url = services.etcd().endpoint();
    let prefix = services.fresh_prefix().trim_end_matches('/').to_owned();
    let class = ClassName::new("shop.order").unwrap();
    let key = |text: &str| Key::text(text).unwrap();
    let tier = TierName::new("entity").unwrap();
    let store = EtcdStore::connect(&[&url], &prefix, tier).await.unwrap();
    let before = store.revision().await.unwrap().as_u64();
    store.init(Epoch::FIRST, "it begins").await.unwrap();
    let session = Session::open(store.clone(), Ttl::from_secs(60).unwrap())
        .await
        .unwrap();

    let released = session.acquire(&class, &key("order-1")).await.unwrap();
    let mut expected = vec![
        "epoch 1 it begins".to_owned(),
        format!("granted order-1 {}", released.token().unwrap()),
        format!("released order-1 {}", released.grant_id()),
    ];
    let _ = released.release().await.unwrap();

    // Another session's lease is revoked under it, …
    let doomed = Session::open(store.clone(), Ttl::from_secs(60).unwrap())
        .await
        .unwrap();
    let lost = doomed.acquire(&class, &key("order-1")).await.unwrap();
    expected.push(format!("granted order-1 {}", lost.token().unwrap()));
    expected.push(format!("lost order-1 {}", lost.grant_id()));
    let _ = store
        .revoke_grant(&class, &key("order-1"), lost.grant_id())
        .await
        .unwrap();

    // … and two locks are taken in one step, in a new epoch, and freed by closing the session.
    let higher = Advance::new("it goes on").at_least(Epoch::new(2).unwrap());
    store.advance(&higher, &[]).await.unwrap();
    expected.push("epoch 2 it goes on".to_owned());
    let both = Keys::new([key("order-2"), key("order-3")]).unwrap();
    let both = session.acquire_all(&class, both).await.unwrap();
    let claims = both.claims().unwrap();
    for (name, claim) in ["order-2", "order-3"].iter().zip(&claims) {
        expected.push(format!("granted {name} {}", claim.token));
    }
    for name in ["order-2", "order-3"] {
        expected.push(format!("released {name} {}", both.grant_id()));
    }
    session.close().await.unwrap();
    let until = store.revision().await.unwrap().as_u64();

    let words = [
        &url,
        &prefix,
        "entity",
        &(before + 1).to_string(),
        &until.to_string(),
    ];
    let told = audit(&words);
    let short: Vec<String> = told
        .iter()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').skip(1).collect();
            match words[..] {
                [
                    what @ ("granted" | "released" | "lost"),
                    "shop.order",
                    key,
                    which,
                    ..,
                ] => {
                    format!("{what} {key} {which}")
                }
                _ => words.join(" "),
            }
        })
        .collect();
    assert_eq!(short, expected);
    assert_eq!(audit(&words), told, "replayed");
}
