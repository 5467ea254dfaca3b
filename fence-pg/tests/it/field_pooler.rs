//! Clients that share one connection of the server, behind a pooler that gives it to each for a transaction.

use pause_kit::services::for_tests;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::support::{Database, admit, client, code};

const INSERT: &str = "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 7)";

async fn shown(client: &Client, sql: &str) -> String {
    let answers = client.simple_query(sql).await.unwrap();
    let mut rows = answers.iter().filter_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    rows.next().unwrap()
}

/// What an admission sets for its own transaction.
async fn bounds(client: &Client) -> Vec<String> {
    let mut bounds = Vec::new();
    for setting in [
        "lock_timeout",
        "idle_in_transaction_session_timeout",
        "synchronous_commit",
    ] {
        bounds.push(shown(client, &format!("SHOW {setting}")).await);
    }
    bounds
}

#[tokio::test]
async fn a_client_that_gets_its_neighbours_connection_gets_nothing_of_its_admission() {
    let database = Database::guarded().await;
    let services = for_tests().await;
    let pooler = services
        .services()
        .start_pgbouncer(services.postgres(), 1)
        .await
        .unwrap();
    let url = database.url.through(pooler.port());
    let (holder, forgetful) = (client(&url).await, client(&url).await);
    let backend = "SELECT pg_backend_pid()";
    assert_eq!(shown(&holder, backend).await, shown(&forgetful, backend).await);
    let usual = bounds(&forgetful).await;

    // After the holder's transaction, and queued behind it while it is open.
    let whole = format!("BEGIN; {} {INSERT}; COMMIT", admit("acct-1", 34));
    holder.batch_execute(&whole).await.unwrap();
    assert_eq!(code(&forgetful, INSERT).await, "ZF002");
    holder
        .batch_execute(&format!("BEGIN; {}", admit("acct-1", 34)))
        .await
        .unwrap();
    let commit = async {
        holder.batch_execute(INSERT).await.unwrap();
        holder.batch_execute("COMMIT").await.unwrap();
    };
    let (refused, ()) = tokio::join!(code(&forgetful, INSERT), commit);
    assert_eq!(refused, "ZF002");
    assert_eq!(bounds(&forgetful).await, usual);

    // What one sets for its session, the other finds in its own.
    holder
        .batch_execute(
            "SET fence.admitted = 'paydb.account'; SET fence.token = '34'; SET fence.waited_ms = '1999'",
        )
        .await
        .unwrap();
    assert_eq!(shown(&forgetful, "SHOW fence.token").await, "34");
    let refused = code(&forgetful, INSERT).await;
    assert!(refused == "ZF002" || refused == "ZF006", "{refused}");
    assert_eq!(code(&forgetful, &admit("acct-1", 33)).await, "ZF001");

    // The holder goes away in the middle: its admission was none, and the next one gets a connection without it.
    holder
        .batch_execute(&format!("BEGIN; {} {INSERT}", admit("acct-1", 36)))
        .await
        .unwrap();
    drop(holder);
    assert_eq!(code(&forgetful, INSERT).await, "ZF002");
    let older = format!("BEGIN; {} {INSERT}; COMMIT", admit("acct-1", 35));
    forgetful.batch_execute(&older).await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM transfer").await, 3);
}
