//! The guarded transaction of the column guard.

use ::tokio_postgres::types::{ToSql, Type};
use ::tokio_postgres::{Client, Row};
use fence_core::{Claim, Effect, Receipt};

use super::held::{Held, last_value};
use super::key_text::KeyText;
use super::{sort, sort_at};
use crate::bounds::Bounds;
use crate::column::{ColumnGuard, EXPLAIN_BLOCKS, EXPLAIN_COLUMN};
use crate::error::{GuardError, Phase};

/// Begins a transaction for one claim under the column guard, at the session's isolation level, with its bounds set, in one
/// round trip.
///
/// # Errors
///
/// [`GuardError::Unavailable`] when the connection is lost.
pub async fn begin_column<'a>(
    client: &'a mut Client,
    guard: &ColumnGuard,
    claim: &Claim,
    bounds: Bounds,
) -> Result<ColumnTransaction<'a>, GuardError> {
    Ok(ColumnTransaction {
        held: begin_bounded(client, bounds).await?,
        guard: guard.clone(),
        claim: claim.clone(),
        updated: false,
    })
}

pub(super) async fn begin_bounded(client: &mut Client, bounds: Bounds) -> Result<Held<'_>, GuardError> {
    let mut held = Held::new(client);
    let answer = held.client().simple_query(&bounds.begin_sql()).await;
    let xid = last_value(&answer.map_err(sort)?);
    held.is(xid);
    Ok(held)
}

/// A transaction under the column guard. Dropping it rolls back.
#[must_use]
#[derive(Debug)]
pub struct ColumnTransaction<'a> {
    held: Held<'a>,
    guard: ColumnGuard,
    claim: Claim,
    updated: bool,
}

impl ColumnTransaction<'_> {
    /// Updates the claim's row, provided that its token is not above the claim's, and stores the claim's token in it:
    ///
    /// `UPDATE "table" SET "token" = $2, <set> WHERE "key" = $1 AND "token" <= $2 RETURNING <returning>`
    ///
    /// `set` and `returning` are SQL and may be empty; `params` are numbered from `$3` on. The row's last column is the text of
    /// its key, `fence_key`. The statement is prepared under a
    /// name; behind a transaction pooler use [`update_typed`](ColumnTransaction::update_typed).
    ///
    /// # Errors
    ///
    /// [`GuardError`]; the transaction has failed and can only be dropped.
    pub async fn update(
        &mut self,
        set: &str,
        returning: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, GuardError> {
        self.held.check_open()?;
        let key = KeyText(self.claim.key.as_str());
        let token = self.claim.token.as_i64();
        let mut all: Vec<&(dyn ToSql + Sync)> = vec![&key, &token];
        all.extend_from_slice(params);
        let sql = self.guard.update_sql("$1", set, returning);
        let rows = self.held.client().query(&sql, &all).await;
        self.updated_row(rows).await
    }

    /// The same by an unnamed statement, in one round trip: each parameter comes with its type.
    ///
    /// # Errors
    ///
    /// [`GuardError`]; the transaction has failed and can only be dropped.
    pub async fn update_typed(
        &mut self,
        set: &str,
        returning: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Row, GuardError> {
        self.held.check_open()?;
        let key = KeyText(self.claim.key.as_str());
        let token = self.claim.token.as_i64();
        let mut all: Vec<(&(dyn ToSql + Sync), Type)> = vec![(&key, Type::UNKNOWN), (&token, Type::INT8)];
        all.extend_from_slice(params);
        let sql = self.guard.update_sql("$1", set, returning);
        let rows = self.held.client().query_typed(&sql, &all).await;
        self.updated_row(rows).await
    }

    /// The connection, for further statements of the same transaction. Rows other than the claim's are not guarded. Do not
    /// end the transaction on it.
    pub fn client(&self) -> &Client {
        self.held.client()
    }

    /// Commits, provided that at least one guarded update was made.
    ///
    /// # Errors
    ///
    /// [`GuardError::Unknown`] when the answer to COMMIT did not come, or the transaction had been ended inside; any other
    /// [`GuardError`] when nothing was committed, such as after a failed statement, which the server would answer with
    /// ROLLBACK.
    pub async fn commit(mut self, effect: Effect) -> Result<Receipt, GuardError> {
        self.held.check_open()?;
        if !self.updated {
            return Err(GuardError::Misuse("a commit without a guarded update"));
        }
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

    async fn updated_row(
        &mut self,
        rows: Result<Vec<Row>, ::tokio_postgres::Error>,
    ) -> Result<Row, GuardError> {
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => {
                let sorted = sort_at(error, Phase::Statement, std::slice::from_ref(&self.claim));
                return Err(match sorted {
                    GuardError::Blocked { .. } => self.name_blocker().await,
                    sorted => sorted,
                });
            }
        };
        let mut rows = rows.into_iter();
        match (rows.next(), rows.next()) {
            (Some(row), None) => {
                let found: String = row.try_get(row.len() - 1).map_err(sort)?;
                if found != self.claim.key.as_str() {
                    // Should that fail, dropping this rolls back.
                    let rolled_back = self.held.roll_back().await;
                    drop(rolled_back);
                    return Err(GuardError::other_key(&self.claim, &found));
                }
                self.updated = true;
                Ok(row)
            }
            (None, _) => Err(explain(self.held.client(), &self.guard, &self.claim).await),
            (Some(_), Some(_)) => {
                // Should that fail, dropping this rolls back.
                let rolled_back = self.held.roll_back().await;
                drop(rolled_back);
                Err(GuardError::Misuse("the key column does not name one row"))
            }
        }
    }

    /// Who is in the way, asked after a rollback, as a failed transaction answers nothing.
    async fn name_blocker(&mut self) -> GuardError {
        let mut by = None;
        if self.held.roll_back().await.is_ok() {
            let (relation, key_column, _) = self.guard.names();
            let params: [(&(dyn ToSql + Sync), Type); 3] = [
                (&relation, Type::TEXT),
                (&key_column, Type::TEXT),
                (&vec![self.claim.key.as_str()], Type::TEXT_ARRAY),
            ];
            if let Ok(rows) = self.held.client().query_typed(EXPLAIN_BLOCKS, &params).await {
                by = rows.first().and_then(|row| row.get(0));
            }
        }
        GuardError::Blocked { by }
    }
}

/// Why no row was updated, asked in the same transaction.
pub(super) async fn explain(client: &Client, guard: &ColumnGuard, claim: &Claim) -> GuardError {
    let (relation, key_column, token_column) = guard.names();
    let (key, token) = (claim.key.as_str(), claim.token.as_i64());
    let params: [(&(dyn ToSql + Sync), Type); 5] = [
        (&relation, Type::TEXT),
        (&key_column, Type::TEXT),
        (&token_column, Type::TEXT),
        (&key, Type::TEXT),
        (&token, Type::INT8),
    ];
    let sort = |error| sort_at(error, Phase::Statement, std::slice::from_ref(claim));
    if let Err(error) = client.query_typed(EXPLAIN_COLUMN, &params).await {
        return sort(error);
    }
    let key = KeyText(claim.key.as_str());
    let params: [(&(dyn ToSql + Sync), Type); 1] = [(&key, Type::UNKNOWN)];
    match client.query_typed(&guard.lock_sql("$1"), &params).await {
        Ok(rows) if rows.is_empty() => GuardError::NotFound,
        Ok(_) => GuardError::replaced(),
        Err(error) => sort(error),
    }
}
