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
    /// The ledger names a file that this release does not have, so the database's guard is newer: this release would take
    /// it back. Install with the newer release, or leave the guard as it is.
    #[error("the database's guard is newer, it has {name}")]
    Newer {
        /// The file.
        name: String,
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
/// What it holds. A ledger from before there were digests has no such column.
pub(crate) const ROWS: &str = "SELECT m.name, to_jsonb(m) ->> 'sha256' FROM fence.migration m";

/// Records a file and its digest.
pub(crate) const RECORD: &str = "INSERT INTO fence.migration (name, sha256) VALUES ($1, $2) \
    ON CONFLICT (name) DO UPDATE SET sha256 = EXCLUDED.sha256, applied_at = clock_timestamp()";

/// What is to be applied to a database with this ledger of names and digests, in order: from the first file that it lacks, or
/// has otherwise, all of them, because a later file may replace what an earlier one made.
pub(crate) fn pending(ledger: &[(String, Option<String>)]) -> Result<&'static [Migration], InstallError> {
    let newer = ledger
        .iter()
        .find(|(name, _)| !MIGRATIONS.iter().any(|migration| migration.name == name));
    if let Some((name, _)) = newer {
        return Err(InstallError::Newer { name: name.clone() });
    }
    let in_place = |migration: &Migration| {
        let sha256 = migration.sha256();
        ledger
            .iter()
            .any(|(name, recorded)| name == migration.name && recorded.as_deref() == Some(&sha256))
    };
    let first = MIGRATIONS
        .iter()
        .position(|migration| !in_place(migration))
        .unwrap_or(MIGRATIONS.len());
    Ok(&MIGRATIONS[first..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Vec<(String, Option<String>)> {
        MIGRATIONS
            .iter()
            .map(|migration| (migration.name.to_owned(), Some(migration.sha256())))
            .collect()
    }

    #[test]
    fn everything_from_the_first_file_that_differs_is_applied_again() {
        assert_eq!(pending(&[]).expect("nothing is newer"), MIGRATIONS);
        assert_eq!(pending(&whole()).expect("nothing is newer"), []);
        for recorded in [None, Some("0".repeat(64))] {
            let mut ledger = whole();
            ledger[2].1 = recorded;
            assert_eq!(pending(&ledger).expect("nothing is newer"), &MIGRATIONS[2..]);
        }
        let mut ledger = whole();
        ledger.swap_remove(1);
        assert_eq!(pending(&ledger).expect("nothing is newer"), &MIGRATIONS[1..]);
    }

    #[test]
    fn a_ledger_with_a_file_of_a_later_release_is_left_alone() {
        let mut ledger = whole();
        ledger.push(("9999_later.sql".to_owned(), None));
        let newer = pending(&ledger).expect_err("this release would take it back");
        assert_eq!(
            newer.to_string(),
            "the database's guard is newer, it has 9999_later.sql"
        );
    }
}
