//! The guarded transaction: BEGIN and admission, the caller's writes, COMMIT and receipt.

use std::slice;

use ::sqlx::{PgConnection, PgPool, Postgres, Transaction};
use fence_core::{Claim, Effect, Receipt};

use super::{sort, sort_at};
use crate::error::{EndedInside, GuardError, Phase};

const ADMIT: &str = "SELECT fence.admit($1, $2, $3, $4), pg_current_xact_id()::text";
const RAISE_MARK: &str = "SELECT fence.raise_mark($1, $2, $3, $4), pg_current_xact_id()::text";
const STILL_OPEN: &str = "SELECT pg_current_xact_id_if_assigned()::text";

/// The isolation level of a guarded transaction. Each is right under the mark guard; above READ COMMITTED a claim that came
/// after another one of its key may end as [`GuardError::Retryable`] instead of waiting its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement sees what was committed before it.
    #[default]
    ReadCommitted,
    /// The transaction sees what was committed before its first statement.
    RepeatableRead,
    /// As if transactions ran one after the other.
    Serializable,
}

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
    let begin = match isolation {
        Isolation::ReadCommitted => "BEGIN ISOLATION LEVEL READ COMMITTED",
        Isolation::RepeatableRead => "BEGIN ISOLATION LEVEL REPEATABLE READ",
        Isolation::Serializable => "BEGIN ISOLATION LEVEL SERIALIZABLE",
    };
    let transaction = pool.begin_with(begin).await.map_err(sort)?;
    let claim = claim.clone();
    Unadmitted { transaction, claim }.admit().await
}

/// Begins a transaction, at READ COMMITTED, without admitting the claim yet: for a resource that first looks whether the
/// request was completed before.
///
/// # Errors
///
/// [`GuardError`] when the database cannot be reached.
pub async fn open(pool: &PgPool, claim: &Claim) -> Result<Unadmitted, GuardError> {
    let transaction = pool
        .begin_with("BEGIN ISOLATION LEVEL READ COMMITTED")
        .await
        .map_err(sort)?;
    let claim = claim.clone();
    Ok(Unadmitted { transaction, claim })
}

/// Raises the mark in a transaction of its own: after a grant, and before the first read that a write will depend on.
///
/// # Errors
///
/// [`GuardError`]; after [`GuardError::Unknown`] the mark may have been raised: raise it again.
pub async fn raise_mark(pool: &PgPool, claim: &Claim) -> Result<Receipt, GuardError> {
    let mut opened = open(pool, claim).await?;
    let xid = present(&mut opened.transaction, claim, RAISE_MARK).await?;
    let guarded = opened.admitted(xid);
    guarded.commit(Effect::NoWrite("raised the mark".into())).await
}

/// Admits a claim in a transaction that the caller has begun, and will commit. It holds the key to that transaction's end.
/// There is no receipt: this crate vouches only for a COMMIT that it sent, as [`Guarded::commit`] does.
///
/// # Errors
///
/// [`GuardError`]; the transaction has failed and must be rolled back.
pub async fn admit(connection: &mut PgConnection, claim: &Claim) -> Result<(), GuardError> {
    present(connection, claim, ADMIT).await.map(|_xid| ())
}

/// Presents the claim, and returns the transaction's id.
async fn present(
    connection: &mut PgConnection,
    claim: &Claim,
    statement: &'static str,
) -> Result<String, GuardError> {
    let ((), xid): ((), String) = ::sqlx::query_as(statement)
        .bind(claim.class.as_str())
        .bind(claim.key.as_str())
        .bind(claim.token.as_i64())
        .bind(claim.grant_id.as_ref().map(|grant_id| grant_id.as_str()))
        .fetch_one(connection)
        .await
        .map_err(|error| sort_at(error, Phase::Statement, slice::from_ref(claim)))?;
    Ok(xid)
}

/// A transaction whose claim is not admitted yet. Dropping it rolls back.
#[must_use]
#[derive(Debug)]
pub struct Unadmitted {
    transaction: Transaction<'static, Postgres>,
    claim: Claim,
}

impl Unadmitted {
    /// The connection, for a look at what was completed before.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    /// Admits the claim. What was read before may have changed meanwhile: look again before writing.
    ///
    /// # Errors
    ///
    /// [`GuardError`]: a refusal, or what kept the database from deciding. Nothing was written.
    pub async fn admit(mut self) -> Result<Guarded, GuardError> {
        let xid = present(&mut self.transaction, &self.claim, ADMIT).await?;
        Ok(self.admitted(xid))
    }

    /// Ends the transaction without a write, for a request that was completed before and whose stored answer is given
    /// again, whatever its token.
    ///
    /// # Errors
    ///
    /// [`GuardError::Unavailable`] when the connection is lost.
    pub async fn replay(self) -> Result<Receipt, GuardError> {
        self.transaction.rollback().await.map_err(sort)?;
        Ok(Receipt::danger_assume(self.claim, Effect::Replayed))
    }

    fn admitted(self, xid: String) -> Guarded {
        Guarded {
            transaction: self.transaction,
            claim: self.claim,
            xid,
        }
    }
}

/// A transaction that has admitted its claim, and holds the claim's key until it ends. Dropping it rolls back: then the
/// admission was no contact.
#[must_use]
#[derive(Debug)]
pub struct Guarded {
    transaction: Transaction<'static, Postgres>,
    claim: Claim,
    xid: String,
}

impl Guarded {
    /// The connection, for the writes. A nested [`begin`](::sqlx::Connection::begin) on it makes a savepoint, for what may
    /// be undone while the admission stays; end it or drop it, but do not leak it. Do not end the transaction on it.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
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
    pub async fn commit(mut self, effect: Effect) -> Result<Receipt, GuardError> {
        // sqlx does not show COMMIT's tag. The server commits if the transaction is still there and has not failed, which
        // this statement finds out; nothing can come between it and COMMIT on the same connection.
        let xid: Option<String> = ::sqlx::query_scalar(STILL_OPEN)
            .fetch_one(&mut *self.transaction)
            .await
            .map_err(|error| sort_at(error, Phase::Statement, slice::from_ref(&self.claim)))?;
        if xid.as_ref() != Some(&self.xid) {
            let source = Box::new(EndedInside);
            return Err(GuardError::Unknown { source });
        }
        self.transaction
            .commit()
            .await
            .map_err(|error| sort_at(error, Phase::Commit, slice::from_ref(&self.claim)))?;
        Ok(Receipt::danger_assume(self.claim, effect))
    }

    /// Rolls back, and waits for it.
    ///
    /// # Errors
    ///
    /// [`GuardError::Unavailable`] when the connection is lost; the server rolls back then, too.
    pub async fn rollback(self) -> Result<(), GuardError> {
        self.transaction.rollback().await.map_err(sort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emitted_sql_is_the_one_on_file() {
        for (emitted, on_file) in [
            (ADMIT, include_str!("../../tests/emitted/mark_admit.sql")),
            (RAISE_MARK, include_str!("../../tests/emitted/mark_raise.sql")),
            (
                STILL_OPEN,
                include_str!("../../tests/emitted/mark_commit_check.sql"),
            ),
        ] {
            assert_eq!(on_file.trim_end(), format!("{emitted};"));
        }
    }
}
