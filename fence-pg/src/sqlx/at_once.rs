//! A whole guarded transaction in one flight.

use ::sqlx::pool::PoolConnection;
use ::sqlx::{AssertSqlSafe, Either, Executor as _, PgConnection, PgPool, Postgres, Row as _};
use fence_core::Claim;
use futures_util::TryStreamExt as _;

use super::{sort, sort_at};
use crate::error::{EndedInside, GuardError, Phase};
use crate::isolation::Isolation;
use crate::outcome::Written;
use crate::text::at_once_text;

/// Sends BEGIN, the admission, one write and COMMIT together, and reads all the answers: one round trip, and a second one to
/// roll back when something was refused.
///
/// `sql` is one statement. sqlx sends several statements at once only as a text, so there are no parameters: put values into
/// the text with [`literal`](super::literal), or as Rust integers. It works behind a transaction pooler.
///
/// # Errors
///
/// [`GuardError`]; [`GuardError::Unknown`] when the connection was lost before an answer decided.
pub async fn write_at_once(
    pool: &PgPool,
    isolation: Isolation,
    claim: &Claim,
    sql: &str,
) -> Result<Written, GuardError> {
    // Until it is known to be over, the connection does not go back to the pool.
    let mut lent = Lent {
        connection: pool.acquire().await.map_err(sort)?,
        clean: false,
    };
    let mut answers = Answers::default();
    let text = at_once_text(isolation.begin_sql(), claim, sql);
    let told = answers.read(&mut lent.connection, text).await;
    let claims = std::slice::from_ref(claim);
    match told {
        Ok(()) => lent.clean = true,
        Err(error) => {
            // An answer of the server is definite; without one, or with a pooler's in its place, COMMIT has been sent and may
            // have been done.
            let code = error.as_database_error().and_then(|error| error.code());
            let phase = match code {
                Some(code) if !code.starts_with("08") && answers.rows.len() < 2 => Phase::Statement,
                _ => Phase::Commit,
            };
            let sorted = sort_at(error, phase, claims);
            if !matches!(
                sorted,
                GuardError::Unknown { .. } | GuardError::Unavailable { .. }
            ) {
                lent.clean = lent.connection.execute("ROLLBACK").await.is_ok();
            }
            return Err(sorted);
        }
    }
    match (answers.rows.first(), answers.rows.last()) {
        (Some(admitted), Some(now)) if answers.rows.len() > 1 && admitted.is_some() && admitted == now => {
            Ok(Written::new(answers.touched(), claim))
        }
        _ => {
            let source = Box::new(EndedInside);
            Err(GuardError::Unknown { source })
        }
    }
}

/// A connection that goes back to its pool only when nothing is open on it.
struct Lent {
    connection: PoolConnection<Postgres>,
    clean: bool,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.clean {
            self.connection.close_on_drop();
        }
    }
}

/// What the statements of the text answered.
#[derive(Default)]
struct Answers {
    /// The transaction's id after the admission, and before COMMIT; in between, what the write returned, as nothing.
    rows: Vec<Option<String>>,
    /// How many rows each statement touched.
    counts: Vec<u64>,
}

impl Answers {
    async fn read(&mut self, connection: &mut PgConnection, text: String) -> Result<(), ::sqlx::Error> {
        let mut answers = connection.fetch_many(::sqlx::raw_sql(AssertSqlSafe(text)));
        while let Some(answer) = answers.try_next().await? {
            match answer {
                Either::Left(done) => self.counts.push(done.rows_affected()),
                // After BEGIN, the admission's row; after the write, the look's; the write's own are not kept.
                Either::Right(row) => match self.counts.len() {
                    1 => self.rows.push(row.try_get(1)?),
                    2 => {}
                    _ => self.rows.push(row.try_get(0)?),
                },
            }
        }
        Ok(())
    }

    /// BEGIN and the admission stand before the write, the look and COMMIT behind it.
    fn touched(&self) -> u64 {
        let last = self.counts.len().saturating_sub(2);
        self.counts.get(2..last).unwrap_or_default().iter().sum()
    }
}
