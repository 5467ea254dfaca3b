//! What the database's ledger of migrations has, and what it lacks.

use crate::migrate::{MIGRATIONS, Migration};

/// An installation that stopped. What was applied before the failing file stays; apply again when the cause is gone.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A file failed and left nothing behind. Its source says why; most often the role does not own the database.
    #[error("{name} cannot be applied")]
    Migration {
        /// The file.
        name: &'static str,
        /// The driver's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The ledger cannot be read, or the connection is gone.
    #[error("the ledger of migrations cannot be read")]
    Ledger {
        /// The driver's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl InstallError {
    pub(crate) fn ledger(source: impl std::error::Error + Send + Sync + 'static) -> InstallError {
        let source = Box::new(source);
        InstallError::Ledger { source }
    }
}

/// One installer at a time: a session lock, taken before the ledger is read.
pub(crate) const LOCK: &str = "SELECT pg_advisory_lock(7308338731519106924)";
/// Lets the next installer go on.
pub(crate) const UNLOCK: &str = "SELECT pg_advisory_unlock(7308338731519106924)";
/// Whether there is a ledger.
pub(crate) const EXISTS: &str = "SELECT to_regclass('fence.migration') IS NOT NULL";
/// What it holds.
pub(crate) const NAMES: &str = "SELECT name FROM fence.migration";

/// Records a file that does not record itself.
pub(crate) const RECORD: &str = "INSERT INTO fence.migration (name) VALUES ($1) ON CONFLICT DO NOTHING";

/// What the ledger lacks, in order.
pub(crate) fn missing(ledger: &[String]) -> impl Iterator<Item = Migration> + '_ {
    MIGRATIONS
        .iter()
        .copied()
        .filter(|migration| !ledger.iter().any(|name| name == migration.name))
}
