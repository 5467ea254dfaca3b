//! The outcomes of a guarded write that are not `Applied`, and the one place that tells them apart.

use std::error::Error;

use fence_core::Claim;

use crate::refused::{Refused, refused};

/// Why a guarded write did not happen, or may not have happened. There is no true and false here, and no row count.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The guard refused the claim and nothing was written; reads as the refusal itself. Terminal for the grant, but for an
    /// unknown epoch, which may resolve: do not retry, do not fetch a newer token for the same work.
    #[error(transparent)]
    Refused(Refused),
    /// The row is absent, or hidden by row security. Nothing was written.
    #[error("no such row, or none that this role may see")]
    NotFound,
    /// An older holder's open transaction is in the way, and the bound on waiting has passed. Nothing was written. Try the
    /// whole transaction again with the same claim, later.
    #[error("blocked by {}", by.as_deref().unwrap_or("another transaction"))]
    Blocked {
        /// What blocks (pid, application, since when), as far as this role may see it.
        by: Option<String>,
    },
    /// Nothing was written. Try the whole transaction again with the same claim, a bounded number of times.
    #[error("the transaction must be tried again, SQLSTATE {sqlstate}")]
    Retryable {
        /// The server's code, such as `40001`.
        sqlstate: String,
        /// The driver's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The answer to COMMIT did not come, or the transaction was ended inside: the write may have landed. Present the same
    /// write again with the same token, or read back; never report a failure.
    #[error("the outcome is unknown, the write may have landed")]
    Unknown {
        /// What happened instead of an answer.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The database could not be reached, takes no writes at the moment, as a standby does, or the connection was lost before
    /// COMMIT was sent: nothing was written.
    #[error("the database is not available")]
    Unavailable {
        /// The driver's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Any other error of the database or the driver. Nothing was written.
    #[error("the database refused the transaction{}", sqlstate.as_ref().map(|s| format!(", SQLSTATE {s}")).unwrap_or_default())]
    Database {
        /// The server's code, when the error is the server's.
        sqlstate: Option<String>,
        /// The driver's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The guard was used in a way in which it guards nothing. Nothing was written; the program must change.
    #[error("misuse of the guard, {0}")]
    Misuse(&'static str),
}

/// When an error came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before COMMIT was sent.
    Statement,
    /// In answer to COMMIT, or instead of one.
    Commit,
}

/// What went wrong, in no driver's words.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server said so.
    Server {
        sqlstate: String,
        detail: Option<String>,
        message: String,
        /// The server ended the connection with it.
        fatal: bool,
    },
    /// The connection is gone, or was never there.
    Lost,
    /// The driver refused, on this side.
    Driver,
}

/// Tells the outcomes apart. Everything about codes and DETAIL is here, for both drivers.
pub(crate) fn classify(
    failure: Failure,
    phase: Phase,
    claims: &[Claim],
    source: impl Error + Send + Sync + 'static,
) -> GuardError {
    let source: Box<dyn Error + Send + Sync> = Box::new(source);
    let (sqlstate, detail, message, fatal) = match (failure, phase) {
        (Failure::Lost | Failure::Driver, Phase::Commit) => return GuardError::Unknown { source },
        (Failure::Lost, Phase::Statement) => return GuardError::Unavailable { source },
        (Failure::Driver, Phase::Statement) => {
            return GuardError::Database {
                sqlstate: None,
                source,
            };
        }
        (
            Failure::Server {
                sqlstate,
                detail,
                message,
                fatal,
            },
            _,
        ) => (sqlstate, detail, message, fatal),
    };
    // The server ended the connection because the transaction was idle: it had not read a COMMIT.
    if sqlstate == "25P03" {
        return GuardError::Retryable { sqlstate, source };
    }
    // A pooler that lost the server answers in its place, with a connection exception or the server's last words.
    let ended = |code: &str| code.starts_with("08") || code.starts_with("57P");
    if phase == Phase::Commit && (fatal || ended(&sqlstate)) {
        return GuardError::Unknown { source };
    }
    if let Some(refused) = refused(&sqlstate, detail.as_deref(), &message, claims) {
        return GuardError::Refused(refused);
    }
    match sqlstate.as_str() {
        "55P03" => GuardError::Blocked { by: detail },
        // Serialization failure, deadlock, a statement that was cancelled.
        "40001" | "40P01" | "57014" => GuardError::Retryable { sqlstate, source },
        // Read only: a standby, or a primary that was set so; another try may meet the new primary.
        "25006" => GuardError::Unavailable { source },
        code if ended(code) || code.starts_with("53") || code.starts_with("58") => {
            GuardError::Unavailable { source }
        }
        _ => GuardError::Database {
            sqlstate: Some(sqlstate),
            source,
        },
    }
}

/// COMMIT was about to be sent in another transaction than the admitting one.
#[derive(Debug, thiserror::Error)]
#[error("the admitting transaction was ended by another COMMIT or ROLLBACK on its connection")]
pub(crate) struct EndedInside;

/// A row was deleted and another one of its key inserted, while an update of it waited.
#[derive(Debug, thiserror::Error)]
#[error("the row was replaced meanwhile")]
pub(crate) struct Replaced;

impl GuardError {
    /// An update met no row, and now there is one.
    pub(crate) fn replaced() -> GuardError {
        GuardError::Retryable {
            sqlstate: "40001".to_owned(),
            source: Box::new(Replaced),
        }
    }

    /// One of a batch's keys found this row, whose key reads otherwise.
    pub(crate) fn other_keys(found: &str) -> GuardError {
        GuardError::Refused(Refused::WrongKey(format!(
            "a row's key is {found:?}, which was not presented so"
        )))
    }

    /// The claim's key found a row whose key reads otherwise.
    pub(crate) fn other_key(claim: &Claim, found: &str) -> GuardError {
        GuardError::Refused(Refused::WrongKey(format!(
            "presented {:?}, the row's is {found:?}",
            claim.key.as_str()
        )))
    }
}

/// The connection was gone before COMMIT was sent.
#[cfg(feature = "tokio-postgres")]
#[derive(Debug, thiserror::Error)]
#[error("the connection was lost before COMMIT was sent")]
pub(crate) struct ClosedBefore;

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(sqlstate: &str, fatal: bool, phase: Phase) -> &'static str {
        let failure = Failure::Server {
            sqlstate: sqlstate.to_owned(),
            detail: None,
            message: String::new(),
            fatal,
        };
        match classify(failure, phase, &[], EndedInside) {
            GuardError::Blocked { .. } => "blocked",
            GuardError::Retryable { .. } => "retryable",
            GuardError::Unknown { .. } => "unknown",
            GuardError::Unavailable { .. } => "unavailable",
            GuardError::Database { .. } => "database",
            other => panic!("{sqlstate}: {other:?}"),
        }
    }

    #[test]
    fn what_the_server_says_of_itself_is_sorted_by_whether_anything_can_have_landed() {
        for (sqlstate, fatal, statement, commit) in [
            ("25006", false, "unavailable", "unavailable"),
            ("57P01", true, "unavailable", "unknown"),
            ("57P01", false, "unavailable", "unknown"),
            ("57P03", true, "unavailable", "unknown"),
            ("08006", false, "unavailable", "unknown"),
            ("08P01", true, "unavailable", "unknown"),
            ("53300", true, "unavailable", "unknown"),
            ("53100", false, "unavailable", "unavailable"),
            ("57014", false, "retryable", "retryable"),
            ("40001", false, "retryable", "retryable"),
            ("25P03", true, "retryable", "retryable"),
            ("55P03", false, "blocked", "blocked"),
            ("23505", false, "database", "database"),
        ] {
            assert_eq!(
                (
                    sorted(sqlstate, fatal, Phase::Statement),
                    sorted(sqlstate, fatal, Phase::Commit)
                ),
                (statement, commit),
                "{sqlstate}"
            );
        }
    }
}
