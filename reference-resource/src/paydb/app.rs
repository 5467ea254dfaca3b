//! What the handlers are given.

use axum::extract::FromRef;
use fence_core::{Claim, Receipt};
use fence_http::GuardedStore;
use fence_pg::sqlx::{Guarded, Once};
use fence_pg::{GuardError, IdempotentRequest};
use sqlx::PgPool;

use super::metrics::Metrics;
use super::turns::{Turn, Turns};

/// The state of the service.
#[derive(Clone, Debug)]
pub(super) struct App {
    pub(super) pool: PgPool,
    pub(super) metrics: Metrics,
    pub(super) turns: Turns,
}

/// For what is read, and for accounts, whose making nothing guards.
impl FromRef<App> for PgPool {
    fn from_ref(app: &App) -> PgPool {
        app.pool.clone()
    }
}

impl FromRef<App> for Metrics {
    fn from_ref(app: &App) -> Metrics {
        app.metrics.clone()
    }
}

impl FromRef<App> for Ledger {
    fn from_ref(app: &App) -> Ledger {
        Ledger {
            pool: app.pool.clone(),
            metrics: app.metrics.clone(),
            turns: app.turns.clone(),
        }
    }
}

/// The guarded tables. Nothing is written there but in a transaction that a claim has opened.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pool: PgPool,
    metrics: Metrics,
    turns: Turns,
}

impl GuardedStore for Ledger {
    type Transaction = Guarded;
    type Error = GuardError;

    async fn open(&self, claim: &Claim) -> Result<Guarded, GuardError> {
        let waiting = self.metrics.admission(claim);
        waiting.ended(fence_pg::sqlx::begin(&self.pool, claim).await)
    }
}

impl Ledger {
    /// Waits until a request on this claim's key may have a connection of the pool, and keeps that turn until it is dropped.
    pub(super) async fn turn(&self, claim: &Claim) -> Result<Turn, fence_http::Problem> {
        let turn = self.turns.take(&claim.key).await;
        turn.ok_or_else(fence_http::Problem::blocked)
    }

    /// The same for a request that may come again.
    pub(super) async fn open_once(
        &self,
        claim: &Claim,
        request: &IdempotentRequest,
    ) -> Result<Once, GuardError> {
        let waiting = self.metrics.admission(claim);
        waiting.ended(fence_pg::sqlx::begin_once(&self.pool, claim, request).await)
    }

    /// Raises the mark, and commits that.
    pub(super) async fn raise(&self, claim: &Claim) -> Result<Receipt, GuardError> {
        let waiting = self.metrics.admission(claim);
        let raised = waiting.ended(fence_pg::sqlx::raise_mark(&self.pool, claim).await)?;
        self.metrics.raised(claim);
        Ok(raised)
    }
}
