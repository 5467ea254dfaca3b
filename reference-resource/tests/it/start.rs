//! Starting and stopping.

use pause_kit::reaper::Ended;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::bench::{Bench, SOON, order, transfer, wait_for_lock};

#[tokio::test]
async fn replicas_that_start_at_once_on_an_empty_database_all_serve() {
    let bench = Bench::new().await;
    let replicas = futures_util::future::join_all((0..8).map(|_| bench.paydb())).await;
    bench.sql("SELECT fence.register_epoch('entity', 1)").await;
    for (number, paydb) in (1..).zip(&replicas) {
        assert_eq!(paydb.fence(number).await.status(), 204);
    }
    assert_eq!(bench.ask("SELECT count(*) FROM paydb_migration").await, "4");
    let tiers = "SELECT string_agg(name || ' ' || tier, ', ' ORDER BY name) FROM fence.class";
    assert_eq!(
        bench.ask(tiers).await,
        "paydb.account entity, paydb.settlement coord"
    );
}

#[tokio::test]
async fn a_replica_waits_while_another_prepares_the_database() {
    let bench = Bench::new().await;
    // Another one, in the middle of it: the guard's schema is there, and nothing in it.
    let other = bench.client().await;
    other
        .batch_execute("SELECT pg_advisory_lock(7812340911); CREATE SCHEMA fence")
        .await
        .unwrap();
    let starting = bench.paydb();
    let done = async {
        wait_for_lock(&bench).await;
        let rest = "DROP SCHEMA fence; SELECT pg_advisory_unlock(7812340911)";
        other.batch_execute(rest).await.unwrap();
    };
    let (paydb, ()) = tokio::join!(starting, done);
    assert_eq!(paydb.get("/healthz").await.status(), 204);
}

#[tokio::test]
async fn wrong_usage_is_status_2_and_says_what_is_right() {
    let bench = Bench::new().await;
    for (args, words) in [
        (&[][..], "--database-url"),
        (
            &["--database-url", "mysql://x/y"],
            "write postgres://USER:PASSWORD@HOST:PORT/DATABASE",
        ),
        (
            &["--database-url", "postgres://x/y", "--listen", "nowhere"],
            "nowhere",
        ),
    ] {
        let child = bench.spawn_paydb(args).await;
        assert_eq!(child.exited().await.unwrap(), Ended::Code(2), "{args:?}");
        assert!(child.tail().contains(words), "{}", child.tail());
    }
}

#[tokio::test]
async fn a_database_that_cannot_be_reached_is_status_4() {
    let bench = Bench::new().await;
    let nobody = pause_kit::services::free_port().unwrap();
    let url = format!("postgres://x:y@127.0.0.1:{nobody}/z");
    let child = bench
        .spawn_paydb(&["--listen", "127.0.0.1:0", "--database-url", &url])
        .await;
    assert_eq!(child.exited().await.unwrap(), Ended::Code(4));
    let said = format!(
        "paydb: the database at 127.0.0.1:{nobody} cannot be reached; check that PostgreSQL runs there, and the host and \
         port: error communicating with database: Connection refused (os error 111)"
    );
    assert!(child.tail().trim_end().ends_with(&said), "{}", child.tail());
}

#[tokio::test]
async fn a_missing_database_is_said_once_with_what_makes_it() {
    let bench = Bench::new().await;
    let (server, _) = bench.database.as_str().rsplit_once('/').unwrap();
    let url = format!("{server}/nowhere");
    let child = bench
        .spawn_paydb(&["--listen", "127.0.0.1:0", "--database-url", &url])
        .await;
    assert_eq!(child.exited().await.unwrap(), Ended::Code(4));
    let said = child.tail();
    assert!(said.contains("createdb nowhere"), "{said}");
    assert_eq!(
        said.matches(r#"database "nowhere" does not exist"#).count(),
        1,
        "{said}"
    );
}

#[tokio::test]
async fn a_server_that_never_answers_is_said_to_be_silent() {
    let bench = Bench::new().await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://x:y@{}/z", silent.local_addr().unwrap());
    let child = bench
        .spawn_paydb(&["--listen", "127.0.0.1:0", "--database-url", &url])
        .await;
    assert_eq!(child.exited().await.unwrap(), Ended::Code(4));
    assert!(child.tail().contains("no answer within 5s"), "{}", child.tail());
}

#[tokio::test]
async fn a_taken_port_is_status_1() {
    let bench = Bench::new().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let args = ["--listen", &address, "--database-url", bench.database.as_str()];
    let child = bench.spawn_paydb(&args).await;
    assert_eq!(child.exited().await.unwrap(), Ended::Code(1));
    assert!(
        child.tail().contains(&format!("cannot listen on {address}")),
        "{}",
        child.tail()
    );
}

#[tokio::test]
async fn a_stop_waits_for_no_request_that_has_not_come() {
    let (_bench, paydb) = Bench::ready().await;
    let mut clients = Vec::new();
    for begun in [
        "",
        "POST /acc",
        "POST /accounts HTTP/1.1\r\nHost: x\r\n",
        "PRI * HTTP",
    ] {
        let mut client = tokio::net::TcpStream::connect(&paydb.address).await.unwrap();
        client.write_all(begun.as_bytes()).await.unwrap();
        clients.push(client);
    }
    // One that was answered, so that the others have been seen, and that has begun again.
    let mut client = tokio::net::TcpStream::connect(&paydb.address).await.unwrap();
    let first = b"GET /accounts/acct-1 HTTP/1.1\r\nHost: x\r\n\r\n";
    client.write_all(first).await.unwrap();
    assert!(client.read(&mut [0; 1024]).await.unwrap() > 0);
    client.write_all(b"GET /acc").await.unwrap();
    assert_eq!(paydb.stop().await, Ended::Code(0));
}

#[tokio::test]
async fn a_stop_lets_the_requests_in_flight_finish() {
    let (bench, paydb) = Bench::ready().await;
    let mut other = bench.client().await;
    let locked = other.transaction().await.unwrap();
    locked
        .batch_execute("SELECT FROM account WHERE id = 'acct-2' FOR UPDATE")
        .await
        .unwrap();
    let address = paydb.address.clone();
    let in_flight = tokio::spawn(async move { transfer(&address, 5, "g5:1", order()).await });
    wait_for_lock(&bench).await;
    let began = std::time::Instant::now();
    paydb.child.terminate().await.unwrap();
    // No new connection is taken once it stops.
    while tokio::net::TcpStream::connect(&paydb.address).await.is_ok() {
        assert!(began.elapsed() < SOON, "it still listens");
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    locked.rollback().await.unwrap();
    assert_eq!(in_flight.await.unwrap().status(), 201);
    assert_eq!(paydb.child.exited().await.unwrap(), Ended::Code(0));
    assert_eq!(bench.transfers().await, 1);
}
