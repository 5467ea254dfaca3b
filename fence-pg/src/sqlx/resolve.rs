//! Finding out about a write whose outcome was unknown.

use ::sqlx::{AssertSqlSafe, PgPool, Postgres};
use fence_core::{Claim, Refusal};

use super::{begin, open, sort};
use crate::error::GuardError;
use crate::outcome::Resolved;
use crate::refused::Refused;

/// Finds out what became of a write after [`GuardError::Unknown`], by the request id that was written along with it.
///
/// `sql` is a SELECT of which `$1` is the request id, as text; the write landed if it returns a row. The claim is presented
/// again first, which waits until the transaction in question has ended; where it is stale by now, a newer holder was admitted,
/// and that waited for the same. It writes nothing.
///
/// # Errors
///
/// [`GuardError`] when that is not possible now: ask again.
pub async fn resolve(
    pool: &PgPool,
    claim: &Claim,
    sql: &str,
    request_id: &str,
) -> Result<Resolved, GuardError> {
    let question = ::sqlx::query::<Postgres>(AssertSqlSafe(sql))
        .bind(request_id)
        .persistent(false);
    let found = match begin(pool, claim).await {
        Ok(mut guarded) => {
            let found = question
                .fetch_optional(guarded.connection())
                .await
                .map_err(sort)?;
            guarded.rollback().await?;
            found
        }
        Err(GuardError::Refused(Refused::Claim(Refusal::Stale { .. }))) => {
            // Within a transaction, so that a pooler does not part its messages.
            let mut opened = open(pool, claim).await?;
            let found = question.fetch_optional(opened.connection()).await.map_err(sort)?;
            drop(opened.replay().await?);
            found
        }
        Err(error) => return Err(error),
    };
    Ok(Resolved::from_found(found.is_some()))
}
