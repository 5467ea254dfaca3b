//! Applying the folder again beside transactions that are under way.

use std::time::Duration;

use fence_pg::MIGRATIONS;

use crate::support::{CLASS, Database, admit, failure};

#[tokio::test]
async fn applying_every_file_again_makes_no_admission_wait() {
    let database = Database::guarded().await;
    database
        .run(
            "CREATE TABLE seen (id text NOT NULL); SELECT fence.protect('seen', 'paydb.seen', 'id', mode => 'observe');
             CREATE TABLE past (id text NOT NULL); SELECT fence.protect('past', 'paydb.past', 'id')",
        )
        .await;
    // One that has admitted, was let through, and has stepped past the guard: it holds what a writer may hold.
    let writer = database.client().await;
    let begin = format!(
        "BEGIN; {} INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5); INSERT INTO seen VALUES ('a');
         SELECT fence.danger_bypass('paydb.past', 'a test'); INSERT INTO past VALUES ('a')",
        admit("acct-1", 10)
    );
    writer.batch_execute(&begin).await.unwrap();
    let installer = database.client().await;
    let other = database.client().await;
    other.batch_execute("SET lock_timeout = '200ms'").await.unwrap();
    for (n, migration) in MIGRATIONS.iter().enumerate() {
        let applied = installer.batch_execute(migration.sql);
        tokio::time::timeout(Duration::from_millis(900), applied)
            .await
            .unwrap_or_else(|_| panic!("{} waits for the open transaction", migration.name))
            .unwrap_or_else(|error| panic!("{}: {error:?}", migration.name));
        other
            .batch_execute(&admit("acct-2", 10 + i64::try_from(n).unwrap()))
            .await
            .unwrap_or_else(|error| panic!("after {}: {error:?}", migration.name));
    }
    writer.batch_execute("COMMIT").await.unwrap();
    let marks = format!("SELECT count(*) FROM fence.high_water WHERE class = '{CLASS}'");
    assert_eq!(database.number(&marks).await, 2);
}

#[tokio::test]
async fn a_change_that_an_open_transaction_is_in_the_way_of_waits_a_second_and_can_be_tried_again() {
    let database = Database::guarded().await;
    database
        .run("ALTER TABLE fence.high_water ENABLE TRIGGER keep_mark; DROP TRIGGER stamp_mark ON fence.high_water")
        .await;
    let writer = database.client().await;
    writer
        .batch_execute(&format!("BEGIN; {}", admit("acct-1", 10)))
        .await
        .unwrap();
    let installer = database.client().await;
    let mark = MIGRATIONS.iter().find(|one| one.name == "0003_mark.sql").unwrap();
    let began = std::time::Instant::now();
    let blocked = failure(&installer, mark.sql).await;
    assert_eq!(blocked.code().code(), "55P03");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    installer.batch_execute("ROLLBACK").await.unwrap();
    writer.batch_execute("COMMIT").await.unwrap();
    installer.batch_execute(mark.sql).await.unwrap();
    let triggers = "SELECT string_agg(concat_ws(' ', tgname, tgenabled), ', ' ORDER BY tgname)
                    FROM pg_trigger WHERE tgrelid = 'fence.high_water'::regclass AND NOT tgisinternal";
    assert_eq!(
        database.text(triggers).await,
        "keep_mark A, keep_marks A, stamp_first_mark A, stamp_mark A"
    );
}
