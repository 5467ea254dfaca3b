//! The column guard on several rows at once.

use std::collections::HashMap;

use ::sqlx::postgres::{PgArguments, PgRow};
use ::sqlx::{Arguments as _, PgConnection, PgPool, Row as _};
use fence_core::{Claim, Effect, Key, Receipt};

use super::column::{Bound, Opened, unencoded};
use super::sort;
use crate::bounds::Bounds;
use crate::column::ColumnGuard;
use crate::error::GuardError;
use crate::outcome::{BatchError, Look, RowOutcome, Untouched, distinct, gather};

/// Begins a transaction for the claims of several rows under the column guard. The same claim twice counts once.
///
/// # Errors
///
/// [`GuardError::Unavailable`] when the connection is lost; [`GuardError::Misuse`] when one key comes with two tokens.
pub async fn begin_batch(
    pool: &PgPool,
    guard: &ColumnGuard,
    claims: &[Claim],
    bounds: Bounds,
) -> Result<ColumnBatch, GuardError> {
    let claims = distinct(claims)?;
    Ok(ColumnBatch {
        opened: Opened::begin(pool, guard, bounds).await?,
        updated: claims.iter().map(|_| false).collect(),
        claims,
        asked: false,
    })
}

/// A transaction on several rows under the column guard. Dropping it rolls back.
#[must_use]
#[derive(Debug)]
pub struct ColumnBatch {
    opened: Opened,
    claims: Vec<Claim>,
    /// Of each claim, whether its row was updated.
    updated: Vec<bool>,
    asked: bool,
}

impl ColumnBatch {
    /// Updates the row of every claim, or none: each one's token is stored in it, provided that the row's is not above. Returns
    /// the rows in the claims' order; their last column is the text of the key, `fence_key`. A batch without claims updates nothing
    /// and returns nothing.
    ///
    /// `set`, `returning` and `bind` are as in [`ColumnTransaction::update`](super::ColumnTransaction::update), the same for
    /// all rows. Two batches that take the same rows in different orders may end as [`GuardError::Retryable`].
    ///
    /// # Errors
    ///
    /// [`BatchError::Rows`] names every stale and every absent row; nothing was updated, and the transaction is over.
    pub async fn update_all(
        &mut self,
        set: &str,
        returning: &str,
        bind: impl FnOnce(&mut PgArguments) -> Bound + Send,
    ) -> Result<Vec<PgRow>, BatchError> {
        let outcomes = self.update_each(set, returning, bind).await?;
        let gathered = gather(&self.claims, outcomes);
        if gathered.is_err() {
            self.opened.held.roll_back_and_stay().await?;
        }
        gathered
    }

    /// Updates the row of each claim whose token allows it, and says of each, in the claims' order, what it came to. What was
    /// updated is committed with the rest.
    ///
    /// # Errors
    ///
    /// [`GuardError`]; the transaction has failed and can only be dropped.
    pub async fn update_each(
        &mut self,
        set: &str,
        returning: &str,
        bind: impl FnOnce(&mut PgArguments) -> Bound + Send,
    ) -> Result<Vec<(Key, RowOutcome<PgRow>)>, GuardError> {
        self.opened.held.check_open()?;
        self.asked = true;
        if self.claims.is_empty() {
            return Ok(Vec::new());
        }
        let mut arguments = self.arrays()?;
        bind(&mut arguments).map_err(unencoded)?;
        let sql = self.opened.guard.batch_sql(&self.keys(), set, returning);
        let rows = match self.opened.query(sql, arguments).await {
            Ok(rows) => rows,
            Err(error) => return Err(self.opened.sort(error, &self.claims).await),
        };
        let mut found: HashMap<String, PgRow> = HashMap::new();
        for row in rows {
            if found
                .insert(row.try_get(row.len() - 1).map_err(sort)?, row)
                .is_some()
            {
                self.opened.held.roll_back_and_stay().await?;
                return Err(GuardError::Misuse("the key column does not name one row"));
            }
        }
        let looks = if found.len() < self.claims.len() {
            self.look().await?
        } else {
            HashMap::new()
        };
        let mut outcomes = Vec::with_capacity(self.claims.len());
        for (claim, updated) in self.claims.iter().zip(&mut self.updated) {
            let outcome = match found.remove(claim.key.as_str()) {
                Some(row) => {
                    *updated = true;
                    RowOutcome::Applied(row)
                }
                None => match Untouched::from_look(looks.get(claim.key.as_str())) {
                    Untouched::Stale { seen } => RowOutcome::Stale { seen },
                    Untouched::NotFound => RowOutcome::NotFound,
                    Untouched::NullToken | Untouched::Replaced => {
                        return Err(self.opened.explain(claim).await);
                    }
                },
            };
            outcomes.push((claim.key.clone(), outcome));
        }
        if let Some(key) = found.into_keys().next() {
            self.opened.held.roll_back_and_stay().await?;
            return Err(GuardError::other_keys(&key));
        }
        Ok(outcomes)
    }

    /// The connection, for further statements of the same transaction. Rows other than the claims' are not guarded. Do not end
    /// the transaction on it.
    pub fn connection(&mut self) -> &mut PgConnection {
        self.opened.held.connection()
    }

    /// Commits, provided that a guarded update was asked for, and gives a receipt for each claim whose row was updated.
    ///
    /// # Errors
    ///
    /// As [`ColumnTransaction::commit`](super::ColumnTransaction::commit).
    pub async fn commit(self, effect: Effect) -> Result<Vec<Receipt>, GuardError> {
        self.opened.held.check_open()?;
        if !self.asked {
            return Err(GuardError::Misuse("a commit without a guarded update"));
        }
        self.opened.held.commit(&self.opened.xid, &self.claims).await?;
        let updated = self.claims.iter().zip(&self.updated);
        Ok(updated
            .filter(|(_, updated)| **updated)
            .map(|(claim, _)| Receipt::danger_assume(claim.clone(), effect.clone()))
            .collect())
    }

    /// Rolls back, and waits for it.
    ///
    /// # Errors
    ///
    /// [`GuardError::Unavailable`] when the connection is lost; the server rolls back then, too.
    pub async fn rollback(self) -> Result<(), GuardError> {
        self.opened.held.roll_back().await
    }

    fn keys(&self) -> String {
        format!("$1::text[]::{}[]", self.opened.key_type)
    }

    fn arrays(&self) -> Result<PgArguments, GuardError> {
        let mut arguments = PgArguments::default();
        let keys: Vec<&str> = self.claims.iter().map(|claim| claim.key.as_str()).collect();
        let tokens: Vec<i64> = self.claims.iter().map(|claim| claim.token.as_i64()).collect();
        arguments.add(keys).map_err(unencoded)?;
        arguments.add(tokens).map_err(unencoded)?;
        Ok(arguments)
    }

    async fn look(&mut self) -> Result<HashMap<String, Look>, GuardError> {
        let sql = self.opened.guard.look_sql(&self.keys());
        let arguments = self.arrays()?;
        let mut looks = HashMap::new();
        for row in self.opened.query(sql, arguments).await.map_err(sort)? {
            let look = (row.try_get(1).map_err(sort)?, row.try_get(2).map_err(sort)?);
            looks.insert(row.try_get(0).map_err(sort)?, look);
        }
        Ok(looks)
    }
}
