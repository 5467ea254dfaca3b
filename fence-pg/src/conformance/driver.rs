//! What a driver is asked to do.

use fence_core::{Claim, Effect, Key, Receipt};

use crate::column::ColumnGuard;
use crate::completed::{IdempotentRequest, StoredAnswer};
use crate::error::GuardError;
use crate::isolation::Isolation;
use crate::outcome::{BatchError, Resolved, RowOutcome, Written};

/// How a guarded transaction ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With COMMIT. A statement that fails is the transaction's outcome.
    Commit(Effect),
    /// With COMMIT, whatever the statements answered.
    CommitDespite(Effect),
    /// With ROLLBACK, awaited.
    RollBack,
    /// By dropping the transaction. No receipt.
    Drop,
}

/// One connection, or a pool of one, and the guards on it.
pub trait Driver {
    /// Admits the claims at this level, runs the statements one after the other in the same transaction, and ends it. A receipt
    /// for each claim, in their order, where it was committed.
    fn write(
        &mut self,
        isolation: Isolation,
        claims: &[Claim],
        statements: &[&str],
        end: End,
    ) -> impl Future<Output = Result<Vec<Receipt>, GuardError>>;

    /// Sends BEGIN, the admission, the statement and COMMIT in one flight.
    fn write_at_once(
        &mut self,
        isolation: Isolation,
        claim: &Claim,
        statement: &str,
    ) -> impl Future<Output = Result<Written, GuardError>>;

    /// Begins a request that may come again. Where it is new, runs the statement, stores the answer and commits. Returns the
    /// answer that is to be given: none where the key is another request's, of which the admission is committed.
    fn write_once(
        &mut self,
        claim: &Claim,
        request: &IdempotentRequest,
        statement: &str,
        answer: &StoredAnswer,
    ) -> impl Future<Output = Result<(Receipt, Option<StoredAnswer>), GuardError>>;

    /// Raises the mark in a transaction of its own.
    fn raise_mark(&mut self, claim: &Claim) -> impl Future<Output = Result<Receipt, GuardError>>;

    /// Looks whether the statement, of which `$1` is the request id, finds what was written.
    fn resolve(
        &mut self,
        claim: &Claim,
        statement: &str,
        request_id: &str,
    ) -> impl Future<Output = Result<Resolved, GuardError>>;

    /// Updates the claim's row under the column guard, at this level, and commits. In `set`, `$3` is the number.
    fn update(
        &mut self,
        isolation: Isolation,
        guard: &ColumnGuard,
        claim: &Claim,
        set: &str,
        number: i64,
    ) -> impl Future<Output = Result<Receipt, GuardError>>;

    /// The same for a batch, whole or not at all.
    fn update_all(
        &mut self,
        isolation: Isolation,
        guard: &ColumnGuard,
        claims: &[Claim],
        set: &str,
        number: i64,
    ) -> impl Future<Output = Result<Vec<Receipt>, BatchError>>;

    /// The same for a batch, row by row.
    fn update_each(
        &mut self,
        isolation: Isolation,
        guard: &ColumnGuard,
        claims: &[Claim],
        set: &str,
        number: i64,
    ) -> impl Future<Output = Result<Vec<(Key, RowOutcome<()>)>, GuardError>>;

    /// Runs statements on the same connection, without any guard.
    fn run(&mut self, statements: &str) -> impl Future<Output = Result<(), GuardError>>;

    /// The one number that a query returns, read on the same connection.
    fn number(&mut self, query: &str) -> impl Future<Output = Result<i64, GuardError>>;
}
