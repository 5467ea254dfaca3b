//! Jobs that are claimed, rescued and completed, and batches of which some rows are another's.

use tokio_postgres::Client;

use crate::column::accounts;
use crate::enforce::in_transaction;
use crate::support::{Database, code, wait_for_lock_waiters};

/// Jobs 1, 2 and 3, each running under its own claim: tokens 33, 31 and 32.
async fn jobs() -> (Database, Client) {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL, result text, fence bigint NOT NULL DEFAULT 0);
             SELECT fence.protect_column('job', 'shop.job', 'id', 'fence');
             INSERT INTO job VALUES (1, 'running', NULL, 33), (2, 'running', NULL, 31), (3, 'running', NULL, 32);",
        )
        .await
        .unwrap();
    (database, client)
}

fn claim(job: i64, token: i64) -> String {
    format!(
        "UPDATE job SET state = 'running', fence = {token} WHERE id = {job} AND fence <= {token} AND state = 'queued'"
    )
}

fn complete(job: i64, token: i64, result: &str) -> String {
    format!(
        "UPDATE job SET state = 'done', result = '{result}', fence = {token}
         WHERE id = {job} AND fence <= {token} AND state = 'running'"
    )
}

/// A rescuer holds the job's lock too, by a newer token, and queues the job only while it stands as the rescuer read it.
fn rescue(job: i64, token: i64, read: i64) -> String {
    format!(
        "UPDATE job SET state = 'queued', fence = {token}
         WHERE id = {job} AND fence <= {token} AND state = 'running' AND fence = {read}"
    )
}

async fn touched(client: &Client, sql: &str) -> u64 {
    client.execute(sql, &[]).await.unwrap()
}

async fn job(database: &Database, id: i64) -> String {
    let found = format!("SELECT concat_ws(' ', state, result, fence) FROM job WHERE id = {id}");
    database.text(&found).await
}

async fn explain(client: &Client, id: i64, token: i64) -> Option<String> {
    let explain = format!("SELECT fence.explain_column('job', 'id', 'fence', '{id}', {token})");
    in_transaction(client, &[&explain]).await.err()
}

#[tokio::test]
async fn a_rescuer_does_not_reopen_a_job_that_was_completed_since_it_looked() {
    let (database, client) = jobs().await;
    assert_eq!(touched(&client, &complete(1, 33, "paid")).await, 1);
    assert_eq!(touched(&client, &rescue(1, 34, 33)).await, 0);
    // Not stale either: there is simply nothing to rescue.
    assert_eq!(explain(&client, 1, 34).await, None);
    assert_eq!(job(&database, 1).await, "done paid 33");

    // The same while the completion is still open, and the rescuer waits for it.
    client
        .batch_execute(&format!("BEGIN; {}", complete(2, 31, "sent")))
        .await
        .unwrap();
    let rescuer = database.client().await;
    let commit = async {
        wait_for_lock_waiters(&database, 1).await;
        client.batch_execute("COMMIT").await.unwrap();
    };
    let rescue = rescue(2, 34, 31);
    let (rows, ()) = tokio::join!(touched(&rescuer, &rescue), commit);
    assert_eq!(rows, 0);
    assert_eq!(job(&database, 2).await, "done sent 31");
}

#[tokio::test]
async fn a_revived_worker_does_not_complete_a_job_that_was_rescued_or_claimed_since() {
    let (database, client) = jobs().await;
    assert_eq!(touched(&client, &rescue(1, 34, 33)).await, 1);
    // Rescued, and nobody's yet.
    assert_eq!(touched(&client, &complete(1, 33, "late")).await, 0);
    assert_eq!(explain(&client, 1, 33).await.as_deref(), Some("ZF001"));
    // Claimed by the next worker.
    assert_eq!(touched(&client, &claim(1, 35)).await, 1);
    assert_eq!(touched(&client, &complete(1, 33, "late")).await, 0);
    assert_eq!(explain(&client, 1, 33).await.as_deref(), Some("ZF001"));
    // Completed by it.
    assert_eq!(touched(&client, &complete(1, 35, "paid")).await, 1);
    assert_eq!(touched(&client, &complete(1, 33, "late")).await, 0);
    assert_eq!(job(&database, 1).await, "done paid 35");
}

