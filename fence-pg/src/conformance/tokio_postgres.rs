//! This crate's own use of tokio-postgres.

use ::tokio_postgres::types::{ToSql, Type};
use ::tokio_postgres::{Client, NoTls};
use fence_core::{Claim, Effect, Key, Receipt};

use super::{Driver, End};
use crate::bounds::Bounds;
use crate::column::ColumnGuard;
use crate::completed::{IdempotentRequest, StoredAnswer};
use crate::error::GuardError;
use crate::isolation::Isolation;
use crate::outcome::{BatchError, Resolved, RowOutcome, Written};
use crate::tokio_postgres as guards;

/// A client without TLS, by unnamed statements alone.
#[derive(Debug)]
pub struct TokioPostgres {
    client: Client,
}

impl TokioPostgres {
    /// Connects to this URL.
    ///
    /// # Errors
    ///
    /// tokio-postgres's own, when the URL is none or nobody answers.
    pub async fn connect(url: &str) -> Result<TokioPostgres, ::tokio_postgres::Error> {
        let (client, connection) = ::tokio_postgres::connect(url, NoTls).await?;
        // It ends with the client, and the client's own calls return its errors.
        tokio::spawn(connection);
        Ok(TokioPostgres { client })
    }
}

impl Driver for TokioPostgres {
    async fn write(
        &mut self,
        isolation: Isolation,
        claims: &[Claim],
        statements: &[&str],
        end: End,
    ) -> Result<Vec<Receipt>, GuardError> {
        if let [claim] = claims {
            let guarded = guards::begin_at(&mut self.client, isolation, claim).await?;
            run_all(guarded.client(), statements, &end).await?;
            match end {
                End::Commit(effect) | End::CommitDespite(effect) => {
                    return Ok(vec![guarded.commit(effect).await?]);
                }
                End::RollBack => guarded.rollback().await?,
                End::Drop => drop(guarded),
            }
            return Ok(Vec::new());
        }
        let guarded = guards::begin_many(&mut self.client, isolation, claims).await?;
        run_all(guarded.client(), statements, &end).await?;
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
        guards::write_at_once(&mut self.client, isolation, claim, statement, &[]).await
    }

    async fn write_once(
        &mut self,
        claim: &Claim,
        request: &IdempotentRequest,
        statement: &str,
        answer: &StoredAnswer,
    ) -> Result<(Receipt, Option<StoredAnswer>), GuardError> {
        match guards::begin_once(&mut self.client, claim, request).await? {
            guards::Once::New(new) => {
                run_all(new.client(), &[statement], &End::RollBack).await?;
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
        guards::raise_mark(&mut self.client, claim).await
    }

    async fn resolve(
        &mut self,
        claim: &Claim,
        statement: &str,
        request_id: &str,
    ) -> Result<Resolved, GuardError> {
        guards::resolve(&mut self.client, claim, statement, request_id).await
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
        let mut transaction = guards::begin_column(&mut self.client, guard, claim, bounds).await?;
        let params: [(&(dyn ToSql + Sync), Type); 1] = [(&number, Type::INT8)];
        transaction.update_typed(set, "", &params).await?;
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
        let mut batch = guards::begin_batch(&mut self.client, guard, claims, bounds).await?;
        let params: [(&(dyn ToSql + Sync), Type); 1] = [(&number, Type::INT8)];
        batch.update_all(set, "", &params).await?;
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
        let mut batch = guards::begin_batch(&mut self.client, guard, claims, bounds).await?;
        let params: [(&(dyn ToSql + Sync), Type); 1] = [(&number, Type::INT8)];
        let outcomes = batch.update_each(set, "", &params).await?;
        drop(batch.commit(Effect::Applied).await?);
        let each = outcomes.into_iter();
        Ok(each.map(|(key, outcome)| (key, outcome.map(drop))).collect())
    }

    async fn run(&mut self, statements: &str) -> Result<(), GuardError> {
        self.client.batch_execute(statements).await.map_err(guards::sort)
    }

    async fn number(&mut self, query: &str) -> Result<i64, GuardError> {
        let row = self
            .client
            .query_typed_one(query, &[])
            .await
            .map_err(guards::sort)?;
        row.try_get(0).map_err(guards::sort)
    }
}

async fn run_all(client: &Client, statements: &[&str], end: &End) -> Result<(), GuardError> {
    for statement in statements {
        let done = client.batch_execute(statement).await;
        if let (Err(error), false) = (done, matches!(end, End::CommitDespite(_))) {
            return Err(guards::sort(error));
        }
    }
    Ok(())
}
