//! The guard's SQL, as it stands in `fence-pg/sql/`, and the digest by which a proof names it.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// One file of `fence-pg/sql/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The file's name, such as `0001_ledger.sql`: its place in the order, and its row in `fence.migration`.
    pub name: &'static str,
    /// What it holds: one transaction that may be applied again.
    pub sql: &'static str,
}

impl Migration {
    /// The SHA-256 of its text, in 64 hex digits, as the ledger records it.
    pub fn sha256(&self) -> String {
        hex::encode(Sha256::digest(self.sql))
    }
}

/// Every file of `fence-pg/sql/`, in name order.
pub const MIGRATIONS: &[Migration] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// The SHA-256 of a guard: of its files' names and contents, in name order. Displays as 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GuardSha256([u8; 32]);

impl GuardSha256 {
    /// The digest of files that were read elsewhere, given as names without a folder, and contents, in any order.
    pub fn of<N, C>(files: impl IntoIterator<Item = (N, C)>) -> GuardSha256
    where
        N: AsRef<str>,
        C: AsRef<[u8]>,
    {
        let mut files: Vec<(N, C)> = files.into_iter().collect();
        files.sort_by(|a, b| a.0.as_ref().cmp(b.0.as_ref()));
        let mut sha = Sha256::new();
        for (name, content) in &files {
            for part in [name.as_ref().as_bytes(), content.as_ref()] {
                // Each part with its length, so that no two lists run together into one text.
                sha.update((part.len() as u64).to_be_bytes());
                sha.update(part);
            }
        }
        GuardSha256(sha.finalize().into())
    }
}

impl fmt::Display for GuardSha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// The digest of [`MIGRATIONS`].
pub fn guard_sha256() -> GuardSha256 {
    GuardSha256::of(MIGRATIONS.iter().map(|migration| (migration.name, migration.sql)))
}
