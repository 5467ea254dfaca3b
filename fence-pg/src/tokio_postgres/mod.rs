//! The column guard over tokio-postgres: the token is compared, and stored, by the UPDATE of the guarded row itself.
//!
//! ```no_run
//! # async fn settle(client: &mut tokio_postgres::Client, claim: &fence_core::Claim) -> Result<(), Box<dyn std::error::Error>> {
//! use fence_pg::tokio_postgres::{Bounds, ColumnGuard};
//!
//! let guard = ColumnGuard::new("settlement_batch", "id", "fence_token")?;
//! let mut transaction = guard.begin(client, claim, Bounds::default()).await?;
//! let row = transaction.update("state = $3", "amount", &[&"claimed"]).await?; // a stale claim ends here
//! let amount: i64 = row.get("amount");
//! transaction.update("state = $3, settled_total = $4", "", &[&"settled", &amount]).await?;
//! let receipt = transaction.commit(fence_core::Effect::Applied).await?;
//! # drop(receipt);
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//!
//! The mark lives and dies with its row: a row that was deleted and inserted again has lost it. There is no grant id, so a
//! collision is not seen. A statement that forgets the token is not refused. Nothing raises the mark ahead of the write, so
//! use it only for writes that depend on no earlier read, or that read by UPDATE .. RETURNING, as above. Where any of that
//! hurts, use the mark guard.

mod bounds;
mod column;
mod install;
mod key_text;
mod statement;

pub use bounds::{BOUNDS_SQL, Bounds, BoundsError};
pub use column::ColumnTransaction;
pub use install::{install, pending};
pub use statement::{ColumnGuard, IdentifierError};

use crate::error::{Failure, GuardError, Phase, classify};
use fence_core::Claim;

/// Sorts an error that came from a statement of a guarded transaction, such as one of the caller's own. Not for an error of
/// COMMIT, which [`ColumnTransaction::commit`] sorts itself.
pub fn sort(error: ::tokio_postgres::Error) -> GuardError {
    sort_at(error, Phase::Statement, &[])
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
