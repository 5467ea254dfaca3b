//! The column guard on several rows at once.

use std::collections::HashMap;

use ::tokio_postgres::types::{ToSql, Type};
use ::tokio_postgres::{Client, Row};
use fence_core::{Claim, Effect, Key, Receipt};

use super::column::{begin_bounded, explain};
use super::held::Held;
use super::key_text::KeyTexts;
use super::{sort, sort_at};
use crate::bounds::Bounds;
use crate::column::{ColumnGuard, EXPLAIN_BLOCKS};
use crate::error::{GuardError, Phase};
use crate::outcome::{BatchError, Look, RowOutcome, Untouched, distinct, gather};

/// Begins a transaction for the claims of several rows under the column guard. The same claim twice counts once.
///
/// # Errors
///
/// [`GuardError::Unavailable`] when the connection is lost; [`GuardError::Misuse`] when one key comes with two tokens.
pub async fn begin_batch<'a>(
    client: &'a mut Client,
    guard: &ColumnGuard,
    claims: &[Claim],
    bounds: Bounds,
) -> Result<ColumnBatch<'a>, GuardError> {
    let claims = distinct(claims)?;
    Ok(ColumnBatch {
        held: begin_bounded(client, bounds).await?,
        guard: guard.clone(),
        updated: claims.iter().map(|_| false).collect(),
        claims,
        asked: false,
    })
}

/// A transaction on several rows under the column guard. Dropping it rolls back.
#[must_use]
#[derive(Debug)]
pub struct ColumnBatch<'a> {
    held: Held<'a>,
    guard: ColumnGuard,
    claims: Vec<Claim>,
    /// Of each claim, whether its row was updated.
    updated: Vec<bool>,
    asked: bool,
}

impl ColumnBatch<'_> {
    /// Updates the row of every claim, or none: each one's token is stored in it, provided that the row's is not above. Returns
    /// the rows in the claims' order; their last column is the text of the key, `fence_key`. A batch without claims updates nothing
    /// and returns nothing.
    ///
    /// `set` and `returning` are as in [`ColumnTransaction::update`](super::ColumnTransaction::update), the same for all rows;
    /// `params` are numbered from `$3` on and come with their types. Two batches that take the same rows in different orders
    /// may end as [`GuardError::Retryable`].
    ///
    /// # Errors
    ///
    /// [`BatchError::Rows`] names every stale and every absent row; nothing was updated, and the transaction is over.
    pub async fn update_all(
        &mut self,
        set: &str,
        returning: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, BatchError> {
        let outcomes = self.update_each(set, returning, params).await?;
        let gathered = gather(&self.claims, outcomes);
        if gathered.is_err() {
            self.held.roll_back().await?;
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
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<(Key, RowOutcome<Row>)>, GuardError> {
        self.held.check_open()?;
        self.asked = true;
        if self.claims.is_empty() {
            return Ok(Vec::new());
        }
        let (keys, tokens) = self.arrays();
        let mut all: Vec<(&(dyn ToSql + Sync), Type)> =
            vec![(&keys, Type::UNKNOWN), (&tokens, Type::INT8_ARRAY)];
        all.extend_from_slice(params);
        let sql = self.guard.batch_sql("$1", set, returning);
        let rows = match self.held.client().query_typed(&sql, &all).await {
            Ok(rows) => rows,
            Err(error) => {
                return Err(match sort_at(error, Phase::Statement, &self.claims) {
                    GuardError::Blocked { .. } => self.name_blockers().await,
                    sorted => sorted,
                });
            }
        };
        let mut found: HashMap<String, Row> = HashMap::new();
        for row in rows {
            if found.insert(row.get(row.len() - 1), row).is_some() {
                self.held.roll_back().await?;
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
                        return Err(explain(self.held.client(), &self.guard, claim).await);
                    }
                },
            };
            outcomes.push((claim.key.clone(), outcome));
        }
        if let Some(key) = found.into_keys().next() {
            self.held.roll_back().await?;
            return Err(GuardError::other_keys(&key));
        }
        Ok(outcomes)
    }

    /// The connection, for further statements of the same transaction. Rows other than the claims' are not guarded. Do not end
    /// the transaction on it.
    pub fn client(&self) -> &Client {
        self.held.client()
    }

    /// Commits, provided that a guarded update was asked for, and gives a receipt for each claim whose row was updated.
    ///
    /// # Errors
    ///
    /// As [`ColumnTransaction::commit`](super::ColumnTransaction::commit).
    pub async fn commit(mut self, effect: Effect) -> Result<Vec<Receipt>, GuardError> {
        self.held.check_open()?;
        if !self.asked {
            return Err(GuardError::Misuse("a commit without a guarded update"));
        }
        self.held.commit(&self.claims).await?;
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
    pub async fn rollback(mut self) -> Result<(), GuardError> {
        self.held.roll_back().await
    }

    fn arrays(&self) -> (KeyTexts, Vec<i64>) {
        let keys = self.claims.iter().map(|claim| claim.key.as_str());
        let tokens = self.claims.iter().map(|claim| claim.token.as_i64());
        (KeyTexts::new(keys), tokens.collect())
    }

    async fn look(&self) -> Result<HashMap<String, Look>, GuardError> {
        let (keys, tokens) = self.arrays();
        let params: [(&(dyn ToSql + Sync), Type); 2] = [(&keys, Type::UNKNOWN), (&tokens, Type::INT8_ARRAY)];
        let sql = self.guard.look_sql("$1");
        let rows = self
            .held
            .client()
            .query_typed(&sql, &params)
            .await
            .map_err(sort)?;
        Ok(rows
            .iter()
            .map(|row| (row.get(0), (row.get(1), row.get(2))))
            .collect())
    }

    /// Who is in the way, asked after a rollback, as a failed transaction answers nothing.
    async fn name_blockers(&mut self) -> GuardError {
        let mut by = None;
        if self.held.roll_back().await.is_ok() {
            let (relation, key_column, _) = self.guard.names();
            let keys: Vec<&str> = self.claims.iter().map(|claim| claim.key.as_str()).collect();
            let params: [(&(dyn ToSql + Sync), Type); 3] = [
                (&relation, Type::TEXT),
                (&key_column, Type::TEXT),
                (&keys, Type::TEXT_ARRAY),
            ];
            if let Ok(rows) = self.held.client().query_typed(EXPLAIN_BLOCKS, &params).await {
                by = rows.first().and_then(|row| row.get(0));
            }
        }
        GuardError::Blocked { by }
    }
}
