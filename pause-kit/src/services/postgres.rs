//! A PostgreSQL server of the run's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

use super::ServiceError;
use super::account::{Account, Folders, write_private};
use super::child::{Child, ProcessSpec};
use super::database_url::{DatabaseUrl, Login};
use super::port::free_port;
use crate::reaper::{Farewell, Owner, Reaper};

const SUPERUSER: &str = "postgres";

/// How long the server may take until it answers.
const START: Duration = Duration::from_secs(60);

/// How many ports are tried when somebody else was quicker.
const PORTS: usize = 8;

/// What the server is set to, besides where it listens.
const SETTINGS: [&str; 11] = [
    // No socket file to be left behind, and no name that two runs could share.
    "unix_socket_directories=",
    "listen_addresses=127.0.0.1",
    // In the data folder, so that it goes with it.
    "dynamic_shared_memory_type=mmap",
    // The order of commits is read by logical decoding.
    "wal_level=logical",
    "max_replication_slots=64",
    "max_wal_senders=64",
    "max_connections=200",
    // Guards the data from a machine that fails, which ends the run anyway; a server that is killed loses nothing.
    "fsync=off",
    "max_prepared_transactions=32",
    "logging_collector=off",
    "log_destination=stderr",
];

/// A running PostgreSQL server, on 127.0.0.1, with a superuser whose password is random.
#[derive(Debug)]
pub struct Postgres {
    child: Child,
    port: u16,
    superuser: Login,
    version: String,
}

/// A database or role could not be made: the server's own message is in the source.
#[derive(Debug, thiserror::Error)]
#[error("cannot prepare {what} in the run's PostgreSQL")]
pub struct PrepareDatabaseError {
    what: String,
    #[source]
    source: tokio_postgres::Error,
}

impl Postgres {
    pub(super) async fn start(
        reaper: &Arc<Reaper>,
        programs: &Path,
        account: &Account,
        folders: &Folders,
        settings: &[&str],
    ) -> Result<Self, ServiceError> {
        let start = Start {
            reaper,
            programs,
            owner: account.owner,
            logs: folders.run.join("logs"),
            own: &folders.own,
            settings,
        };
        let superuser = Login {
            role: SUPERUSER.to_owned(),
            password: password(),
        };
        start.initdb(&superuser).await?;
        let (child, port) = start.serve(&superuser).await?;
        Ok(Self {
            child,
            port,
            superuser,
            version: version(&folders.said),
        })
    }

    /// Where it listens: always `127.0.0.1`.
    #[must_use]
    pub fn host(&self) -> &'static str {
        "127.0.0.1"
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The superuser's login.
    pub(super) fn superuser(&self) -> &Login {
        &self.superuser
    }

    /// Its version, such as `15.14`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The server's process: the postmaster, whose children are the backends.
    #[must_use]
    pub fn process(&self) -> &Child {
        &self.child
    }

    /// The database `postgres` as the superuser.
    #[must_use]
    pub fn superuser_url(&self) -> DatabaseUrl {
        self.url("postgres", &self.superuser)
    }

    /// Any database as the superuser.
    #[must_use]
    pub fn superuser_url_of(&self, database: &str) -> DatabaseUrl {
        self.url(database, &self.superuser)
    }

    /// Any database as any role.
    #[must_use]
    pub fn url(&self, database: &str, login: &Login) -> DatabaseUrl {
        DatabaseUrl::new(self.port, database, login)
    }

    /// A new role that may log in and has no further rights, with a random password.
    ///
    /// # Errors
    ///
    /// When the name is taken, or the server does not answer.
    pub async fn create_login(&self, role: &str) -> Result<Login, PrepareDatabaseError> {
        let login = Login {
            role: role.to_owned(),
            password: password(),
        };
        let create = format!(
            "CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD '{}'",
            quoted(role),
            login.password
        );
        self.run(&format!("role {role}"), &[&create]).await?;
        Ok(login)
    }

    /// A new database that belongs to a new role `owner` without superuser rights, as managed PostgreSQL offers it.
    ///
    /// # Errors
    ///
    /// When a name is taken, or the server does not answer.
    pub async fn create_database(
        &self,
        name: &str,
        owner: &str,
    ) -> Result<DatabaseUrl, PrepareDatabaseError> {
        let login = self.create_login(owner).await?;
        let create = format!("CREATE DATABASE {} OWNER {}", quoted(name), quoted(owner));
        let close = format!("REVOKE ALL ON DATABASE {} FROM PUBLIC", quoted(name));
        self.run(&format!("database {name}"), &[&create, &close]).await?;
        Ok(self.url(name, &login))
    }

