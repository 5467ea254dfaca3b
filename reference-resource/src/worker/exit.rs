use std::error::Error;
use std::process::ExitCode;

use fence_lock::NotHeld;

/// The exit codes of `paydb-worker`, in words.
pub const EXIT_CODES: &str = "Exit codes:
  0  the job is done: by this run, or found done
  1  the resource refused the job for a reason of its own, or answered what this worker does not know
  2  wrong usage
  3  it is not known whether the write landed, or nothing was written and another try may succeed
  4  the lock store, the resource, the database or the journal cannot be used
  5  the guard refused the token: this worker is not the holder any more
  6  the hold was lost before the work was started";

/// Why the job was not done.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The resource refused the job, or answered what this worker does not know. Look at the job.
    #[error("{step}: refused: {answer}")]
    Refused {
        /// What was tried.
        step: &'static str,
        /// The resource's words.
        answer: String,
    },
    /// The write may have landed, or nothing was written and another try may succeed. Run the worker again: it reads first.
    #[error("{step}: not known to be done: {why}")]
    Unsettled {
        /// What was tried.
        step: &'static str,
        /// What was seen.
        why: String,
    },
    /// A service cannot be reached. Nothing was written.
    #[error("{what} cannot be used")]
    Unreachable {
        /// Which service.
        what: &'static str,
        /// Why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The guard refused the token. Terminal for this grant: never fetch another token for the same work.
    #[error("{step}: fenced: {answer}")]
    Fenced {
        /// What was tried.
        step: &'static str,
        /// The guard's words.
        answer: String,
    },
    /// The hold was lost before the work was started. Nothing was written.
    #[error("the hold was lost before anything was sent")]
    NotHeld(#[source] NotHeld),
}

impl WorkerError {
    pub(super) fn unreachable(
        what: &'static str,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> WorkerError {
        WorkerError::Unreachable {
            what,
            source: source.into(),
        }
    }

    /// The process's exit code, as [`EXIT_CODES`] lists them.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            WorkerError::Refused { .. } => 1,
            WorkerError::Unsettled { .. } => 3,
            WorkerError::Unreachable { .. } => 4,
            WorkerError::Fenced { .. } => 5,
            WorkerError::NotHeld(_) => 6,
        })
    }
}
