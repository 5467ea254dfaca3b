//! A PgBouncer of the run's own.

use std::path::Path;
use std::sync::Arc;

use super::ServiceError;
use super::account::{Account, Folders, write_private};
use super::child::{Child, ProcessSpec};
use super::database_url::DatabaseUrl;
use super::port::free_port;
use super::postgres::{Postgres, answers, inherited};
use crate::reaper::{Farewell, Reaper};

/// How many ports are tried when somebody else was quicker.
const PORTS: usize = 8;

/// A running PgBouncer in transaction mode, on 127.0.0.1, before one PostgreSQL server. Reach a database through it with
/// [`DatabaseUrl::through`] and its port.
#[derive(Debug)]
pub struct PgBouncer {
    child: Child,
    port: u16,
    version: String,
}

impl PgBouncer {
    pub(super) async fn start(
        reaper: &Arc<Reaper>,
        program: &Path,
        account: &Account,
        folders: &Folders,
        postgres: &Postgres,
        pool_size: u16,
    ) -> Result<Self, ServiceError> {
        let superuser = postgres.superuser();
        let users = folders.own.join("users");
        write_private(
            &users,
            &format!("\"{}\" \"{}\"\n", superuser.role, superuser.password),
            account.owner,
        )
        .map_err(|error| failed(format!("no file of users: {error}")))?;
        let mut said = String::new();
        for attempt in 0..PORTS {
            let port = free_port().map_err(|error| failed(format!("no free port: {error}")))?;
            let settings = folders.own.join(format!("settings-{attempt}"));
            let text = format!(
                "[databases]\n* = host=127.0.0.1 port={} auth_user={}\n[pgbouncer]\nlisten_port={port}\nauth_file={}\n\
                 default_pool_size={pool_size}\n{SETTINGS}",
                postgres.port(),
                superuser.role,
                users.display(),
            );
            write_private(&settings, &text, account.owner)
                .map_err(|error| failed(format!("no file of settings: {error}")))?;
            let mut spec = ProcessSpec::new("pgbouncer", program);
            spec.args.push(settings.display().to_string());
            spec.env_remove = inherited("PG");
            spec.cwd = Some(folders.own.clone());
            let logs = folders.run.join("logs");
            let child = Child::start(reaper, &logs, &spec, account.owner, Farewell::Kill).await?;
            if answers(&child, &DatabaseUrl::new(port, "postgres", superuser)).await? {
                return Ok(Self {
                    child,
                    port,
                    version: version(&folders.said),
                });
            }
            said = child.tail();
            if !said.contains("Address already in use") {
                break;
            }
        }
        Err(failed(said))
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its version, such as `1.18.0`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> &Child {
        &self.child
    }
}

/// A role is looked up in the server, whose secret then opens the server too, so that later roles are known at once.
const SETTINGS: &str = "listen_addr=127.0.0.1
unix_socket_dir=
pool_mode=transaction
auth_type=scram-sha-256
max_client_conn=400
max_db_connections=0
ignore_startup_parameters=extra_float_digits
";

fn failed(why: String) -> ServiceError {
    ServiceError::NotStarted {
        what: "PgBouncer".to_owned(),
        why,
    }
}

/// `PgBouncer 1.18.0` on the first line is `1.18.0`.
fn version(said: &str) -> String {
    let mut words = said.split_ascii_whitespace();
    words.find(|word| *word == "PgBouncer");
    words.next().unwrap_or(said.trim()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_number_alone() {
        assert_eq!(version("PgBouncer 1.18.0\nlibevent 2.1.12-stable\n"), "1.18.0");
    }
}
