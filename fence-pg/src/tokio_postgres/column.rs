//! The guarded transaction of the column guard.

use std::pin::pin;
use std::slice;
use std::task::{Context, Waker};

use ::tokio_postgres::types::ToSql;
use ::tokio_postgres::{Client, Row, SimpleQueryMessage};
use fence_core::{Claim, Effect, Receipt};

use super::bounds::Bounds;
use super::key_text::KeyText;
use super::statement::{COMMIT, ColumnGuard, EXPLAIN_BLOCK, EXPLAIN_COLUMN};
use super::{sort, sort_at};
use crate::error::{EndedInside, GuardError, Phase};

impl ColumnGuard {
    /// Begins a transaction for one claim, at the session's isolation level, with its bounds set.
    ///
    /// # Errors
    ///
    /// [`GuardError::Unavailable`] when the connection is lost.
    pub async fn begin<'a>(
        &self,
        client: &'a mut Client,
        claim: &Claim,
        bounds: Bounds,
    ) -> Result<ColumnTransaction<'a>, GuardError> {
        // Made before BEGIN is sent, so that a caller who gives up waiting leaves no transaction open.
        let mut transaction = ColumnTransaction {
            client,
            guard: self.clone(),
            claim: claim.clone(),
            xid: None,
            open: true,
            updated: false,
        };
        let answer = transaction.client.simple_query(&bounds.begin_sql()).await;
        transaction.xid = last_value(&answer.map_err(sort)?);
        Ok(transaction)
    }
}

/// A transaction under the column guard. Dropping it rolls back.
#[must_use]
#[derive(Debug)]
pub struct ColumnTransaction<'a> {
    client: &'a mut Client,
    guard: ColumnGuard,
    claim: Claim,
    xid: Option<String>,
    open: bool,
    updated: bool,
}

impl ColumnTransaction<'_> {
    /// Updates the claim's row, provided that its token is not above the claim's, and stores the claim's token in it:
    ///
    /// `UPDATE "table" SET "token" = $2, <set> WHERE "key" = $1 AND "token" <= $2 RETURNING <returning>`
    ///
    /// `set` and `returning` are SQL and may be empty; `params` are numbered from `$3` on.
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
        self.check_open()?;
        let key = KeyText(self.claim.key.as_str());
        let token = self.claim.token.as_i64();
        let mut all: Vec<&(dyn ToSql + Sync)> = vec![&key, &token];
        all.extend_from_slice(params);
        let sql = self.guard.update_sql(set, returning);
        let rows = match self.client.query(&sql, &all).await {
            Ok(rows) => rows,
            Err(error) => {
                return Err(
                    match sort_at(error, Phase::Statement, slice::from_ref(&self.claim)) {
                        GuardError::Blocked { .. } => self.name_blocker().await,
                        sorted => sorted,
                    },
                );
            }
        };
        let mut rows = rows.into_iter();
        match (rows.next(), rows.next()) {
            (Some(row), None) => {
                self.updated = true;
                Ok(row)
            }
            (None, _) => Err(self.explain().await),
            (Some(_), Some(_)) => {
                self.roll_back().await;
                Err(GuardError::Misuse("the key column does not name one row"))
            }
        }
    }

    /// The connection, for further statements of the same transaction. Rows other than the claim's are not guarded. Do not
    /// end the transaction on it.
    pub fn client(&self) -> &Client {
        self.client
    }

    /// Commits, provided that at least one guarded update was made.
    ///
    /// # Errors
    ///
    /// [`GuardError::Unknown`] when the answer to COMMIT did not come, or the transaction had been ended inside; any other
    /// [`GuardError`] when nothing was committed, such as after a failed statement, which the server would answer with
    /// ROLLBACK.
    pub async fn commit(mut self, effect: Effect) -> Result<Receipt, GuardError> {
        self.check_open()?;
        if !self.updated {
            return Err(GuardError::Misuse("a commit without a guarded update"));
        }
        let answer = self.client.simple_query(COMMIT).await;
        let answer = answer.map_err(|error| sort_at(error, Phase::Commit, slice::from_ref(&self.claim)))?;
        self.open = false;
        if self.xid.is_none() || last_value(&answer) != self.xid {
            let source = Box::new(EndedInside);
            return Err(GuardError::Unknown { source });
        }
        Ok(Receipt::danger_assume(self.claim.clone(), effect))
    }

    /// Rolls back, and waits for it.
    ///
    /// # Errors
    ///
    /// [`GuardError::Unavailable`] when the connection is lost; the server rolls back then, too.
    pub async fn rollback(mut self) -> Result<(), GuardError> {
        self.check_open()?;
        self.client.batch_execute("ROLLBACK").await.map_err(sort)?;
        self.open = false;
        Ok(())
    }

    fn check_open(&self) -> Result<(), GuardError> {
        if self.open {
            Ok(())
        } else {
            Err(GuardError::Misuse("the transaction has ended"))
        }
    }

    /// Why no row was updated, asked in the same transaction.
    async fn explain(&mut self) -> GuardError {
        let (relation, key_column, token_column) = self.guard.names();
        let (key, token) = (self.claim.key.as_str(), self.claim.token.as_i64());
        let params: [&(dyn ToSql + Sync); 5] = [&relation, &key_column, &token_column, &key, &token];
        match self.client.query(EXPLAIN_COLUMN, &params).await {
            Ok(_) => GuardError::NotFound,
            Err(error) => sort_at(error, Phase::Statement, slice::from_ref(&self.claim)),
        }
    }

    /// Who is in the way, asked after a rollback, as a failed transaction answers nothing.
    async fn name_blocker(&mut self) -> GuardError {
        let mut by = None;
        if self.roll_back().await {
            let (relation, key_column, _) = self.guard.names();
            let params: [&(dyn ToSql + Sync); 3] = [&relation, &key_column, &self.claim.key.as_str()];
            if let Ok(row) = self.client.query_one(EXPLAIN_BLOCK, &params).await {
                by = row.get(0);
            }
        }
        GuardError::Blocked { by }
    }

    async fn roll_back(&mut self) -> bool {
        let rolled_back = self.client.batch_execute("ROLLBACK").await.is_ok();
        self.open = !rolled_back;
        rolled_back
    }
}

impl Drop for ColumnTransaction<'_> {
    fn drop(&mut self) {
        if self.open {
            // Polled once, the request is in the connection's queue, ahead of whatever the client sends next; nobody waits
            // for its answer.
            let sent =
                pin!(self.client.batch_execute("ROLLBACK")).poll(&mut Context::from_waker(Waker::noop()));
            drop(sent);
        }
    }
}

fn last_value(answer: &[SimpleQueryMessage]) -> Option<String> {
    answer
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
        .next_back()
}