    async fn run(&self, what: &str, statements: &[&str]) -> Result<(), PrepareDatabaseError> {
        let failed = |source| PrepareDatabaseError {
            what: what.to_owned(),
            source,
        };
        let client = connect(&self.superuser_url()).await.map_err(failed)?;
        for statement in statements {
            client.batch_execute(statement).await.map_err(failed)?;
        }
        Ok(())
    }
}

struct Start<'run> {
    reaper: &'run Arc<Reaper>,
    programs: &'run Path,
    owner: Option<Owner>,
    logs: PathBuf,
    own: &'run Path,
    settings: &'run [&'run str],
}

impl Start<'_> {
    async fn initdb(&self, superuser: &Login) -> Result<(), ServiceError> {
        let secret = self.own.join("password");
        write_private(&secret, &superuser.password, self.owner)
            .map_err(|error| failed(format!("no password file: {error}")))?;
        let data = self.data();
        let args = [
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "--username",
            SUPERUSER,
        ];
        let mut spec = self.spec("initdb").args(args);
        spec.args.push(format!("--pwfile={}", secret.display()));
        spec.args.push(format!("--pgdata={}", data.display()));
        let child = Child::start(self.reaper, &self.logs, &spec, self.owner, Farewell::Kill).await?;
        let ended = child.exited().await?;
        // It was needed this once.
        let _ = std::fs::remove_file(&secret);
        if ended.success() {
            Ok(())
        } else {
            Err(failed(format!("initdb ended with {ended}: {}", child.tail())))
        }
    }

    async fn serve(&self, superuser: &Login) -> Result<(Child, u16), ServiceError> {
        let mut said = String::new();
        for _ in 0..PORTS {
            let port = free_port().map_err(|error| failed(format!("no free port: {error}")))?;
            let mut spec = self.spec("postgres");
            spec.args.push(format!("--port={port}"));
            spec.args
                .extend(["-D".to_owned(), self.data().display().to_string()]);
            spec.args.extend(
                SETTINGS
                    .iter()
                    .chain(self.settings)
                    .flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]),
            );
            let child = Child::start(self.reaper, &self.logs, &spec, self.owner, Farewell::Quit).await?;
            if answers(&child, &DatabaseUrl::new(port, "postgres", superuser)).await? {
                return Ok((child, port));
            }
            said = child.tail();
            if !said.contains("Address already in use") {
                break;
            }
        }
        Err(failed(said))
    }

    fn spec(&self, program: &str) -> ProcessSpec {
        let mut spec = ProcessSpec::new(program, self.programs.join(program));
        spec.env_remove = inherited("PG");
        spec.cwd = Some(self.own.to_owned());
        spec
    }

    fn data(&self) -> PathBuf {
        self.own.join("data")
    }
}

/// Waits until the server answers: true. False when it ended first.
pub(super) async fn answers(child: &Child, url: &DatabaseUrl) -> Result<bool, ServiceError> {
    let began = Instant::now();
    loop {
        // A stranger on this port would not know the password, and this server would end.
        let said = match timeout(Duration::from_secs(5), connect(url)).await {
            Ok(Ok(_)) => return Ok(true),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        if child.ended().is_some() {
            return Ok(false);
        }
        if began.elapsed() > START {
            return Err(failed(format!(
                "it does not answer after {START:?} ({said}): {}",
                child.tail()
            )));
        }
        sleep(Duration::from_millis(10)).await;
    }
}

async fn connect(url: &DatabaseUrl) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url.as_str(), NoTls).await?;
    // It ends with the client, and the client's own calls return its errors.
    tokio::spawn(connection);
    Ok(client)
}

/// The inherited variables that begin so, which would otherwise change what a server does.
pub(super) fn inherited(prefix: &str) -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| name.starts_with(prefix)).collect()
}

fn failed(why: String) -> ServiceError {
    ServiceError::NotStarted {
        what: "PostgreSQL".to_owned(),
        why,
    }
}

fn password() -> String {
    Uuid::new_v4().simple().to_string()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)` is `15.14`.
fn version(said: &str) -> String {
    let words = said.split_ascii_whitespace();
    words
        .skip_while(|word| *word != "(PostgreSQL)")
        .nth(1)
        .unwrap_or(said.trim())
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_number_alone() {
        assert_eq!(
            version("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n"),
            "15.14"
        );
        assert_eq!(version("something else\n"), "something else");
    }

    #[test]
    fn a_quote_in_a_name_does_not_end_it() {
        assert_eq!(quoted(r#"a"b"#), r#""a""b""#);
    }
}
