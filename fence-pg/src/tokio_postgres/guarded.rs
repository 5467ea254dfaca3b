//! The guarded transaction: BEGIN and admission in one flight, the caller's writes, COMMIT and receipt.

use ::tokio_postgres::Client;
use fence_core::{Claim, Effect, Receipt};
use futures_util::future::join;

use super::held::{self, Held};
use super::sort;
use crate::error::GuardError;
use crate::isolation::Isolation;
use crate::mark::BEGIN_ANEW;
use crate::refused::Refused;

/// Begins a transaction and admits the claim in it, at READ COMMITTED, in one round trip.
///
/// # Errors
///
/// [`GuardError`]: a refusal, or what kept the database from deciding. Nothing was written.
pub async fn begin<'a>(client: &'a mut Client, claim: &Claim) -> Result<Guarded<'a>, GuardError> {
    begin_at(client, Isolation::ReadCommitted, claim).await
}

/// Begins a transaction at an isolation level and admits the claim as its first statement, in one round trip.
///
/// # Errors
///
/// [`GuardError`]: a refusal, or what kept the database from deciding. Nothing was written.
pub async fn begin_at<'a>(
    client: &'a mut Client,
    isolation: Isolation,
    claim: &Claim,
) -> Result<Guarded<'a>, GuardError> {
    let held = begin_held(client, isolation, std::slice::from_ref(claim)).await?;
    let claim = claim.clone();
    Ok(Guarded { held, claim })
}

/// Begins a transaction at an isolation level and admits all the claims as its first statement, in one round trip: all of them
/// or none, in one order whatever theirs is, waiting 2 s at most for all together. The same claim twice counts once; none at
/// all is a transaction that has admitted nothing.
///
/// # Errors
///
/// [`GuardError`]: [`Refused::StaleKeys`](crate::Refused::StaleKeys) names every stale key when there are several; nothing was
/// written.
pub async fn begin_many<'a>(
    client: &'a mut Client,
    isolation: Isolation,
    claims: &[Claim],
) -> Result<GuardedMany<'a>, GuardError> {
    let held = begin_held(client, isolation, claims).await?;
    let claims = claims.to_vec();
    Ok(GuardedMany { held, claims })
}

async fn begin_held<'a>(
    client: &'a mut Client,
    isolation: Isolation,
    claims: &[Claim],
) -> Result<Held<'a>, GuardError> {
    let mut held = Held::new(client);
    // Polled in this order, so sent in this order, before either answer is there.
    let (begun, admitted) = join(
        held.client().batch_execute(isolation.begin_sql()),
        held::admit(held.client(), claims),
    )
    .await;
    begun.map_err(sort)?;
    held.is(Some(admitted?));
    Ok(held)
}

/// Begins a transaction, at READ COMMITTED, without admitting the claim yet: for a resource that first looks whether the
/// request was completed before.
///
/// # Errors
///
/// [`GuardError`] when the database cannot be reached.
pub async fn open<'a>(client: &'a mut Client, claim: &Claim) -> Result<Unadmitted<'a>, GuardError> {
    let held = Held::new(client);
    held.client()
        .batch_execute(Isolation::ReadCommitted.begin_sql())
        .await
        .map_err(sort)?;
    let claim = claim.clone();
    Ok(Unadmitted { held, claim })
}

/// Admits a claim in a transaction that the caller has begun, and will commit. It holds the key to that transaction's end.
/// There is no receipt: this crate vouches only for a COMMIT that it sent, as [`Guarded::commit`] does.
///
/// # Errors
///
/// [`GuardError`]; the transaction has failed and must be rolled back.
pub async fn admit(client: &Client, claim: &Claim) -> Result<(), GuardError> {
    admit_many(client, std::slice::from_ref(claim)).await
}

/// Admits several claims as [`admit`] does one: all of them or none.
///
/// # Errors
///
/// [`GuardError`]; the transaction has failed and must be rolled back.
pub async fn admit_many(client: &Client, claims: &[Claim]) -> Result<(), GuardError> {
    held::admit(client, claims).await.map(|_xid| ())
}

/// A transaction whose claim is not admitted yet. Dropping it rolls back.
#[must_use]
#[derive(Debug)]
pub struct Unadmitted<'a> {
    held: Held<'a>,
    claim: Claim,
}

impl<'a> Unadmitted<'a> {
    /// The connection, for a look at what was completed before.
    pub fn client(&self) -> &Client {
        self.held.client()
    }

