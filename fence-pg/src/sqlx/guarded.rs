//! The guarded transaction: BEGIN and admission, the caller's writes, COMMIT and receipt.

use ::sqlx::{Executor as _, PgConnection, PgPool};
use fence_core::{Claim, Effect, Receipt};

use super::held::{self, Held};
use super::sort;
use crate::error::GuardError;
use crate::isolation::Isolation;
use crate::mark::BEGIN_ANEW;
use crate::refused::Refused;
use crate::text::raise_text;

/// Begins a transaction and admits the claim in it, at READ COMMITTED.
///
/// # Errors
///
/// [`GuardError`]: a refusal, or what kept the database from deciding. Nothing was written.
pub async fn begin(pool: &PgPool, claim: &Claim) -> Result<Guarded, GuardError> {
    begin_at(pool, Isolation::ReadCommitted, claim).await
}

/// Begins a transaction at an isolation level and admits the claim as its first statement.
///
/// # Errors
///
/// [`GuardError`]: a refusal, or what kept the database from deciding. Nothing was written.
pub async fn begin_at(pool: &PgPool, isolation: Isolation, claim: &Claim) -> Result<Guarded, GuardError> {
    let held = Held::begin(pool, isolation).await?;
    let claim = claim.clone();
    Unadmitted { held, claim }.admit().await
}

/// Begins a transaction at an isolation level and admits all the claims as its first statement: all of them or none, in one
/// order whatever theirs is, waiting 2 s at most for all together. The same claim twice counts once; none at all is a
/// transaction that has admitted nothing.
///
/// # Errors
///
/// [`GuardError`]: [`Refused::StaleKeys`](crate::Refused::StaleKeys) names every stale key when there are several; nothing was
/// written.
pub async fn begin_many(
    pool: &PgPool,
    isolation: Isolation,
    claims: &[Claim],
) -> Result<GuardedMany, GuardError> {
    let mut held = Held::begin(pool, isolation).await?;
    let xid = held::admit(held.connection(), claims).await?;
    let claims = claims.to_vec();
    Ok(GuardedMany { held, claims, xid })
}

/// Begins a transaction, at READ COMMITTED, without admitting the claim yet: for a resource that first looks whether the
/// request was completed before.
///
/// # Errors
///
/// [`GuardError`] when the database cannot be reached.
pub async fn open(pool: &PgPool, claim: &Claim) -> Result<Unadmitted, GuardError> {
    let held = Held::begin(pool, Isolation::ReadCommitted).await?;
    let claim = claim.clone();
    Ok(Unadmitted { held, claim })
}

/// Raises the mark in a transaction of its own: after a grant, and before the first read that a write will depend on.
///
/// # Errors
///
/// [`GuardError`]; after [`GuardError::Unknown`] the mark may have been raised: raise it again.
pub async fn raise_mark(pool: &PgPool, claim: &Claim) -> Result<Receipt, GuardError> {
    let Unadmitted { mut held, claim } = open(pool, claim).await?;
    let claims = std::slice::from_ref(&claim);
    let xid = held::present(held.connection(), raise_text(&claim), claims).await?;
    let guarded = Guarded { held, claim, xid };
    guarded.commit(Effect::NoWrite("raised the mark".into())).await
}

/// Admits a claim in a transaction that the caller has begun, and will commit. It holds the key to that transaction's end.
/// There is no receipt: this crate vouches only for a COMMIT that it sent, as [`Guarded::commit`] does.
///
/// # Errors
///
/// [`GuardError`]; the transaction has failed and must be rolled back.
pub async fn admit(connection: &mut PgConnection, claim: &Claim) -> Result<(), GuardError> {
    admit_many(connection, std::slice::from_ref(claim)).await
}

/// Admits several claims as [`admit`] does one: all of them or none.
///
/// # Errors
///
/// [`GuardError`]; the transaction has failed and must be rolled back.
pub async fn admit_many(connection: &mut PgConnection, claims: &[Claim]) -> Result<(), GuardError> {
    held::admit(connection, claims).await.map(|_xid| ())
}

/// A transaction whose claim is not admitted yet. Dropping it rolls back.
#[must_use]
#[derive(Debug)]
pub struct Unadmitted {
    held: Held,
    claim: Claim,
}

