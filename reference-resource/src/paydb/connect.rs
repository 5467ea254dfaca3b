//! The first connection to the database, and what to check when there is none.

use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};

/// How long a database that starts at the same time is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long until the next try.
const PAUSE: Duration = Duration::from_millis(100);

/// The database cannot be reached. The source is the server's or the system's own reason; `check` says what to look at.
#[derive(Debug, thiserror::Error)]
#[error("the database at {address} cannot be reached; {check}")]
pub struct ConnectError {
    address: String,
    check: String,
    source: Reason,
}

/// Why, in the words of whoever knows.
#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error(transparent)]
    Driver(sqlx::Error),
    #[error("no answer within {PATIENCE:?}")]
    Silent,
}

/// Connects once, and lets go again: a pool would only say that its time ran out.
pub(super) async fn try_out(options: &PgConnectOptions) -> Result<(), ConnectError> {
    let began = Instant::now();
    loop {
        let left = PATIENCE.saturating_sub(began.elapsed());
        let reason = match tokio::time::timeout(left, PgConnection::connect_with(options)).await {
            Ok(Ok(connection)) => {
                // It has answered; whether it takes the farewell is no matter.
                let _ = connection.close().await;
                return Ok(());
            }
            Ok(Err(error)) => Reason::Driver(error),
            Err(_) => Reason::Silent,
        };
        if began.elapsed() + PAUSE >= PATIENCE || !may_pass(&reason) {
            return Err(ConnectError {
                address: address(options),
                check: check(&reason, options),
                source: reason,
            });
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether the database may only be starting.
fn may_pass(reason: &Reason) -> bool {
    match reason {
        Reason::Driver(sqlx::Error::Io(error)) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        Reason::Driver(error) => code(error).is_some_and(|code| code == "57P03"),
        Reason::Silent => false,
    }
}

fn check(reason: &Reason, options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or(options.get_username());
    match reason {
        Reason::Silent => "check the host and port, and what filters between".to_owned(),
        Reason::Driver(sqlx::Error::Io(_)) => {
            "check that PostgreSQL runs there, and the host and port".to_owned()
        }
        Reason::Driver(error) => match code(error).as_deref() {
            Some("3D000") => format!("create the database, such as with createdb {database}"),
            Some(code) if code.starts_with("28") => {
                "check the user and password, and the server's pg_hba.conf".to_owned()
            }
            _ => "check the address and the server's log".to_owned(),
        },
    }
}

fn code(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

fn address(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    }
}
