use std::net::SocketAddr;
use std::str::FromStr;

use clap::Parser;
use sqlx::postgres::PgConnectOptions;

use super::run::EXIT_CODES;
use super::work::JOBS_EXIT_CODES;

/// The routes, the headers, and an example that can be pasted.
const USAGE: &str = include_str!("usage.txt");

/// A small payments service whose transfers are refused under a stale fencing token.
#[derive(Debug, Parser)]
#[command(name = "paydb", version, after_help = EXIT_CODES,
    after_long_help = format!("{USAGE}\n{EXIT_CODES}"))]
pub struct Options {
    /// Where to listen; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "LISTEN",
        default_value = "127.0.0.1:8080"
    )]
    pub listen: SocketAddr,
    /// The database, such as postgres://user:password@127.0.0.1/paydb
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: DatabaseUrl,
    /// What is logged on standard error: error, warn, info (refusals too), debug (every request), trace, or off
    #[arg(long, value_name = "LEVEL", env = "PAYDB_LOG", default_value = "warn")]
    pub log: tracing_subscriber::filter::LevelFilter,
}

/// Makes the transfers that paydb has accepted to be made later, each under the token of its request, and ends when none is
/// left. Run it as often as you like; several may run at once.
#[derive(Debug, Parser)]
#[command(name = "paydb-jobs", version, after_help = JOBS_EXIT_CODES)]
pub struct JobsOptions {
    /// paydb's database, such as postgres://user:password@127.0.0.1/paydb
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: DatabaseUrl,
    /// What is logged on standard error: error, warn, info, debug, trace, or off
    #[arg(long, value_name = "LEVEL", env = "PAYDB_LOG", default_value = "warn")]
    pub log: tracing_subscriber::filter::LevelFilter,
}

/// A PostgreSQL database's address, checked for its form.
#[derive(Clone, Debug)]
pub struct DatabaseUrl(PgConnectOptions);

impl DatabaseUrl {
    /// What sqlx connects with.
    pub(super) fn connect_options(&self) -> PgConnectOptions {
        self.0.clone()
    }
}

impl FromStr for DatabaseUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<DatabaseUrl, String> {
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err("write postgres://USER:PASSWORD@HOST:PORT/DATABASE".to_owned());
        }
        text.parse()
            .map(DatabaseUrl)
            .map_err(|error: sqlx::Error| error.to_string())
    }
}
