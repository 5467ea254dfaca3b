//! Which database, and the connection to it.

use std::time::Duration;

use clap::Args;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions, PgSslMode};
use sqlx::{ConnectOptions as _, Connection as _, PgPool};

use super::fault::{ConnectError, ServerError};
use super::notices::Notices;
use crate::exit::Failure;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);

/// The database that a command is for.
#[derive(Debug, Args)]
pub(crate) struct DatabaseArguments {
    /// The database, as postgresql://USER@HOST/NAME [default: what the PG* variables and .pgpass say]
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,
}

/// A connection, and what the server says beside its answers.
pub(crate) struct Database {
    pub(crate) connection: PgConnection,
    pub(crate) notices: Notices,
}

impl DatabaseArguments {
    /// The database at this address.
    pub(crate) fn at(url: &str) -> DatabaseArguments {
        DatabaseArguments {
            database_url: Some(url.to_owned()),
        }
    }

    /// Connects, for a guard that takes its connection from a pool.
    pub(crate) async fn pool(&self, command: &str) -> Result<PgPool, Failure> {
        let options = self.options().map_err(Failure::usage)?;
        let options = options.application_name(command).disable_statement_logging();
        let place = place(&options);
        let connecting = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(CONNECT)
            .connect_with(options.clone());
        connecting
            .await
            .map_err(|error| ConnectError::new(place, &options, error).failure())
    }

    /// Connects. The server sees the command's name as the session's application.
    pub(crate) async fn connect(&self, command: &str) -> Result<Database, Failure> {
        let notices = Notices::listen();
        let options = self.options().map_err(Failure::usage)?;
        let options = options.application_name(command).disable_statement_logging();
        let place = place(&options);
        let connecting = PgConnection::connect_with(&options);
        let connection = match tokio::time::timeout(CONNECT, connecting).await {
            Ok(connected) => {
                connected.map_err(|error| ConnectError::new(place, &options, error).failure())?
            }
            Err(_) => {
                return Err(Failure::service(ConnectError::Silent {
                    place,
                    waited: CONNECT,
                }));
            }
        };
        Ok(Database { connection, notices })
    }

    fn options(&self) -> Result<PgConnectOptions, ConnectError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        // The driver passes over what it does not understand here, and would go on without it.
        if let Some(mode) = variable("PGSSLMODE") {
            mode.parse::<PgSslMode>().map_err(|_| ConnectError::Variable {
                name: "PGSSLMODE",
                value: mode,
                form: "verify-full, verify-ca, require, prefer, allow or disable",
            })?;
        }
        if let Some(port) = variable("PGPORT") {
            port.parse::<u16>().map_err(|_| ConnectError::Variable {
                name: "PGPORT",
                value: port,
                form: "a number, 1 to 65535",
            })?;
        }
        let options = match &self.database_url {
            None => PgConnectOptions::new(),
            Some(url) => {
                require_postgresql(url)?;
                require_known_parameters(url)?;
                url.parse().map_err(ConnectError::Url)?
            }
        };
        let said = variable("PGSSLMODE").is_some()
            || self
                .database_url
                .as_deref()
                .is_some_and(|url| parameters(url).any(|(name, _)| is_ssl_mode(name)));
        Ok(match said || is_local(&options) {
            true => options,
            false => options.ssl_mode(PgSslMode::VerifyFull),
        })
    }
}

impl Database {
    /// Runs statements as one text, as psql would be given them.
    pub(crate) async fn run(&mut self, sql: &str) -> Result<Vec<sqlx::postgres::PgRow>, Failure> {
        use sqlx::Executor as _;
        let rows = self
            .connection
            .fetch_all(sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())))
            .await;
        rows.map_err(ServerError::failure)
    }

    /// Whether the guard is there.
    pub(crate) async fn has_guard(&mut self) -> Result<bool, Failure> {
        use sqlx::Row as _;
        let rows = self
            .run("SELECT to_regclass('fence.migration') IS NOT NULL AS there")
            .await?;
        match rows.first() {
            Some(row) => row.try_get("there").map_err(ServerError::failure),
            None => Ok(false),
        }
    }

    /// Ends the session in order.
    pub(crate) async fn close(self) {
        // Whatever it was asked for has been answered.
        let _ = self.connection.close().await;
    }
}

