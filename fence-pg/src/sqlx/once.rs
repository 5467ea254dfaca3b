//! The order of the fence and of idempotency, in one transaction: a completed request is answered again whoever asks, anything
//! else is fenced first.

use ::sqlx::{PgConnection, PgPool};
use fence_core::{Claim, Effect, Receipt};

use super::guarded::{Guarded, Unadmitted, open};
use super::sort;
use crate::completed::{IdempotentRequest, Known, LOOK, STORE, StoredAnswer};
use crate::error::GuardError;

/// Begins the transaction of a request that may come again. The table is [`COMPLETED_TABLE_SQL`](crate::COMPLETED_TABLE_SQL).
///
/// ```no_run
/// use fence_core::{Claim, Effect, Receipt};
/// use fence_pg::sqlx::{Once, begin_once};
/// use fence_pg::{GuardError, IdempotentRequest, StoredAnswer};
///
/// async fn pay(
///     pool: &sqlx::PgPool,
///     claim: &Claim,
///     request: &IdempotentRequest,
/// ) -> Result<(Receipt, StoredAnswer), GuardError> {
///     let mut new = match begin_once(pool, claim, request).await? {
///         Once::Replayed(replay) => return replay.receipt().await,
///         Once::Reused(guarded) => {
///             let answer = StoredAnswer { status: 422, content_type: "text/plain".into(), body: b"key reused".to_vec() };
///             return Ok((guarded.commit(Effect::NoWrite("key reused".into())).await?, answer));
///         }
///         Once::New(new) => new,
///     };
///     sqlx::query("UPDATE account SET balance = balance - 1 WHERE id = $1")
///         .bind(claim.key.as_str())
///         .execute(new.connection())
///         .await
///         .map_err(fence_pg::sqlx::sort)?;
///     let answer = StoredAnswer { status: 201, content_type: "text/plain".into(), body: b"paid".to_vec() };
///     let receipt = new.complete(&answer).await?.commit(Effect::Applied).await?;
///     Ok((receipt, answer))
/// }
/// ```
///
/// # Errors
///
/// [`GuardError`]: a refusal, or what kept the database from deciding. Nothing was written.
pub async fn begin_once(
    pool: &PgPool,
    claim: &Claim,
    request: &IdempotentRequest,
) -> Result<Once, GuardError> {
    let mut opened = open(pool, claim).await?;
    if let Some(Known::Same(answer)) = look(opened.connection(), claim, request).await? {
        let end = End::Unadmitted(Box::new(opened));
        return Ok(Once::Replayed(Replay { answer, end }));
    }
    let mut guarded = match opened.admit_or_begin_anew().await? {
        Ok(guarded) => guarded,
        // Its first copy may have been completed, and a newer holder admitted, while this one waited for its turn.
        Err((mut opened, why)) => {
            return match look(opened.connection(), claim, request).await? {
                Some(Known::Same(answer)) => {
                    let end = End::Unadmitted(Box::new(opened));
                    Ok(Once::Replayed(Replay { answer, end }))
                }
                Some(Known::Other) | None => Err(GuardError::Refused(why)),
            };
        }
    };
    // Again: its first copy may have been completed while this one waited for its turn.
    Ok(match look(guarded.connection(), claim, request).await? {
        Some(Known::Same(answer)) => Once::Replayed(Replay {
            answer,
            end: End::Admitted(Box::new(guarded)),
        }),
        Some(Known::Other) => Once::Reused(guarded),
        None => Once::New(NewRequest {
            guarded,
            request: request.clone(),
        }),
    })
}

/// What became known of a request.
#[derive(Debug)]
#[must_use]
pub enum Once {
    /// Its key was never completed, and its claim is admitted: do it.
    New(NewRequest),
    /// It was completed before. Give the stored answer again.
    Replayed(Replay),
    /// Its key was completed by another principal, or with another content; its claim is admitted. Answer 422, and commit the
    /// admission: it was a contact.
    Reused(Guarded),
}

/// A request that is done now. Dropping it rolls back.
#[derive(Debug)]
#[must_use]
pub struct NewRequest {
    guarded: Guarded,
    request: IdempotentRequest,
}

impl NewRequest {
    /// The connection, for the writes; as [`Guarded::connection`].
    pub fn connection(&mut self) -> &mut PgConnection {
        self.guarded.connection()
    }

    /// Stores the answer beside the effect. Both are there once the transaction is committed, and only then.
    ///
    /// # Errors
    ///
    /// [`GuardError`]; nothing was written.
    pub async fn complete(mut self, answer: &StoredAnswer) -> Result<Guarded, GuardError> {
        let status = answer.stored_status()?;
        let claim = self.guarded.claim().clone();
        ::sqlx::query(STORE)
            .bind(claim.class.as_str())
            .bind(claim.key.as_str())
            .bind(&self.request.key)
            .bind(&self.request.principal)
            .bind(&self.request.fingerprint[..])
            .bind(status)
            .bind(&answer.content_type)
            .bind(&answer.body)
            .persistent(false)
            .execute(self.guarded.connection())
            .await
            .map_err(sort)?;
        Ok(self.guarded)
    }

    /// Stores no answer: for a request that is refused on its own merits, and will be decided again when it comes again.
    pub fn leave(self) -> Guarded {
        self.guarded
    }
}

/// A request that was completed before.
#[derive(Debug)]
#[must_use]
pub struct Replay {
    answer: StoredAnswer,
    end: End,
}

#[derive(Debug)]
enum End {
    Unadmitted(Box<Unadmitted>),
    Admitted(Box<Guarded>),
}

impl Replay {
    /// Ends the transaction, in which nothing was written, and gives the stored answer with its receipt.
    ///
    /// # Errors
    ///
    /// [`GuardError`] when the connection is lost. The answer stays stored.
    pub async fn receipt(self) -> Result<(Receipt, StoredAnswer), GuardError> {
        let receipt = match self.end {
            End::Unadmitted(opened) => opened.replay().await?,
            End::Admitted(guarded) => guarded.commit(Effect::Replayed).await?,
        };
        Ok((receipt, self.answer))
    }
}

async fn look(
    connection: &mut PgConnection,
    claim: &Claim,
    request: &IdempotentRequest,
) -> Result<Option<Known>, GuardError> {
    let row = ::sqlx::query_as(LOOK)
        .bind(claim.class.as_str())
        .bind(claim.key.as_str())
        .bind(&request.key)
        .bind(&request.principal)
        .bind(&request.fingerprint[..])
        .persistent(false)
        .fetch_optional(connection)
        .await
        .map_err(sort)?;
    Ok(row.map(Known::of))
}
