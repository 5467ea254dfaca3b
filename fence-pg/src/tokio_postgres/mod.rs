//! Both guards over tokio-postgres. Under the mark guard a transaction begins with its admission and ends with a receipt:
//!
//! ```no_run
//! # async fn pay(client: &mut tokio_postgres::Client, claim: &fence_core::Claim) -> Result<(), Box<dyn std::error::Error>> {
//! use tokio_postgres::types::Type;
//!
//! let guarded = fence_pg::tokio_postgres::begin(client, claim).await?; // a stale claim ends here
//! let insert = "INSERT INTO transfer (from_account, amount) VALUES ($1, 5)";
//! guarded.client().execute_typed(insert, &[(&claim.key.as_str(), Type::TEXT)]).await?;
//! let receipt = guarded.commit(fence_core::Effect::Applied).await?;
//! # drop(receipt);
//! # Ok(())
//! # }
//! ```
//!
//! Under the column guard the token is compared, and stored, by the UPDATE of the guarded row itself; its limits are those of
//! [`ColumnGuard`]:
//!
//! ```no_run
//! # async fn settle(client: &mut tokio_postgres::Client, claim: &fence_core::Claim) -> Result<(), Box<dyn std::error::Error>> {
//! use fence_pg::{Bounds, ColumnGuard};
//!
//! let guard = ColumnGuard::new("settlement_batch", "id", "fence_token")?;
//! let mut transaction = fence_pg::tokio_postgres::begin_column(client, &guard, claim, Bounds::default()).await?;
//! let row = transaction.update("state = $3", "amount", &[&"claimed"]).await?; // a stale claim ends here
//! let amount: i64 = row.get("amount");
//! transaction.update("state = $3, settled_total = $4", "", &[&"settled", &amount]).await?;
//! let receipt = transaction.commit(fence_core::Effect::Applied).await?;
//! # drop(receipt);
//! # Ok(())
//! # }
//! ```
//!
//! The guard's own statements are unnamed, so that all of this works behind a transaction pooler, as long as the caller's are
//! too: `query_typed` and its like, and [`ColumnTransaction::update_typed`].

mod at_once;
mod batch;
mod column;
mod guarded;
mod held;
mod install;
mod key_text;
mod once;
mod resolve;

pub use at_once::{raise_mark, write_at_once};
pub use batch::{ColumnBatch, begin_batch};
pub use column::{ColumnTransaction, begin_column};
pub use guarded::{Guarded, GuardedMany, Unadmitted, admit, admit_many, begin, begin_at, begin_many, open};
pub use install::{install, pending};
pub use once::{NewRequest, Once, Replay, begin_once};
pub use resolve::resolve;

// What both drivers share, within reach of either.
pub use crate::bounds::{BOUNDS_SQL, Bounds, BoundsError};
pub use crate::column::{ColumnGuard, IdentifierError};
pub use crate::isolation::Isolation;

use crate::error::{Failure, GuardError, Phase, classify};
use fence_core::Claim;

/// Sorts an error that came from a statement of a guarded transaction, such as one of the caller's own. Not for an error of
/// COMMIT, which [`ColumnTransaction::commit`] sorts itself.
pub fn sort(error: ::tokio_postgres::Error) -> GuardError {
    sort_at(error, Phase::Statement, &[])
}

/// Sorts an error that came from a COMMIT of the caller's own, or from a statement outside a transaction, which commits by
/// itself: [`GuardError::Unknown`] when there was no answer, or none of a server that went on.
pub fn sort_commit(error: ::tokio_postgres::Error) -> GuardError {
    sort_at(error, Phase::Commit, &[])
}

fn sort_at(error: ::tokio_postgres::Error, phase: Phase, claims: &[Claim]) -> GuardError {
    use ::tokio_postgres::error::Severity;

    let failure = match error.as_db_error() {
        Some(server) => Failure::Server {
            sqlstate: server.code().code().to_owned(),
            detail: server.detail().map(str::to_owned),
            message: server.message().to_owned(),
            fatal: match server.parsed_severity() {
                Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
                None => matches!(server.severity(), "FATAL" | "PANIC"),
            },
        },
        None if error.is_closed() || is_io(&error) => Failure::Lost,
        None => Failure::Driver,
    };
    classify(failure, phase, claims, error)
}

fn is_io(error: &::tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}