/// Connects to the database of a URL; beside the connection, where it is in words, without a password.
pub(crate) async fn connect(url: &str, command: &str) -> Result<(PgConnection, String), Failure> {
    let arguments = DatabaseArguments {
        database_url: Some(url.to_owned()),
    };
    let options = arguments.options().map_err(Failure::usage)?;
    let place = place(&options);
    let database = arguments.connect(command).await?;
    Ok((database.connection, place))
}

/// Where the server is, in words, without a password.
fn place(options: &PgConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => options.get_host().to_owned(),
    };
    format!(
        "database {} at {host}:{} as {}",
        options.get_database().unwrap_or_else(|| options.get_username()),
        options.get_port(),
        options.get_username()
    )
}

/// Whether the server is on this machine, where nobody stands between.
fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<std::net::IpAddr>();
    options.get_socket().is_some()
        || host.starts_with('/')
        || host == "localhost"
        || address.is_ok_and(|address| address.is_loopback())
}

fn is_ssl_mode(name: &str) -> bool {
    matches!(name, "sslmode" | "ssl-mode")
}

/// The parameters of a URL, as they are written.
fn parameters(url: &str) -> impl Iterator<Item = (&str, &str)> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    query
        .split('&')
        .filter(|part| !part.is_empty())
        .map(|part| part.split_once('=').unwrap_or((part, "")))
}

/// What the driver knows; it would pass over anything else, such as a parameter that is spelt wrong.
const KNOWN: [&str; 17] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// The driver takes any scheme.
fn require_postgresql(url: &str) -> Result<(), ConnectError> {
    match url.split_once("://") {
        Some((scheme, _)) if scheme != "postgresql" && scheme != "postgres" => Err(ConnectError::Scheme {
            scheme: scheme.to_owned(),
        }),
        _ => Ok(()),
    }
}

fn require_known_parameters(url: &str) -> Result<(), ConnectError> {
    for (name, _) in parameters(url) {
        if !KNOWN.contains(&name) && !name.starts_with("options[") {
            return Err(ConnectError::Parameter {
                name: name.to_owned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(url: &str) -> Result<PgConnectOptions, ConnectError> {
        DatabaseArguments {
            database_url: Some(url.to_owned()),
        }
        .options()
    }

    fn mode(url: &str) -> PgSslMode {
        options(url).expect("the URL is sound").get_ssl_mode()
    }

    #[test]
    fn a_server_elsewhere_is_verified_unless_it_is_said_otherwise() {
        assert!(matches!(
            mode("postgresql://u@db.example/x"),
            PgSslMode::VerifyFull
        ));
        assert!(matches!(mode("postgresql://u@10.0.0.1/x"), PgSslMode::VerifyFull));
        assert!(matches!(
            mode("postgresql://u@db.example/x?sslmode=require"),
            PgSslMode::Require
        ));
        assert!(matches!(
            mode("postgresql://u@db.example/x?application_name=a&sslmode=verify-ca"),
            PgSslMode::VerifyCa
        ));
        for local in ["localhost", "127.0.0.1", "[::1]", "%2Frun%2Fpostgresql"] {
            assert!(
                matches!(mode(&format!("postgresql://u@{local}/x")), PgSslMode::Prefer),
                "{local}"
            );
        }
    }

    #[test]
    fn a_parameter_that_nobody_would_heed_is_refused() {
        let refused = options("postgresql://u@db.example/x?sslmod=disable").expect_err("it is spelt wrong");
        assert_eq!(refused.to_string(), "the database URL has no parameter sslmod");
    }

    #[test]
    fn the_place_names_no_password() {
        let options = options("postgresql://u:secret@db.example:5433/x").expect("the URL is sound");
        assert_eq!(place(&options), "database x at db.example:5433 as u");
    }
}
