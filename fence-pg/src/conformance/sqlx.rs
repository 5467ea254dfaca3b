//! This crate's own use of sqlx.

use ::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use ::sqlx::{Arguments as _, AssertSqlSafe, Executor as _, PgPool, Row as _};
use fence_core::{Claim, Effect, Key, Receipt};

use super::{Driver, End};
use crate::bounds::Bounds;
use crate::column::ColumnGuard;
use crate::completed::{IdempotentRequest, StoredAnswer};
use crate::error::GuardError;
use crate::isolation::Isolation;
use crate::outcome::{BatchError, Resolved, RowOutcome, Written};
use crate::sqlx as guards;

/// A pool of one connection, without prepared statements that are kept.
#[derive(Clone, Debug)]
pub struct Sqlx {
    pool: PgPool,
}

impl Sqlx {
    /// Connects to this URL.
    ///
    /// # Errors
    ///
    /// sqlx's own, when the URL is none or nobody answers.
    pub async fn connect(url: &str) -> Result<Sqlx, ::sqlx::Error> {
        let options: PgConnectOptions = url.parse()?;
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .connect_with(options.statement_cache_capacity(0))
            .await?;
        Ok(Sqlx { pool })
    }
}

impl Driver for Sqlx {
    async fn write(
        &mut self,
        isolation: Isolation,
        claims: &[Claim],
        statements: &[&str],
        end: End,
    ) -> Result<Vec<Receipt>, GuardError> {
        if let [claim] = claims {
            let mut guarded = guards::begin_at(&self.pool, isolation, claim).await?;
            run_all(guarded.connection(), statements, &end).await?;
            match end {
                End::Commit(effect) | End::CommitDespite(effect) => {
                    return Ok(vec![guarded.commit(effect).await?]);
                }
                End::RollBack => guarded.rollback().await?,
                End::Drop => drop(guarded),
            }
            return Ok(Vec::new());
        }
        let mut guarded = guards::begin_many(&self.pool, isolation, claims).await?;
        run_all(guarded.connection(), statements, &end).await?;
        match end {
            End::Commit(effect) | End::CommitDespite(effect) => return guarded.commit(effect).await,
            End::RollBack => guarded.rollback().await?,
            End::Drop => drop(guarded),
        }
        Ok(Vec::new())
    }

    async fn write_at_once(
        &mut self,
        isolation: Isolation,
        claim: &Claim,
        statement: &str,
    ) -> Result<Written, GuardError> {
        guards::write_at_once(&self.pool, isolation, claim, statement).await
    }

    async fn write_once(
        &mut self,
        claim: &Claim,
        request: &IdempotentRequest,
        statement: &str,
        answer: &StoredAnswer,
    ) -> Result<(Receipt, Option<StoredAnswer>), GuardError> {
        match guards::begin_once(&self.pool, claim, request).await? {
            guards::Once::New(mut new) => {
                run_all(new.connection(), &[statement], &End::RollBack).await?;
                let receipt = new.complete(answer).await?.commit(Effect::Applied).await?;
                Ok((receipt, Some(answer.clone())))
            }
            guards::Once::Replayed(replay) => {
                let (receipt, answer) = replay.receipt().await?;
                Ok((receipt, Some(answer)))
            }
            guards::Once::Reused(guarded) => {
                let receipt = guarded
                    .commit(Effect::NoWrite("the key was reused".into()))
                    .await?;
                Ok((receipt, None))
            }
        }
    }

    async fn raise_mark(&mut self, claim: &Claim) -> Result<Receipt, GuardError> {
        guards::raise_mark(&self.pool, claim).await
    }

    async fn resolve(
        &mut self,
        claim: &Claim,
        statement: &str,
        request_id: &str,
    ) -> Result<Resolved, GuardError> {
        guards::resolve(&self.pool, claim, statement, request_id).await
    }

    async fn update(
        &mut self,
        isolation: Isolation,
        guard: &ColumnGuard,
        claim: &Claim,
        set: &str,
        number: i64,
    ) -> Result<Receipt, GuardError> {
        let bounds = Bounds::default().at(isolation);
        let mut transaction = guards::begin_column(&self.pool, guard, claim, bounds).await?;
        transaction.update(set, "", |params| params.add(number)).await?;
        transaction.commit(Effect::Applied).await
    }

    async fn update_all(
        &mut self,
        isolation: Isolation,
        guard: &ColumnGuard,
        claims: &[Claim],
        set: &str,
        number: i64,
    ) -> Result<Vec<Receipt>, BatchError> {
        let bounds = Bounds::default().at(isolation);
        let mut batch = guards::begin_batch(&self.pool, guard, claims, bounds).await?;
        batch.update_all(set, "", |params| params.add(number)).await?;
        Ok(batch.commit(Effect::Applied).await?)
    }

    async fn update_each(
        &mut self,
        isolation: Isolation,
        guard: &ColumnGuard,
        claims: &[Claim],
        set: &str,
        number: i64,
    ) -> Result<Vec<(Key, RowOutcome<()>)>, GuardError> {
        let bounds = Bounds::default().at(isolation);
        let mut batch = guards::begin_batch(&self.pool, guard, claims, bounds).await?;
        let outcomes = batch.update_each(set, "", |params| params.add(number)).await?;
        drop(batch.commit(Effect::Applied).await?);
        let each = outcomes.into_iter();
        Ok(each.map(|(key, outcome)| (key, outcome.map(drop))).collect())
    }

    async fn run(&mut self, statements: &str) -> Result<(), GuardError> {
        let done = self
            .pool
            .execute(::sqlx::raw_sql(AssertSqlSafe(statements)))
            .await;
        done.map(drop).map_err(guards::sort)
    }

    async fn number(&mut self, query: &str) -> Result<i64, GuardError> {
        // As a text: a pooler may part the messages of a prepared query that stands outside a transaction.
        let row = ::sqlx::raw_sql(AssertSqlSafe(query))
            .fetch_one(&self.pool)
            .await
            .map_err(guards::sort)?;
        row.try_get(0).map_err(guards::sort)
    }
}

async fn run_all(
    connection: &mut ::sqlx::PgConnection,
    statements: &[&str],
    end: &End,
) -> Result<(), GuardError> {
    for statement in statements {
        let done = connection
            .execute(::sqlx::raw_sql(AssertSqlSafe(*statement)))
            .await;
        if let (Err(error), false) = (done, matches!(end, End::CommitDespite(_))) {
            return Err(guards::sort(error));
        }
    }
    Ok(())
}
