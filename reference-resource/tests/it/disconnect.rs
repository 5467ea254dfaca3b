//! Clients that go away.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::bench::{Bench, header, order, token, wait_for_lock};

/// More than the pool holds.
const CLIENTS: usize = 24;

#[tokio::test]
async fn a_client_that_goes_away_leaves_both_or_neither_and_a_pool_that_works() {
    let (bench, paydb) = Bench::ready().await;
    let body = order().to_string();
    for round in 0..CLIENTS {
        // Admission has passed; the write waits for the account's row.
        let mut other = bench.client().await;
        let locked = other.transaction().await.unwrap();
        locked
            .batch_execute("SELECT FROM account WHERE id = 'acct-2' FOR UPDATE")
            .await
            .unwrap();
        let request = format!(
            "POST /accounts/acct-1/transfers HTTP/1.1\r\nHost: x\r\nFencing-Token: {}\r\nIdempotency-Key: k{round}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            header(33),
            body.len()
        );
        let mut client = TcpStream::connect(&paydb.address).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        wait_for_lock(&bench).await;
        drop(client);
        locked.rollback().await.unwrap();
    }
    assert_eq!(paydb.transfer(34, "g34:1").await.status(), 201, "the pool works");
    let halves = "SELECT (SELECT count(*) FROM transfer) - (SELECT count(*) FROM completed_request WHERE status = 201)";
    assert_eq!(
        bench.ask(halves).await,
        "0",
        "a transfer and its completed key come together"
    );
    let made = bench.transfers().await;
    // Whatever is not there now never comes.
    assert_eq!(bench.mark("acct-1").await, token(34).to_string());
    assert_eq!(paydb.stop().await, pause_kit::reaper::Ended::Code(0));
    assert_eq!(bench.transfers().await, made);
}
