//! Stale holders, and writers who forgot the token.

use pause_kit::path::{Direction, Hold, Path, PathOptions};
use serde_json::json;

use super::bench::{Bench, Paydb, client, header, order, problem, token, transfer};

#[tokio::test]
async fn a_stale_transfer_is_412_and_nothing_is_written() {
    let (bench, paydb) = Bench::ready().await;
    assert_eq!(paydb.fence(34).await.status(), 204);
    let body = problem(paydb.transfer(33, "g33:1").await, 412, "fence:problem:stale").await;
    assert_eq!(body["presented"], token(33).to_string());
    assert!(
        !body.to_string().contains(&token(34).to_string()),
        "the mark is not echoed"
    );
    problem(paydb.fence(33).await, 412, "fence:problem:stale").await;
    assert_eq!(bench.transfers().await, 0);
    assert_eq!(bench.ask("SELECT count(*) FROM completed_request").await, "0");
    assert_eq!(
        paydb.transfer(34, "g34:1").await.status(),
        201,
        "the new holder goes on"
    );
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn a_mark_of_one_account_says_nothing_about_another() {
    let (bench, paydb) = Bench::ready().await;
    assert_eq!(paydb.fence(34).await.status(), 204);
    let request = client().post(paydb.url("/accounts/acct-2/transfers"));
    let request = request
        .header("Fencing-Token", header(5))
        .header("Idempotency-Key", "g5:1");
    let body = json!({"to": "acct-1", "amount": 10, "reference": "r"});
    assert_eq!(request.json(&body).send().await.unwrap().status(), 201);
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn each_kind_of_bad_token_has_its_own_answer() {
    let (bench, paydb) = Bench::ready().await;
    assert_eq!(paydb.fence(34).await.status(), 204);
    let send = async |value: Option<String>| {
        let mut request = client().post(paydb.url("/accounts/acct-1/transfers"));
        if let Some(value) = value {
            request = request.header("Fencing-Token", value);
        }
        let request = request.header("Idempotency-Key", "k").json(&order());
        request.send().await.unwrap()
    };
    problem(send(None).await, 428, "fence:problem:missing-token").await;
    let no_grant = format!("\"{}\"", token(40));
    problem(send(Some(no_grant)).await, 428, "fence:problem:missing-grant").await;
    problem(
        send(Some(token(40).to_string())).await,
        400,
        "fence:problem:malformed",
    )
    .await;
    let collision = format!("\"{}\";grant=\"another\"", token(34));
    problem(send(Some(collision)).await, 412, "fence:problem:collision").await;
    let epoch_2 = format!("\"{}\";grant=\"g1\"", (2_i64 << 48) + 1);
    let unknown = problem(send(Some(epoch_2)).await, 409, "fence:problem:unknown-epoch").await;
    let detail = unknown["detail"].as_str().unwrap();
    assert!(
        detail.ends_with("SELECT fence.register_epoch('entity', 2)"),
        "{detail}"
    );
    assert_eq!(bench.transfers().await, 0);
    assert_eq!(bench.mark("acct-1").await, token(34).to_string());
}

#[tokio::test]
async fn without_a_registered_epoch_the_answer_tells_the_command() {
    let bench = Bench::new().await;
    let paydb = bench.paydb().await;
    let unknown = problem(paydb.fence(1).await, 409, "fence:problem:unknown-epoch").await;
    let detail = unknown["detail"].as_str().unwrap().to_owned();
    let command = detail.split_once(": ").unwrap().1;
    assert_eq!(command, "SELECT fence.register_epoch('entity', 1)");
    bench.sql(command).await;
    assert_eq!(paydb.fence(1).await.status(), 204);
}

#[tokio::test]
async fn a_handler_that_was_paused_after_the_door_is_refused_in_its_transaction() {
    let (bench, fast) = Bench::ready().await;
    let (path, slow) = on_a_path(&bench).await;
    // The request of the old holder has passed the layer, and its transaction has begun, when the new one comes.
    let held = path.hold(
        Hold::new(Direction::ToResource)
            .on_every()
            .from_found(|bytes| find(bytes, b"fence.admit")),
    );
    let address = slow.address.clone();
    let late = tokio::spawn(async move { transfer(&address, 33, "g33:1", order()).await });
    held.engaged().await;
    assert_eq!(fast.transfer(34, "g34:1").await.status(), 201);
    held.release();
    problem(late.await.unwrap(), 412, "fence:problem:stale").await;
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn a_stopped_replica_refuses_what_waited_in_its_socket() {
    let (bench, first) = Bench::ready().await;
    let second = bench.paydb().await;
    let stopped = first.child.stop().await.unwrap();
    let address = first.address.clone();
    let late = tokio::spawn(async move { transfer(&address, 33, "g33:1", order()).await });
    assert_eq!(second.transfer(34, "g34:1").await.status(), 201);
    assert!(!late.is_finished());
    stopped.resume().await.unwrap();
    problem(late.await.unwrap(), 412, "fence:problem:stale").await;
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn an_open_transaction_of_another_holder_is_503_within_its_bound() {
    let (bench, paydb) = Bench::ready().await;
    let mut blocker = bench.client().await;
    let open = blocker.transaction().await.unwrap();
    let admit = format!(
        "SELECT fence.admit('paydb.account', 'acct-1', {}, 'g33')",
        token(33)
    );
    open.batch_execute(&admit).await.unwrap();
    let began = std::time::Instant::now();
    let blocked = paydb.transfer(34, "g34:1").await;
    assert!(began.elapsed() < std::time::Duration::from_secs(4));
    assert_eq!(blocked.headers()["retry-after"], "1");
    problem(blocked, 503, "fence:problem:blocked").await;
    open.rollback().await.unwrap();
    assert_eq!(
        paydb.transfer(34, "g34:1").await.status(),
        201,
        "the same request, sent again"
    );
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn a_database_that_is_gone_is_503() {
    let (bench, _) = Bench::ready().await;
    let (path, paydb) = on_a_path(&bench).await;
    drop(path);
    let gone = paydb.transfer(34, "g34:1").await;
    assert_eq!(gone.headers()["retry-after"], "1");
    problem(gone, 503, "fence:problem:unavailable").await;
    problem(paydb.get("/healthz").await, 503, "fence:problem:unavailable").await;
}

#[tokio::test]
async fn a_database_that_says_nothing_is_503_and_writes_nothing() {
    let (bench, _) = Bench::ready().await;
    let (path, paydb) = on_a_path(&bench).await;
    // Silent from the write on; and, for the second request, silent from the start.
    let held = path.hold(
        Hold::new(Direction::ToResource)
            .on_every()
            .from_found(|bytes| find(bytes, b"INSERT INTO transfer")),
    );
    let (address, began) = (paydb.address.clone(), std::time::Instant::now());
    let first = tokio::spawn(async move { transfer(&address, 33, "g33:1", order()).await });
    held.engaged().await;
    let silent = path.hold(Hold::new(Direction::ToHolder).on_every().from_now());
    let silenced = std::time::Instant::now();
    problem(
        paydb.transfer(33, "g33:2").await,
        503,
        "fence:problem:unavailable",
    )
    .await;
    problem(paydb.fence(33).await, 503, "fence:problem:unavailable").await;
    assert!(
        silenced.elapsed() < std::time::Duration::from_secs(13),
        "a connection is waited for 5 s"
    );
    problem(first.await.unwrap(), 503, "fence:problem:unavailable").await;
    assert!(began.elapsed() < std::time::Duration::from_secs(25));
    held.release();
    silent.release();
    assert_eq!(paydb.transfer(34, "g34:1").await.status(), 201);
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn the_database_itself_refuses_a_writer_that_did_not_admit() {
    let (bench, paydb) = Bench::ready().await;
    assert_eq!(paydb.transfer(5, "g5:1").await.status(), 201);
    let insert = "INSERT INTO transfer (from_account, to_account, amount, reference, idempotency_key)
        VALUES ('acct-1', 'acct-2', 1, 'r', 'k')";
    let admit_other = format!(
        "SELECT fence.admit('paydb.account', 'acct-2', {}, 'g9')",
        token(9)
    );
    for (statements, code) in [
        (insert.to_owned(), "ZF002"),
        (format!("BEGIN; {admit_other}; {insert}; COMMIT"), "ZF006"),
        ("TRUNCATE transfer".to_owned(), "ZF002"),
        (
            "UPDATE account SET balance = 5 WHERE id = 'acct-1'".to_owned(),
            "55000",
        ),
        ("UPDATE transfer SET amount = 5".to_owned(), "55000"),
        ("DELETE FROM transfer".to_owned(), "55000"),
    ] {
        let error = bench.try_sql(&statements).await.unwrap_err();
        assert_eq!(
            error.code().map(|code| code.code()),
            Some(code),
            "{statements}: {error:?}"
        );
    }
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn unguarded_routes_do_not_write() {
    let (bench, paydb) = Bench::ready().await;
    for path in [
        "/accounts/acct-1/transfers/",
        "/accounts/acct-1",
        "/transfers",
        "/accounts/",
    ] {
        problem(paydb.post(path, order()).await, 404, "fence:problem:no-rule").await;
    }
    assert_eq!(bench.transfers().await, 0);
}

/// A replica whose way to the database is the test's.
pub(crate) async fn on_a_path(bench: &Bench) -> (Path, Paydb) {
    let port = bench.services.postgres().port();
    let path = Path::open(([127, 0, 0, 1], port).into(), PathOptions::plain())
        .await
        .unwrap();
    let url = bench
        .database
        .as_str()
        .replace(&format!(":{port}/"), &format!(":{}/", path.address().port()));
    assert_ne!(url, bench.database.as_str());
    let paydb = bench.paydb_at(&url).await;
    (path, paydb)
}

pub(crate) fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
