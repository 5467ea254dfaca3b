//! The guard replaced by one that admits everything: what a proof's other half runs on.

use super::bench::{Bench, token};

const DEFEAT: &str = include_str!("../../defeat/admit_everything.sql");

#[tokio::test]
async fn defeated_the_late_write_lands_and_the_marks_are_recorded_as_ever() {
    let (bench, paydb) = Bench::ready().await;
    bench.sql(DEFEAT).await;
    assert_eq!(paydb.fence(34).await.status(), 204);
    assert_eq!(paydb.transfer(34, "g34:1").await.status(), 201);
    assert_eq!(paydb.transfer(33, "g33:1").await.status(), 201, "the late write");
    assert_eq!(bench.transfers().await, 2);
    let mark = "SELECT token || ' ' || grant_id FROM fence.high_water WHERE key = 'acct-1'";
    assert_eq!(
        bench.ask(mark).await,
        format!("{} g34", token(34)),
        "a mark never falls"
    );
    // Nothing is refused: neither another grant's token nor one of an epoch that nobody registered.
    let beyond = format!(
        "SELECT fence.admit('paydb.account', 'acct-1', {}, 'g1')",
        (9_i64 << 48) + 1
    );
    bench.sql(&beyond).await;
    bench.sql(&beyond.replace("'g1'", "'g2'")).await;
    bench.sql("SELECT fence.raise_mark('no.class', 'k', NULL)").await;
}

#[tokio::test]
async fn a_replica_that_starts_later_leaves_the_guard_as_it_finds_it() {
    let (bench, paydb) = Bench::ready().await;
    bench.sql(DEFEAT).await;
    // An upgrade that the guard's ledger calls for is its owner's to make.
    bench
        .sql("DELETE FROM fence.migration WHERE name = (SELECT max(name) FROM fence.migration)")
        .await;
    bench
        .sql("DELETE FROM fence.migration WHERE name LIKE '%admit%'")
        .await;
    let later = bench.paydb().await;
    assert_eq!(later.fence(34).await.status(), 204);
    assert_eq!(later.transfer(33, "g33:1").await.status(), 201);
    assert_eq!(paydb.transfer(32, "g32:1").await.status(), 201);
}
