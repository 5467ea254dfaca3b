//! A transaction on a pooled connection.

use std::pin::Pin;
use std::task::{Context, Poll};

use ::sqlx::postgres::PgRow;
use ::sqlx::{AssertSqlSafe, Executor as _, PgConnection, PgPool, Postgres, Row as _, Transaction};
use fence_core::Claim;

use super::{sort, sort_at};
use crate::error::{EndedInside, GuardError, Phase};
use crate::isolation::Isolation;
use crate::mark::STILL_OPEN;
use crate::text::admission_text;

/// Holds a connection for one transaction, and rolls it back when dropped.
#[derive(Debug)]
pub(super) struct Held {
    transaction: Transaction<'static, Postgres>,
    over: bool,
}

impl Held {
    /// Takes a connection and begins a transaction on it.
    pub(super) async fn begin(pool: &PgPool, isolation: Isolation) -> Result<Held, GuardError> {
        Held::begin_by(pool, isolation.begin_sql()).await
    }

    /// The same by a BEGIN in other words, and nothing but that: sqlx would leave the transaction open where more fails.
    pub(super) async fn begin_by(pool: &PgPool, begin: &'static str) -> Result<Held, GuardError> {
        let pool = pool.clone();
        let transaction = ToItsEnd::new(async move { pool.begin_with(begin).await })
            .await
            .map_err(sort)?;
        Ok(Held {
            transaction,
            over: false,
        })
    }

    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    pub(super) fn check_open(&self) -> Result<(), GuardError> {
        if self.over {
            Err(GuardError::Misuse("the transaction has ended"))
        } else {
            Ok(())
        }
    }

    /// Commits, and knows that it did: COMMIT is only sent in the transaction of this id, while it has not failed.
    pub(super) async fn commit(mut self, xid: &str, claims: &[Claim]) -> Result<(), GuardError> {
        self.check_open()?;
        // sqlx does not show COMMIT's tag. The server commits if the transaction is still there and has not failed, which
        // this statement finds out; nothing can come between it and COMMIT on the same connection.
        let row = ::sqlx::raw_sql(STILL_OPEN)
            .fetch_one(&mut *self.transaction)
            .await
            .map_err(|error| sort_at(error, Phase::Statement, claims))?;
        let now: Option<String> = row.try_get(0).map_err(sort)?;
        if now.as_deref() != Some(xid) {
            let source = Box::new(EndedInside);
            return Err(GuardError::Unknown { source });
        }
        self.transaction
            .commit()
            .await
            .map_err(|error| sort_at(error, Phase::Commit, claims))
    }

    /// Rolls back, and waits for it.
    pub(super) async fn roll_back(self) -> Result<(), GuardError> {
        self.check_open()?;
        self.transaction.rollback().await.map_err(sort)
    }

    /// Rolls back, and keeps the connection for a question or two.
    pub(super) async fn roll_back_and_stay(&mut self) -> Result<(), GuardError> {
        self.check_open()?;
        self.transaction.execute("ROLLBACK").await.map_err(sort)?;
        self.over = true;
        Ok(())
    }
}

/// A future that is carried on by the runtime when the caller gives up on it: sqlx would forget a BEGIN that was sent and not
/// answered, and give its connection back to the pool with the transaction open.
struct ToItsEnd<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> ToItsEnd<T> {
    fn new(future: impl Future<Output = T> + Send + 'static) -> ToItsEnd<T> {
        ToItsEnd(Some(Box::pin(future)))
    }
}

impl<T: Send + 'static> Future for ToItsEnd<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(future) = &mut self.0 else {
            return Poll::Pending;
        };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for ToItsEnd<T> {
    fn drop(&mut self) {
        let runtime = tokio::runtime::Handle::try_current();
        if let (Some(future), Ok(runtime)) = (self.0.take(), runtime) {
            runtime.spawn(async move { drop(future.await) });
        }
    }
}

/// Admits the claims in the connection's open transaction, and returns the transaction's id.
///
/// The statement is sent as a text, its parameters in it: one round trip, and nothing prepared that a transaction pooler would
/// have to know of.
pub(super) async fn admit(connection: &mut PgConnection, claims: &[Claim]) -> Result<String, GuardError> {
    present(connection, admission_text(claims), claims).await
}

/// Runs an admission's text, and returns the transaction's id.
pub(super) async fn present(
    connection: &mut PgConnection,
    text: String,
    claims: &[Claim],
) -> Result<String, GuardError> {
    let row: PgRow = ::sqlx::raw_sql(AssertSqlSafe(text))
        .fetch_one(connection)
        .await
        .map_err(|error| sort_at(error, Phase::Statement, claims))?;
    row.try_get(1).map_err(sort)
}

/// Whether the pool's connections keep prepared statements: behind a transaction pooler they must not.
pub(super) fn prepares(pool: &PgPool) -> bool {
    use ::sqlx::ConnectOptions as _;
    let url = pool.connect_options().to_url_lossy();
    !url.query_pairs()
        .any(|(name, value)| name == "statement-cache-capacity" && value == "0")
}
