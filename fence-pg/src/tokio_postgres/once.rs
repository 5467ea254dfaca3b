//! The order of the fence and of idempotency, in one transaction: a completed request is answered again whoever asks, anything
//! else is fenced first.

use ::tokio_postgres::Client;
use ::tokio_postgres::types::{ToSql, Type};
use fence_core::{Claim, Effect, Receipt};

use super::guarded::{Guarded, Unadmitted, open};
use super::sort;
use crate::completed::{IdempotentRequest, Known, LOOK, STORE, StoredAnswer};
use crate::error::GuardError;

/// Begins the transaction of a request that may come again. The table is [`COMPLETED_TABLE_SQL`](crate::COMPLETED_TABLE_SQL).
///
/// ```no_run
/// use fence_core::{Claim, Effect, Receipt};
/// use fence_pg::tokio_postgres::{Once, begin_once};
/// use fence_pg::{GuardError, IdempotentRequest, StoredAnswer};
///
/// async fn pay(
///     client: &mut tokio_postgres::Client,
///     claim: &Claim,
///     request: &IdempotentRequest,
/// ) -> Result<(Receipt, StoredAnswer), GuardError> {
///     let new = match begin_once(client, claim, request).await? {
///         Once::Replayed(replay) => return replay.receipt().await,
///         Once::Reused(guarded) => {
///             let answer = StoredAnswer { status: 422, content_type: "text/plain".into(), body: b"key reused".to_vec() };
///             return Ok((guarded.commit(Effect::NoWrite("key reused".into())).await?, answer));
///         }
///         Once::New(new) => new,
///     };
///     let spend = "UPDATE account SET balance = balance - 1 WHERE id = $1";
///     let account = claim.key.as_str();
///     new.client().execute(spend, &[&account]).await.map_err(fence_pg::tokio_postgres::sort)?;
///     let answer = StoredAnswer { status: 201, content_type: "text/plain".into(), body: b"paid".to_vec() };
///     let receipt = new.complete(&answer).await?.commit(Effect::Applied).await?;
///     Ok((receipt, answer))
/// }
/// ```
///
/// # Errors
///
/// [`GuardError`]: a refusal, or what kept the database from deciding. Nothing was written.
pub async fn begin_once<'a>(
    client: &'a mut Client,
    claim: &Claim,
    request: &IdempotentRequest,
) -> Result<Once<'a>, GuardError> {
    let opened = open(client, claim).await?;
    if let Some(Known::Same(answer)) = look(opened.client(), claim, request).await? {
        let end = End::Unadmitted(opened);
        return Ok(Once::Replayed(Replay { answer, end }));
    }
    let guarded = match opened.admit_or_begin_anew().await? {
        Ok(guarded) => guarded,
        // Its first copy may have been completed, and a newer holder admitted, while this one waited for its turn.
        Err((opened, why)) => {
            return match look(opened.client(), claim, request).await? {
                Some(Known::Same(answer)) => {
                    let end = End::Unadmitted(opened);
                    Ok(Once::Replayed(Replay { answer, end }))
                }
                Some(Known::Other) | None => Err(GuardError::Refused(why)),
            };
        }
    };
    // Again: its first copy may have been completed while this one waited for its turn.
    Ok(match look(guarded.client(), claim, request).await? {
        Some(Known::Same(answer)) => Once::Replayed(Replay {
            answer,
            end: End::Admitted(guarded),
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
pub enum Once<'a> {
    /// Its key was never completed, and its claim is admitted: do it.
    New(NewRequest<'a>),
    /// It was completed before. Give the stored answer again.
    Replayed(Replay<'a>),
    /// Its key was completed by another principal, or with another content; its claim is admitted. Answer 422, and commit the
    /// admission: it was a contact.
    Reused(Guarded<'a>),
}

/// A request that is done now. Dropping it rolls back.
#[derive(Debug)]
#[must_use]
pub struct NewRequest<'a> {
    guarded: Guarded<'a>,
    request: IdempotentRequest,
}

impl<'a> NewRequest<'a> {
    /// The connection, for the writes; as [`Guarded::client`].
    pub fn client(&self) -> &Client {
        self.guarded.client()
    }

    /// Stores the answer beside the effect. Both are there once the transaction is committed, and only then.
    ///
    /// # Errors
    ///
    /// [`GuardError`]; nothing was written.
    pub async fn complete(self, answer: &StoredAnswer) -> Result<Guarded<'a>, GuardError> {
        let status = answer.stored_status()?;
        let NewRequest { guarded, request } = self;
        let claim = guarded.claim();
        let (class, key, fingerprint) = (claim.class.as_str(), claim.key.as_str(), &request.fingerprint[..]);
        let parameters: [(&(dyn ToSql + Sync), Type); 8] = [
            (&class, Type::TEXT),
            (&key, Type::TEXT),
            (&request.key, Type::TEXT),
            (&request.principal, Type::TEXT),
            (&fingerprint, Type::BYTEA),
            (&status, Type::INT2),
            (&answer.content_type, Type::TEXT),
            (&answer.body, Type::BYTEA),
        ];
        let stored = guarded.client().execute_typed(STORE, &parameters).await;
        stored.map_err(sort)?;
        Ok(guarded)
    }

    /// Stores no answer: for a request that is refused on its own merits, and will be decided again when it comes again.
    pub fn leave(self) -> Guarded<'a> {
        self.guarded
    }
}

/// A request that was completed before.
#[derive(Debug)]
#[must_use]
pub struct Replay<'a> {
    answer: StoredAnswer,
    end: End<'a>,
}

#[derive(Debug)]
enum End<'a> {
    Unadmitted(Unadmitted<'a>),
    Admitted(Guarded<'a>),
}

impl Replay<'_> {
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
    client: &Client,
    claim: &Claim,
    request: &IdempotentRequest,
) -> Result<Option<Known>, GuardError> {
    let (class, key, fingerprint) = (claim.class.as_str(), claim.key.as_str(), &request.fingerprint[..]);
    let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
        (&class, Type::TEXT),
        (&key, Type::TEXT),
        (&request.key, Type::TEXT),
        (&request.principal, Type::TEXT),
        (&fingerprint, Type::BYTEA),
    ];
    let rows = client.query_typed(LOOK, &parameters).await.map_err(sort)?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    Ok(Some(Known::of((
        row.try_get(0).map_err(sort)?,
        row.try_get(1).map_err(sort)?,
        row.try_get(2).map_err(sort)?,
        row.try_get(3).map_err(sort)?,
    ))))
}