impl Unadmitted {
    /// The connection, for a look at what was completed before.
    pub fn connection(&mut self) -> &mut PgConnection {
        self.held.connection()
    }

    /// Admits the claim. What was read before may have changed meanwhile: look again before writing.
    ///
    /// # Errors
    ///
    /// [`GuardError`]: a refusal, or what kept the database from deciding. Nothing was written.
    pub async fn admit(self) -> Result<Guarded, GuardError> {
        let Unadmitted { mut held, claim } = self;
        let xid = held::admit(held.connection(), std::slice::from_ref(&claim)).await?;
        Ok(Guarded { held, claim, xid })
    }

    /// Admits the claim. Where that is refused, the transaction is begun anew and given back, for another look.
    pub(super) async fn admit_or_begin_anew(
        self,
    ) -> Result<Result<Guarded, (Unadmitted, Refused)>, GuardError> {
        let Unadmitted { mut held, claim } = self;
        match held::admit(held.connection(), std::slice::from_ref(&claim)).await {
            Ok(xid) => Ok(Ok(Guarded { held, claim, xid })),
            Err(GuardError::Refused(why)) => {
                held.connection().execute(BEGIN_ANEW).await.map_err(sort)?;
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
    pub async fn replay(self) -> Result<Receipt, GuardError> {
        self.held.roll_back().await?;
        Ok(Receipt::danger_assume(self.claim, Effect::Replayed))
    }
}

/// A transaction that has admitted its claim, and holds the claim's key until it ends. Dropping it rolls back: then the
/// admission was no contact.
#[must_use]
#[derive(Debug)]
pub struct Guarded {
    held: Held,
    claim: Claim,
    xid: String,
}

impl Guarded {
    /// The connection, for the writes. A nested [`begin`](::sqlx::Connection::begin) on it makes a savepoint, for what may
    /// be undone while the admission stays; end it or drop it, but do not leak it. Do not end the transaction on it. Behind a
    /// transaction pooler, give each query `.persistent(false)`.
    pub fn connection(&mut self) -> &mut PgConnection {
        self.held.connection()
    }

    /// The claim that was admitted.
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// Commits admission and writes together. A business refusal commits its admission too, with [`Effect::NoWrite`].
    ///
    /// # Errors
    ///
    /// [`GuardError::Unknown`] when the answer to COMMIT did not come, or the transaction had been ended inside; any other
    /// [`GuardError`] when nothing was committed, such as after a failed statement, which the server would answer with
    /// ROLLBACK.
    pub async fn commit(self, effect: Effect) -> Result<Receipt, GuardError> {
        self.held
            .commit(&self.xid, std::slice::from_ref(&self.claim))
            .await?;
        Ok(Receipt::danger_assume(self.claim, effect))
    }

    /// Rolls back, and waits for it.
    ///
    /// # Errors
    ///
    /// [`GuardError::Unavailable`] when the connection is lost; the server rolls back then, too.
    pub async fn rollback(self) -> Result<(), GuardError> {
        self.held.roll_back().await
    }
}

/// A transaction that has admitted several claims, and holds their keys until it ends. Dropping it rolls back.
#[must_use]
#[derive(Debug)]
pub struct GuardedMany {
    held: Held,
    claims: Vec<Claim>,
    xid: String,
}

impl GuardedMany {
    /// The connection, for the writes; as [`Guarded::connection`].
    pub fn connection(&mut self) -> &mut PgConnection {
        self.held.connection()
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
    pub async fn commit(self, effect: Effect) -> Result<Vec<Receipt>, GuardError> {
        self.held.commit(&self.xid, &self.claims).await?;
        let receipt = |claim: &Claim| Receipt::danger_assume(claim.clone(), effect.clone());
        Ok(self.claims.iter().map(receipt).collect())
    }

    /// Rolls back, and waits for it.
    ///
    /// # Errors
    ///
    /// [`GuardError::Unavailable`] when the connection is lost; the server rolls back then, too.
    pub async fn rollback(self) -> Result<(), GuardError> {
        self.held.roll_back().await
    }
}
