//! Futures that are given up at each of their awaits, and connections that are lost at each message.

use std::error::Error;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use fence_core::{Claim, Effect, GrantId, MissingPart, Refusal, Token};
use fence_pg::conformance::{Driver, End, Sqlx, TokioPostgres};
use fence_pg::{ColumnGuard, GuardError, Isolation, Refused};

use crate::relay::{CutAt, Relay};
use tokio_postgres::Client;

use crate::support::{Database, claim, token};

/// What is done under the guard. Each writes one line that carries its revision.
#[derive(Clone, Copy, Debug)]
enum Work {
    Transaction,
    Many,
    AtOnce,
    Raise,
    Column,
    Batch,
}

const WORK: [Work; 6] = [
    Work::Transaction,
    Work::Many,
    Work::AtOnce,
    Work::Raise,
    Work::Column,
    Work::Batch,
];
const LEVEL: Isolation = Isolation::ReadCommitted;

impl Work {
    async fn run<D: Driver>(self, driver: &mut D, revision: i64) -> Result<(), GuardError> {
        let claims = [claim("acct-1", revision), claim("acct-2", revision)];
        let number = token(revision).as_i64();
        let insert = format!("INSERT INTO transfer (from_account, amount) VALUES ('acct-1', {number})");
        let end = End::Commit(Effect::Applied);
        match self {
            Work::Transaction => {
                let receipts = driver.write(LEVEL, &claims[..1], &[&insert], end).await?;
                assert_eq!(receipts.len(), 1);
            }
            Work::Many => {
                let receipts = driver.write(LEVEL, &claims, &[&insert], end).await?;
                assert_eq!(receipts.len(), 2);
            }
            Work::AtOnce => {
                let written = driver.write_at_once(LEVEL, &claims[0], &insert).await?;
                assert_eq!(written.rows_affected, 1);
            }
            Work::Raise => drop(driver.raise_mark(&claims[0]).await?),
            Work::Column => {
                let row = column_claim("1", revision);
                drop(
                    driver
                        .update(LEVEL, &guard(), &row, "amount = $3", number)
                        .await?,
                );
            }
            Work::Batch => {
                let rows = [column_claim("1", revision), column_claim("2", revision)];
                let receipts = driver
                    .update_all(LEVEL, &guard(), &rows, "amount = $3", number)
                    .await?;
                assert_eq!(receipts.len(), 2);
            }
        }
        Ok(())
    }

    /// Whether the line of this revision is there.
    async fn landed(self, watch: &Client, revision: i64) -> bool {
        let number = token(revision).as_i64();
        let sql = match self {
            Work::Transaction | Work::Many | Work::AtOnce => {
                format!("SELECT count(*) FROM transfer WHERE amount = {number}")
            }
            Work::Raise => format!("SELECT count(*) FROM fence.high_water WHERE token = {number}"),
            Work::Column | Work::Batch => {
                format!("SELECT count(*) FROM settlement WHERE amount = {number} AND id = '1'")
            }
        };
        match watch.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0) {
            0 => false,
            1 => true,
            lines => panic!("{self:?} of revision {revision} stands there {lines} times"),
        }
    }
}

fn guard() -> ColumnGuard {
    ColumnGuard::new("settlement", "id", "fence").unwrap()
}

fn column_claim(key: &str, revision: i64) -> Claim {
    Claim {
        token: Token::new(revision).unwrap(),
        grant_id: None,
        ..claim(key, 1)
    }
}

async fn prepared() -> Database {
    let database = Database::guarded().await;
    database
        .run(
            "CREATE TABLE settlement (id text PRIMARY KEY, amount bigint, fence bigint NOT NULL DEFAULT 0);
             SELECT fence.protect_column('settlement', 'paydb.settlement', 'id', 'fence');
             INSERT INTO settlement VALUES ('1'), ('2');",
        )
        .await;
    database
}

