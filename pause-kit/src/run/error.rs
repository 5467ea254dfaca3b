//! Why a run could not go on.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use fence_core::TierName;

use crate::services::{SpawnError, WaitLineError};
use crate::target::{MissingValue, Place};

/// The run could not go on, so that it shows nothing.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file that the target names cannot be read. Correct the path.
    #[error("cannot read {}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file of SQL fails. Correct the line.
    #[error("{}:{line}: {why}", path.display())]
    Sql {
        /// The file.
        path: PathBuf,
        /// The line at which PostgreSQL points, from 1.
        line: usize,
        /// The SQLSTATE and message.
        why: String,
    },
    /// What is declared at this place does not fit the target: a step that is refused, a table that is not there, a gate at
    /// which no holder stands. Correct it there.
    #[error("{at}: {why}")]
    Declared {
        /// The way to what was declared.
        at: Place,
        /// What is wrong with it, and what was found instead.
        why: String,
    },
    /// A text of the target holds a placeholder that has no value there. Correct the text.
    #[error(transparent)]
    Value(MissingValue),
    /// A program of the target cannot be started. Build it, or correct its path.
    #[error("a program could not be started")]
    Spawn(#[source] SpawnError),
    /// The resource cannot be waited for. The reaper has gone, and the resource with it.
    #[error("the resource did not start")]
    NotReady(#[source] WaitLineError),
    /// The services hold no lock store for a tier.
    #[error("no lock store runs for tier \"{tier}\"")]
    NoStore {
        /// The tier.
        tier: TierName,
    },
    /// A service or a part of the kit failed.
    #[error("{what}")]
    Lost {
        /// What could not be done.
        what: String,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl RunError {
    /// Whether `fence.toml`, or a file that it names, is at fault and not a service.
    pub fn is_in_configuration(&self) -> bool {
        matches!(
            self,
            RunError::File { .. } | RunError::Sql { .. } | RunError::Declared { .. } | RunError::Value(_)
        )
    }

    /// The way to what was declared wrongly, where the fault can be told to stand there.
    pub fn place(&self) -> Option<&Place> {
        match self {
            RunError::Declared { at, .. } => Some(at),
            _ => None,
        }
    }

    /// For `map_err`: PostgreSQL refuses SQL that is declared at this place. Anything but an answer is the service's fault.
    pub(crate) fn sql(at: Place, what: String) -> impl FnOnce(tokio_postgres::Error) -> RunError {
        move |source| match source.as_db_error() {
            Some(_) => RunError::Declared {
                at,
                why: format!("{what}: {}", crate::scenario::said(&source)),
            },
            None => RunError::lost(&what)(source),
        }
    }

    pub(crate) fn lost<E: Into<Box<dyn Error + Send + Sync>>>(what: &str) -> impl Fn(E) -> RunError {
        let what = what.to_owned();
        move |source| RunError::Lost {
            what: what.clone(),
            source: source.into(),
        }
    }

    pub(crate) fn file(path: &Path) -> impl Fn(io::Error) -> RunError {
        let path = path.to_owned();
        move |source| RunError::File {
            path: path.clone(),
            source,
        }
    }
}
