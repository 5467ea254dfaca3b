//! The digest of a guard, as it stands on disk now.

use std::io;
use std::path::{Path, PathBuf};

use fence_pg::GuardSha256;

use crate::regular;

/// A folder of SQL, or a file in it, cannot be read. Correct `guard_sql` or `defeat_sql`, or make it readable.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub(crate) struct GuardError {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// Over the SQL in all these folders, each counted once.
pub(crate) fn sha256<'a>(folders: impl Iterator<Item = &'a Path>) -> Result<String, GuardError> {
    let mut folders: Vec<&Path> = folders.collect();
    folders.sort();
    folders.dedup();
    let mut files = Vec::new();
    for folder in folders {
        let failed = |source| GuardError {
            path: folder.to_owned(),
            source,
        };
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "sql") {
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                files.push((name, regular::read(&path).map_err(failed)?));
            }
        }
    }
    Ok(GuardSha256::of(files).to_string())
}
