//! What can go wrong with a database, and what the person at the terminal does about it.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgDatabaseError, PgSslMode};

use crate::exit::Failure;

/// There is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    /// The URL is wrong.
    #[error("the database URL is not of the form postgresql://USER@HOST:PORT/NAME")]
    Url(#[source] sqlx::Error),
    /// The URL is for something else.
    #[error("the database URL begins with {scheme}, and not with postgresql")]
    Scheme {
        /// As it is written.
        scheme: String,
    },
    /// The URL has a parameter that does not exist.
    #[error("the database URL has no parameter {name}")]
    Parameter {
        /// As it is written.
        name: String,
    },
    /// A variable of the environment is wrong.
    #[error("{name} is {value:?}, and must be {form}")]
    Variable {
        name: &'static str,
        value: String,
        form: &'static str,
    },
    /// It cannot be reached; the words say what to do.
    #[error("cannot connect to {place}{advice}")]
    Unreached {
        place: String,
        advice: &'static str,
        source: sqlx::Error,
    },
    /// It does not answer.
    #[error("{place} does not answer within {} s", waited.as_secs())]
    Silent { place: String, waited: Duration },
}

impl ConnectError {
    pub(super) fn new(place: String, options: &PgConnectOptions, source: sqlx::Error) -> ConnectError {
        let verifies = matches!(
            options.get_ssl_mode(),
            PgSslMode::VerifyFull | PgSslMode::VerifyCa
        );
        let said = crate::exit::chain(&source);
        let advice = if !verifies {
            ""
        } else if said.contains("UnknownIssuer") || said.contains("BadSignature") {
            ", whose certificate comes from an authority that this machine does not know: name its file in PGSSLROOTCERT, or as sslrootcert in the URL"
        } else if said.contains("NotValidForName") || said.contains("not valid for name") {
            ", whose certificate is for another name: connect by the name that it is for"
        } else if said.contains("does not support TLS") || said.contains("not support SSL") {
            ", which speaks no TLS: a server elsewhere is verified; if nobody can stand between, say sslmode=disable"
        } else {
            ""
        };
        ConnectError::Unreached {
            place,
            advice,
            source,
        }
    }

    pub(super) fn failure(self) -> Failure {
        match self {
            ConnectError::Unreached {
                source: sqlx::Error::Configuration(_),
                ..
            } => Failure::usage(self),
            _ => Failure::service(self),
        }
    }
}

/// The server refused a statement, in its own words.
#[derive(Debug, thiserror::Error)]
#[error("{words}")]
pub(crate) struct ServerError {
    words: String,
}

impl ServerError {
    /// A usage fault when the server answered, a service's when it did not or was busy.
    pub(crate) fn failure(error: sqlx::Error) -> Failure {
        let Some(database) = error
            .as_database_error()
            .and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
        else {
            return Failure::service(error);
        };
        let mut words = format!("{} ({})", database.message(), database.code());
        for (name, part) in [("detail", database.detail()), ("hint", database.hint())] {
            if let Some(part) = part {
                words.push_str(&format!("\n{name}: {part}"));
            }
        }
        let busy = ["55P03", "40001", "40P01", "57014", "57P01", "53300"].contains(&database.code());
        let error = ServerError { words };
        match busy {
            true => Failure::service(error),
            false => Failure::usage(error),
        }
    }
}

/// The guard is not in this database.
#[derive(Debug, thiserror::Error)]
#[error("there is no guard in this database: install it with fence pg migrate")]
pub(super) struct NoGuard;