    /// Admits the claim. What was read before may have changed meanwhile: look again before writing.
    ///
    /// # Errors
    ///
    /// [`GuardError`]: a refusal, or what kept the database from deciding. Nothing was written.
    pub async fn admit(self) -> Result<Guarded<'a>, GuardError> {
        let Unadmitted { mut held, claim } = self;
        let xid = held::admit(held.client(), std::slice::from_ref(&claim)).await?;
        held.is(Some(xid));
        Ok(Guarded { held, claim })
    }

    /// Admits the claim. Where that is refused, the transaction is begun anew and given back, for another look.
    pub(super) async fn admit_or_begin_anew(
        self,
    ) -> Result<Result<Guarded<'a>, (Unadmitted<'a>, Refused)>, GuardError> {
        let Unadmitted { mut held, claim } = self;
        match held::admit(held.client(), std::slice::from_ref(&claim)).await {
            Ok(xid) => {
                held.is(Some(xid));
                Ok(Ok(Guarded { held, claim }))
            }
            Err(GuardError::Refused(why)) => {
                held.client().batch_execute(BEGIN_ANEW).await.map_err(sort)?;
                Ok(Err((Unadmitted { held, claim }, why)))
            }
            Err(other) => Err(other),
        }
    }

    /// Ends the transaction without a write, for a request that was completed before and whose stored answer is given
    /// again, whatever its token.
    ///
    /// # Errors
    ///
    /// [`GuardError::Unavailable`] when the connection is lost.
    pub async fn replay(mut self) -> Result<Receipt, GuardError> {
        self.held.roll_back().await?;
        Ok(Receipt::danger_assume(self.claim.clone(), Effect::Replayed))
    }
}

/// A transaction that has admitted its claim, and holds the claim's key until it ends. Dropping it rolls back: then the
/// admission was no contact.
#[must_use]
#[derive(Debug)]
pub struct Guarded<'a> {
    held: Held<'a>,
    claim: Claim,
}

impl Guarded<'_> {
    /// The connection, for the writes. Savepoints may be set on it. Do not end the transaction on it.
    pub fn client(&self) -> &Client {
        self.held.client()
    }

    /// The claim that was admitted.
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// Commits admission and writes together, in one round trip. A business refusal commits its admission too, with
    /// [`Effect::NoWrite`].
    ///
    /// # Errors
    ///
    /// [`GuardError::Unknown`] when the answer to COMMIT did not come, or the transaction had been ended inside; any other
    /// [`GuardError`] when nothing was committed, such as after a failed statement, which the server would answer with
    /// ROLLBACK.
    pub async fn commit(mut self, effect: Effect) -> Result<Receipt, GuardError> {
        self.held.commit(std::slice::from_ref(&self.claim)).await?;
        Ok(Receipt::danger_assume(self.claim.clone(), effect))
    }

    /// Rolls back, and waits for it.
    ///
    /// # Errors
    ///
    /// [`GuardError::Unavailable`] when the connection is lost; the server rolls back then, too.
    pub async fn rollback(mut self) -> Result<(), GuardError> {
        self.held.roll_back().await
    }
}

/// A transaction that has admitted several claims, and holds their keys until it ends. Dropping it rolls back.
#[must_use]
#[derive(Debug)]
pub struct GuardedMany<'a> {
    held: Held<'a>,
    claims: Vec<Claim>,
}

impl GuardedMany<'_> {
    /// The connection, for the writes. Savepoints may be set on it. Do not end the transaction on it.
    pub fn client(&self) -> &Client {
        self.held.client()
    }

    /// The claims that were admitted, as they were given.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// Commits admissions and writes together, and gives a receipt for each claim, as they were given.
    ///
    /// # Errors
    ///
    /// As [`Guarded::commit`].
    pub async fn commit(mut self, effect: Effect) -> Result<Vec<Receipt>, GuardError> {
        self.held.commit(&self.claims).await?;
        let receipt = |claim: &Claim| Receipt::danger_assume(claim.clone(), effect.clone());
        Ok(self.claims.iter().map(receipt).collect())
    }

    /// Rolls back, and waits for it.
    ///
    /// # Errors
    ///
    /// [`GuardError::Unavailable`] when the connection is lost; the server rolls back then, too.
    pub async fn rollback(mut self) -> Result<(), GuardError> {
        self.held.roll_back().await
    }
}
