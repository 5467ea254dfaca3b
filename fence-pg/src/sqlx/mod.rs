//! Both guards over sqlx. Under the mark guard a transaction begins with its admission and ends with a receipt:
//!
//! ```no_run
//! # async fn pay(pool: &sqlx::PgPool, claim: &fence_core::Claim) -> Result<(), Box<dyn std::error::Error>> {
//! let mut guarded = fence_pg::sqlx::begin(pool, claim).await?; // a stale claim ends here
//! sqlx::query("INSERT INTO transfer (from_account, amount) VALUES ($1, 5)")
//!     .bind(claim.key.as_str())
//!     .execute(guarded.connection())
//!     .await?;
//! let receipt = guarded.commit(fence_core::Effect::Applied).await?;
//! # drop(receipt);
//! # Ok(())
//! # }
//! ```
//!
//! Behind a transaction pooler: a pool made with `statement_cache_capacity(0)`; each query of the caller's with
//! `.persistent(false)`, and, when it has parameters, within a transaction, as sqlx sends it in two parts.

mod at_once;
mod batch;
mod column;
mod guarded;
mod held;
mod install;
mod once;
mod resolve;

pub use at_once::write_at_once;
pub use batch::{ColumnBatch, begin_batch};
pub use column::{ColumnTransaction, begin_column};
pub use guarded::{
    Guarded, GuardedMany, Unadmitted, admit, admit_many, begin, begin_at, begin_many, open, raise_mark,
};
pub use install::{install, pending};
pub use once::{NewRequest, Once, Replay, begin_once};
pub use resolve::resolve;

// What both drivers share, within reach of either.
pub use crate::bounds::{BOUNDS_SQL, Bounds, BoundsError};
pub use crate::column::{ColumnGuard, IdentifierError};
pub use crate::isolation::Isolation;

use crate::error::{Failure, GuardError, Phase, classify};
use fence_core::Claim;

/// Sorts an error that came from a statement of a guarded transaction, such as one of the caller's own writes: the triggers
/// of the guard answer those. Not for an error of COMMIT, which [`Guarded::commit`] sorts itself.
pub fn sort(error: ::sqlx::Error) -> GuardError {
    sort_at(error, Phase::Statement, &[])
}

/// Sorts an error that came from a COMMIT of the caller's own, or from a statement outside a transaction, which commits by
/// itself: [`GuardError::Unknown`] when there was no answer, or none of a server that went on.
pub fn sort_commit(error: ::sqlx::Error) -> GuardError {
    sort_at(error, Phase::Commit, &[])
}

/// A text as an SQL literal, quotes included, for [`write_at_once`].
pub fn literal(text: &str) -> String {
    crate::text::literal(text)
}

fn sort_at(error: ::sqlx::Error, phase: Phase, claims: &[Claim]) -> GuardError {
    use ::sqlx::Error;
    use ::sqlx::postgres::{PgDatabaseError, PgSeverity};

    let failure = match &error {
        Error::Database(database) => match database.try_downcast_ref::<PgDatabaseError>() {
            Some(server) => Failure::Server {
                sqlstate: server.code().to_owned(),
                detail: server.detail().map(str::to_owned),
                message: server.message().to_owned(),
                fatal: matches!(server.severity(), PgSeverity::Fatal | PgSeverity::Panic),
            },
            None => Failure::Driver,
        },
        Error::Io(_)
        | Error::Tls(_)
        | Error::Protocol(_)
        | Error::PoolTimedOut
        | Error::PoolClosed
        | Error::WorkerCrashed
        | Error::BeginFailed => Failure::Lost,
        _ => Failure::Driver,
    };
    classify(failure, phase, claims, error)
}
