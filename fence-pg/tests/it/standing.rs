//! A stop or a raised floor, and admissions that began before it.

use tokio_postgres::Client;

use crate::support::{CLASS, Database, admit, code, token, wait_for_lock_waiters};

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

fn raise_floor(revision: i64) -> String {
    format!("SELECT fence.raise_floor('{CLASS}', {})", token(revision))
}

async fn begin(client: &Client, level: &str) {
    let begin = format!("BEGIN ISOLATION LEVEL {level}");
    client.batch_execute(&begin).await.unwrap();
}

#[tokio::test]
async fn a_floor_or_a_stop_that_comes_while_an_admission_waits_is_seen_by_it() {
    for level in LEVELS {
        for (change, at_read_committed) in [
            (raise_floor(90), "ZF001"),
            ("SELECT fence.stop('a restore is under way')".to_owned(), "ZF008"),
        ] {
            let database = Database::guarded().await;
            database.run(&admit("acct-1", 33)).await;
            let (first, second) = (database.client().await, database.client().await);
            begin(&first, "READ COMMITTED").await;
            first.batch_execute(&admit("acct-1", 34)).await.unwrap();
            begin(&second, level).await;
            let waiting = tokio::spawn(async move { code(&second, &admit("acct-1", 35)).await });
            wait_for_lock_waiters(&database, 1).await;
            database.run(&change).await;
            first.batch_execute("ROLLBACK").await.unwrap();
            let expected = if level == "READ COMMITTED" {
                at_read_committed
            } else {
                "40001"
            };
            assert_eq!(waiting.await.unwrap(), expected, "{level}, {change}");
        }
    }
}

#[tokio::test]
async fn a_snapshot_from_before_a_floor_or_a_stop_does_not_pass_it() {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        for (change, again) in [
            (raise_floor(90), "ZF001"),
            ("SELECT fence.stop('a restore is under way')".to_owned(), "ZF008"),
        ] {
            let database = Database::guarded().await;
            database.run(&admit("acct-1", 33)).await;
            for key in ["acct-1", "acct-2"] {
                let old = database.client().await;
                begin(&old, level).await;
                old.batch_execute("SELECT count(*) FROM transfer").await.unwrap();
                database.run(&change).await;
                assert_eq!(code(&old, &admit(key, 33)).await, "40001", "{level}, {change}");
                old.batch_execute("ROLLBACK").await.unwrap();
                begin(&old, level).await;
                assert_eq!(code(&old, &admit(key, 33)).await, again, "{level}, {change}");
            }
        }
    }
}

#[tokio::test]
async fn a_floor_that_was_not_raised_after_all_keeps_nobody_out() {
    let database = Database::guarded().await;
    database.run(&admit("acct-1", 33)).await;
    let (operator, late) = (database.client().await, database.client().await);
    begin(&operator, "READ COMMITTED").await;
    operator.batch_execute(&raise_floor(90)).await.unwrap();
    begin(&late, "REPEATABLE READ").await;
    assert_eq!(code(&late, &admit("acct-1", 33)).await, "40001");
    late.batch_execute("ROLLBACK").await.unwrap();
    operator.batch_execute("ROLLBACK").await.unwrap();
    begin(&late, "REPEATABLE READ").await;
    late.batch_execute(&admit("acct-1", 33)).await.unwrap();
    late.batch_execute("COMMIT").await.unwrap();
}