/// A connection to look with, and the next holder's.
async fn watchers(database: &Database) -> (Client, TokioPostgres) {
    let next = TokioPostgres::connect(database.url.as_str()).await.unwrap();
    (database.client().await, next)
}

/// Nothing is open on the driver's connection, and it holds no admission.
async fn is_clean<D: Driver>(driver: &mut D, context: &str) {
    // Two statements of one transaction would tell the same time.
    let began = "SELECT (extract(epoch FROM transaction_timestamp()) * 1000000)::bigint";
    let first = driver.number(began).await.unwrap();
    let second = driver.number(began).await.unwrap();
    assert_ne!(first, second, "{context}: a transaction was left open");
    for account in ["acct-1", "acct-2"] {
        let forgotten = driver
            .run(&format!(
                "INSERT INTO transfer (from_account, amount) VALUES ('{account}', 1)"
            ))
            .await;
        let missing = Refused::Claim(Refusal::Missing(MissingPart::Token));
        assert!(
            matches!(&forgotten, Err(GuardError::Refused(refused)) if *refused == missing),
            "{context}: {forgotten:?}"
        );
    }
}

/// The next holder is not kept waiting by what was given up. It waits for its end, where the server was still at it.
async fn is_free(next: &mut TokioPostgres, revision: i64, context: &str) {
    let newer = |key: &str| Claim {
        grant_id: Some(GrantId::new("next").unwrap()),
        ..claim(key, revision)
    };
    let end = End::Commit(Effect::NoWrite("raised the marks".into()));
    let raised = next
        .write(LEVEL, &[newer("acct-1"), newer("acct-2")], &[], end)
        .await;
    assert!(raised.is_ok(), "{context}: {raised:?}");
    let rows = [column_claim("1", revision), column_claim("2", revision)];
    let updated = next.update_all(LEVEL, &guard(), &rows, "amount = $3", 0).await;
    assert!(updated.is_ok(), "{context}: {updated:?}");
}