#[tokio::test]
async fn the_other_jobs_of_a_rescuers_batch_go_on() {
    let (database, client) = jobs().await;
    assert_eq!(touched(&client, &complete(2, 31, "sent")).await, 1);
    let batch = "UPDATE job SET state = 'queued', fence = 34 FROM (VALUES (1, 33), (2, 31), (3, 32)) AS seen (id, fence)
                 WHERE job.id = seen.id AND job.fence = seen.fence AND job.fence <= 34 AND state = 'running'";
    assert_eq!(touched(&client, batch).await, 2);
    let states = database
        .text("SELECT string_agg(state, ' ' ORDER BY id) FROM job")
        .await;
    assert_eq!(states, "queued done queued");
}

#[tokio::test]
async fn a_rescuer_that_changes_a_job_by_its_number_alone_is_refused_where_the_mark_guard_enforces() {
    let database = Database::guarded().await;
    database
        .run(
            "CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL);
             SELECT fence.declare('shop.job');
             SELECT fence.protect('job', 'shop.job', 'id');",
        )
        .await;
    let client = database.client().await;
    let admit = |token: i64| format!("SELECT fence.admit('shop.job', '1', {token})");
    let insert = "INSERT INTO job VALUES (1, 'running')";
    in_transaction(&client, &[&admit(33), insert]).await.unwrap();
    let reopen = "UPDATE job SET state = 'queued' WHERE id = 1";
    assert_eq!(code(&client, reopen).await, "ZF002");
    // It takes the lock, and looks again.
    let looks = "UPDATE job SET state = 'queued' WHERE id = 1 AND state = 'running'";
    in_transaction(&client, &[&admit(34), looks]).await.unwrap();
    let done = "UPDATE job SET state = 'done' WHERE id = 1 AND state = 'running'";
    let late = in_transaction(&client, &[&admit(33), done]).await;
    assert_eq!(late, Err("ZF001".to_owned()));
    assert_eq!(database.text("SELECT state FROM job").await, "queued");
}

/// A batch under the column guard, whole or not at all: the UPDATE, then why each key that it was to touch was not.
fn batch(keys: &[&str], token: i64) -> [String; 2] {
    let keys = keys.join(",");
    [
        format!(
            "UPDATE account SET balance = 0, fence = {token} WHERE id = ANY ('{{{keys}}}') AND fence <= {token}"
        ),
        format!(
            "SELECT fence.explain_column('account', 'id', 'fence', k, {token})
             FROM (SELECT DISTINCT k FROM unnest('{{{keys}}}'::text[]) k) AS keys"
        ),
    ]
}

#[tokio::test]
async fn a_batch_with_one_stale_row_changes_none_and_names_it() {
    let database = accounts().await;
    database
        .run("INSERT INTO account VALUES (3, 100, 30), (4, 100, 30)")
        .await;
    let client = database.client().await;
    // Account 2 bears 35, the others 30.
    let [update, explain] = batch(&["1", "2", "3"], 33);
    client.batch_execute("BEGIN").await.unwrap();
    assert_eq!(touched(&client, &update).await, 2);
    let stale = client.batch_execute(&explain).await.unwrap_err();
    let stale = stale.as_db_error().unwrap();
    assert_eq!(stale.code().code(), "ZF001");
    assert_eq!(stale.detail(), Some("presented 33, seen 35"));
    assert!(stale.message().contains("key '2'"), "{}", stale.message());
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(
        database.number("SELECT sum(balance)::bigint FROM account").await,
        400
    );

    // A key twice is one row; none at all is a batch of nothing.
    for (keys, rows) in [(vec!["1", "3", "1"], 2), (vec![], 0)] {
        let [update, explain] = batch(&keys, 33);
        client.batch_execute("BEGIN").await.unwrap();
        assert_eq!(touched(&client, &update).await, rows);
        client.batch_execute(&format!("{explain}; COMMIT")).await.unwrap();
    }
    assert_eq!(
        database.number("SELECT sum(balance)::bigint FROM account").await,
        200
    );
}
