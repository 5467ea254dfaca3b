//! A paused holder, a held request and a takeover, as docs/testing.md shows them.

use std::path::Path;

use pause_kit::path::{Direction, Hold, Path as Way, PathOptions};
use pause_kit::reaper::Ended;
use pause_kit::services::{Child, DatabaseUrl, ProcessSpec, for_tests, locate};

use crate::readme::blocks_of;
use crate::source::read;

// The page shows what follows.

/// The holder under test, any process: it says that it holds the lock, waits for a file, and writes with its token, 33.
const HOLDER: &str = r#"echo holds; until [ -e "$GO" ]; do sleep 0.01; done
    exec psql "$DATABASE_URL" --no-psqlrc --command "BEGIN; SELECT fence.admit('shop.order', '42', 33);
    UPDATE orders SET state = 'cancelled' WHERE id = 42; COMMIT""#;

#[tokio::test]
async fn a_holder_that_was_paused_writes_nothing_after_a_takeover() {
    let (database, client) = guarded_orders().await;
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let holder = hold(&database, &go).await;

    // Every thread of it, and of its children, stands: it cannot have written yet, and does not while this lives.
    let stopped = holder.stop().await.unwrap();
    std::fs::write(&go, "").unwrap();
    take_over(&client).await;
    let pause = stopped.resume().await.unwrap();
    assert!(
        !pause.moved(),
        "something ran while it should have stood: nothing is shown"
    );

    refused(&holder, &client).await;
}

#[tokio::test]
async fn a_request_that_was_held_on_its_way_writes_nothing_after_a_takeover() {
    let (database, client) = guarded_orders().await;
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    // The holder's connection goes through here, and stands at the bytes that are looked for.
    let way = Way::open(
        ([127, 0, 0, 1], for_tests().await.postgres().port()).into(),
        PathOptions::postgres(),
    )
    .await
    .unwrap();
    let admission = |sent: &[u8]| sent.windows(11).position(|bytes| bytes == b"fence.admit");
    let held = way.hold(Hold::new(Direction::ToResource).from_found(admission));
    let holder = hold(&database.through(way.address().port()), &go).await;

    std::fs::write(&go, "").unwrap();
    held.engaged().await;
    take_over(&client).await;
    held.release();

    refused(&holder, &client).await;
}

/// Starts the holder, which is gone when the test is.
async fn hold(database: &DatabaseUrl, go: &Path) -> Child {
    let spec = ProcessSpec::new("holder", "/bin/sh").args(["-c", HOLDER]);
    let programs = locate::postgres().unwrap();
    let spec = spec
        .env("DATABASE_URL", database.as_str())
        .env("GO", &go.display().to_string())
        .env("PATH", &format!("{}:/usr/bin:/bin", programs.display()));
    let holder = for_tests().await.services().spawn(spec).await.unwrap();
    holder
        .wait_line("holds", std::time::Duration::from_secs(30))
        .await
        .unwrap();
    holder
}

/// The next holder, with a larger token: fence, then read, then write.
async fn take_over(client: &tokio_postgres::Client) {
    let raise = "SELECT fence.raise_mark('shop.order', '42', 34)";
    let write = "BEGIN; SELECT fence.admit('shop.order', '42', 34); UPDATE orders SET state = 'paid' WHERE id = 42; COMMIT";
    for sql in [raise, write] {
        client.batch_execute(sql).await.unwrap();
    }
}

async fn refused(holder: &Child, client: &tokio_postgres::Client) {
    assert_eq!(holder.exited().await.unwrap(), Ended::Code(1));
    // The reason, exactly: any other error shows nothing.
    let said = std::fs::read_to_string(holder.stderr()).unwrap();
    assert!(said.contains("presented 33, seen 34"), "{said}");
    let row = client
        .query_one("SELECT state FROM orders WHERE id = 42", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, String>(0), "paid");
}

/// A table with a guard, in a database of its own.
async fn guarded_orders() -> (DatabaseUrl, tokio_postgres::Client) {
    let database = for_tests().await.fresh_database().await;
    let connected = tokio_postgres::connect(database.as_str(), tokio_postgres::NoTls).await;
    let (client, connection) = connected.unwrap();
    tokio::spawn(connection);
    fence_pg::tokio_postgres::install(&client).await.unwrap();
    let table = "CREATE TABLE orders (id bigint PRIMARY KEY, state text NOT NULL);
        INSERT INTO orders VALUES (42, 'new');
        SELECT fence.declare('shop.order');
        SELECT fence.protect('orders', 'shop.order', 'id');";
    client.batch_execute(table).await.unwrap();
    (database, client)
}

// The page ends here.

#[test]
fn the_page_shows_this_test() {
    let source = read(Path::new("tests/tests/it/testing.rs"));
    let (_, shown) = source.split_once("// The page shows what follows.\n").unwrap();
    let (shown, _) = shown.split_once("// The page ends here.\n").unwrap();
    let [uses, tests] = &blocks_of("docs/testing.md", "rust")[..] else {
        panic!("docs/testing.md shows what is used, and the tests")
    };
    assert_eq!(tests.trim(), shown.trim());
    for line in uses.lines().filter(|line| line.starts_with("use pause_kit::")) {
        assert!(source.contains(line), "{line}");
    }
}
