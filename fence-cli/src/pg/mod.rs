//! `fence pg`: the guard in a PostgreSQL database.

mod change;
mod connect;
mod evict;
mod fault;
mod migrate;
mod notices;
mod sql;
mod status;
mod uninstall;

use clap::{Args, Subcommand};

pub(crate) use connect::{Database, DatabaseArguments, connect};
pub(crate) use fault::ServerError;
pub(crate) use sql::{literal, names};
pub(crate) use status::Installed;

use crate::exit::{Ending, Failure};
use crate::say;

/// At the end of `fence pg --help`.
const HELP: &str = "\
Everything here is SQL that psql can run as well: --dry-run prints it. Run it as the role that owns the database and the tables
that are guarded; superuser rights are not needed. docs/postgresql.md goes through it in order; fence doctor then says what is
still open.

A server on another machine is verified: sslmode is verify-full unless the URL or PGSSLMODE says otherwise. Name the certificate of
your own authority as sslrootcert in the URL or in PGSSLROOTCERT. Keep a password out of the URL: PGPASSWORD, or .pgpass.";

#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum PgCommand {
    /// Install the guard, or bring it up to date
    Migrate(migrate::MigrateArguments),
    /// Say what is installed, which classes there are, and which tables are guarded
    Status(status::StatusArguments),
    /// Guard a table: refuse, or with --observe count, each write whose transaction did not admit its row's key
    Protect(change::ProtectArguments),
    /// Refuse from now on what a class in observe or standby mode has let through
    Enforce(change::EnforceArguments),
    /// Take the guard off a table; its marks stay
    Unprotect(change::UnprotectArguments),
    /// Let an application's role use the guard, and nothing else of it
    Grant(change::GrantArguments),
    /// Free a key that an older holder's open transaction keeps, by ending that transaction
    Evict(evict::EvictArguments),
    /// Remove the guard from the database, with every mark
    Uninstall(uninstall::UninstallArguments),
}

/// How a command answers.
#[derive(Debug, Args)]
pub(crate) struct AnswerArguments {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a command that changes something answers.
#[derive(Debug, Args)]
struct ChangeArguments {
    #[command(flatten)]
    database: DatabaseArguments,
    #[command(flatten)]
    answer: AnswerArguments,
    /// Print the SQL, for psql, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs one of the subcommands.
pub(crate) fn run(command: &PgCommand) -> Result<Ending, Failure> {
    let (json, ended) = match command {
        PgCommand::Migrate(arguments) => (arguments.json(), block_on(migrate::run(arguments))),
        PgCommand::Status(arguments) => (arguments.json(), block_on(status::run(arguments))),
        PgCommand::Protect(arguments) => (arguments.json(), block_on(change::protect(arguments))),
        PgCommand::Enforce(arguments) => (arguments.json(), block_on(change::enforce(arguments))),
        PgCommand::Unprotect(arguments) => (arguments.json(), block_on(change::unprotect(arguments))),
        PgCommand::Grant(arguments) => (arguments.json(), block_on(change::grant(arguments))),
        PgCommand::Evict(arguments) => (arguments.json(), block_on(evict::run(arguments))),
        PgCommand::Uninstall(arguments) => (arguments.json(), block_on(uninstall::run(arguments))),
    };
    told(json, ended)
}

/// The same result, said as JSON too when it is a failure and JSON was asked for.
pub(crate) fn told(json: bool, ended: Result<Ending, Failure>) -> Result<Ending, Failure> {
    if let (true, Err(failure)) = (json, &ended) {
        say::show(&format!("{:#}\n", failure.json()));
    }
    ended
}

/// Runs what talks to a server.
pub(crate) fn block_on<F>(work: F) -> Result<Ending, Failure>
where
    F: Future<Output = Result<Ending, Failure>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::service)?;
    runtime.block_on(work)
}

impl ChangeArguments {
    /// Prints the SQL, when that is all that was asked for.
    fn dry(&self, sql: &str) -> Result<bool, Failure> {
        if self.dry_run {
            match self.answer.json {
                true => say::answer(&format!("{:#}\n", serde_json::json!({ "sql": sql })))?,
                false => say::answer(&format!("{sql}\n"))?,
            }
        }
        Ok(self.dry_run)
    }

    /// Connects to a database that has the guard.
    async fn guarded(&self, command: &str) -> Result<Database, Failure> {
        let mut database = self.database.connect(command).await?;
        match database.has_guard().await? {
            true => Ok(database),
            false => Err(Failure::usage(fault::NoGuard)),
        }
    }
}