/// Polls a future so many times, and drops it then.
async fn poll_times<T>(future: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut future = pin!(future);
    let mut polled = 0;
    std::future::poll_fn(|context| {
        if polled == times {
            return Poll::Ready(None);
        }
        polled += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            // Given up right after this poll, without waiting for another event.
            Poll::Pending if polled == times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

async fn given_up_at_each_await<D: Driver, E: Error>(connect: impl AsyncFn(String) -> Result<D, E>) {
    let database = prepared().await;
    let (watch, mut next) = watchers(&database).await;
    let mut revision = 100;
    for work in WORK {
        let way = Relay::with(Duration::from_millis(5)).await;
        let mut driver = connect(way.url(&database)).await.unwrap();
        for times in 0.. {
            revision += 10;
            let done = poll_times(work.run(&mut driver, revision), times).await;
            let context = format!("{work:?} given up after {times} polls");
            let finished = match done {
                Some(Ok(())) => true,
                Some(Err(error)) => panic!("{context}: {error:?}"),
                None => false,
            };
            is_clean(&mut driver, &context).await;
            if finished {
                assert!(work.landed(&watch, revision).await, "{context}");
                assert!(times > 1, "{context}: there was nothing to give up");
                break;
            }
            is_free(&mut next, revision + 1, &context).await;
        }
    }
}

#[tokio::test]
async fn a_future_of_sqlx_may_be_given_up_at_each_await() {
    given_up_at_each_await(async |url: String| Sqlx::connect(&url).await).await;
}

#[tokio::test]
async fn a_future_of_tokio_postgres_may_be_given_up_at_each_await() {
    given_up_at_each_await(async |url: String| TokioPostgres::connect(&url).await).await;
}

/// Several keys and rows go the same way as one.
const LOST: [Work; 4] = [Work::Transaction, Work::AtOnce, Work::Raise, Work::Column];

async fn lost_at_each_message<D: Driver, E: Error>(connect: impl AsyncFn(String) -> Result<D, E>) {
    let database = prepared().await;
    let (watch, mut next) = watchers(&database).await;
    let mut revision = 100;
    for work in LOST {
        for direction in [CutAt::ToServer as fn(usize) -> CutAt, CutAt::ToClient] {
            let mut unknown_and_landed = 0;
            for messages in 0.. {
                revision += 10;
                let cut = direction(messages);
                let context = format!("{work:?}, cut at {cut:?}");
                let way = Relay::open().await;
                let mut driver = connect(way.url(&database)).await.unwrap();
                driver.number("SELECT 1::bigint").await.unwrap();
                way.arm(cut);
                let done = tokio::time::timeout(Duration::from_secs(20), work.run(&mut driver, revision))
                    .await
                    .unwrap_or_else(|_| panic!("{context}: no outcome"));
                drop(driver);
                settled(&watch).await;
                let landed = work.landed(&watch, revision).await;
                match &done {
                    Ok(()) => assert!(landed, "{context}: applied, and not there"),
                    Err(GuardError::Unknown { .. }) => {
                        assert!(way.commit_sent(), "{context}: unknown without a COMMIT");
                        unknown_and_landed += usize::from(landed);
                    }
                    Err(GuardError::Unavailable { .. }) => {
                        assert!(!landed, "{context}: {done:?}, and it landed");
                    }
                    Err(error) => panic!("{context}: {error:?}"),
                }
                if !way.was_cut() {
                    assert!(done.is_ok() && messages > 2, "{context}: {done:?}");
                    break;
                }
                is_free(&mut next, revision + 1, &context).await;
            }
            if direction(0) == CutAt::ToClient(0) {
                assert!(unknown_and_landed > 0, "{work:?}: no answer to a COMMIT was lost");
            }
        }
    }
}

/// Waits until the server is done with whatever was lost.
async fn settled(watch: &Client) {
    let busy = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
                  AND (xact_start IS NOT NULL OR state <> 'idle')";
    let began = std::time::Instant::now();
    while watch.query_one(busy, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "somebody is still at it"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_connection_of_sqlx_may_be_lost_at_each_message() {
    lost_at_each_message(async |url: String| Sqlx::connect(&url).await).await;
}

#[tokio::test]
async fn a_connection_of_tokio_postgres_may_be_lost_at_each_message() {
    lost_at_each_message(async |url: String| TokioPostgres::connect(&url).await).await;
}

/// How often the client waits for an answer, on the average of ten times.
async fn round_trips<D: Driver, E: Error>(
    connect: impl AsyncFn(String) -> Result<D, E>,
    work: Work,
) -> usize {
    const TIMES: i64 = 10;
    let database = prepared().await;
    let way = Relay::with(Duration::from_millis(15)).await;
    let mut driver = connect(way.url(&database)).await.unwrap();
    work.run(&mut driver, 1).await.unwrap();
    let before = way.round_trips();
    for revision in 2..2 + TIMES {
        work.run(&mut driver, revision).await.unwrap();
    }
    let times = usize::try_from(TIMES).unwrap();
    (way.round_trips() - before + times / 2) / times
}

#[tokio::test]
async fn a_write_in_one_flight_is_one_round_trip() {
    let tokio_postgres = async |url: String| TokioPostgres::connect(&url).await;
    for (work, expected) in [
        (Work::AtOnce, 1),
        (Work::Raise, 1),
        // BEGIN with the admission, the write, COMMIT.
        (Work::Transaction, 3),
        (Work::Many, 3),
        // As many as a transaction without a guard.
        (Work::Column, 3),
        (Work::Batch, 3),
    ] {
        assert_eq!(
            round_trips(tokio_postgres, work).await,
            expected,
            "tokio-postgres, {work:?}"
        );
    }
    let sqlx = async |url: String| Sqlx::connect(&url).await;
    // The pool asks the connection whether it lives before it lends it and when it comes back.
    for (work, expected) in [(Work::AtOnce, 1), (Work::Transaction, 5), (Work::Raise, 4)] {
        assert_eq!(round_trips(sqlx, work).await, expected + 2, "sqlx, {work:?}");
    }
}
