//! SQL that stands in files: the guard's, and what defeats it.

use std::path::{Path, PathBuf};

use tokio_postgres::Client;
use tokio_postgres::error::ErrorPosition;

use crate::run::RunError;

/// A file of SQL.
pub(crate) struct SqlFile {
    path: PathBuf,
    text: String,
}

/// Every `*.sql` of a folder in name order, as it stands there now.
pub(crate) fn read(folder: &Path) -> Result<Vec<SqlFile>, RunError> {
    let failed = RunError::file(folder);
    let entries = std::fs::read_dir(folder).map_err(&failed)?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()
        .map_err(&failed)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    paths.sort();
    paths.iter().map(|path| one(path)).collect()
}

/// One file.
pub(crate) fn one(path: &Path) -> Result<SqlFile, RunError> {
    let text = std::fs::read_to_string(path).map_err(RunError::file(path))?;
    Ok(SqlFile {
        path: path.to_owned(),
        text,
    })
}

impl SqlFile {
    /// Runs it.
    pub(crate) async fn apply(&self, sql: &Client) -> Result<(), RunError> {
        sql.batch_execute(&self.text).await.map_err(|error| {
            let position = error
                .as_db_error()
                .and_then(|error| error.position())
                .map(|position| match position {
                    ErrorPosition::Original(at) => *at,
                    ErrorPosition::Internal { .. } => 1,
                });
            let before = self
                .text
                .chars()
                .take(position.unwrap_or(1).saturating_sub(1) as usize);
            RunError::Sql {
                path: self.path.clone(),
                line: before.filter(|character| *character == '\n').count() + 1,
                why: crate::scenario::said(&error),
            }
        })
    }
}
