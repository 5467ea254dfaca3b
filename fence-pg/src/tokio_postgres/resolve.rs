//! Finding out about a write whose outcome was unknown.

use ::tokio_postgres::Client;
use ::tokio_postgres::types::{ToSql, Type};
use fence_core::{Claim, Refusal};

use super::{begin, sort};
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
    client: &mut Client,
    claim: &Claim,
    sql: &str,
    request_id: &str,
) -> Result<Resolved, GuardError> {
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&request_id, Type::TEXT)];
    let begun = match begin(client, claim).await {
        Ok(guarded) => {
            let found = guarded.client().query_typed(sql, &parameters).await;
            let found = found.map_err(sort)?;
            guarded.rollback().await?;
            return Ok(Resolved::from_found(!found.is_empty()));
        }
        Err(error) => error,
    };
    match begun {
        GuardError::Refused(Refused::Claim(Refusal::Stale { .. })) => {
            let found = client.query_typed(sql, &parameters).await.map_err(sort)?;
            Ok(Resolved::from_found(!found.is_empty()))
        }
        error => Err(error),
    }
}
