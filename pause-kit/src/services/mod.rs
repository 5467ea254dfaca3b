//! Private services for one run: PostgreSQL, PgBouncer, nginx, etcd and the target's processes, on free loopback ports, in temporary
//! folders, all owned by the [reaper](crate::reaper).
//!
//! Dropping [`Services`] ends everything and waits until it is gone. A program that dies without dropping it, of whatever
//! cause, has the same done for it.
//!
//! ```no_run
//! use pause_kit::reaper::ReaperCommand;
//! use pause_kit::services::{Services, ServicesConfig};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let config = ServicesConfig { reaper: ReaperCommand::find()?, postgres: true, etcd: vec!["entity".to_owned()] };
//! let services = Services::start(config).await?;
//! let postgres = services.postgres().ok_or("not asked for")?;
//! let database = postgres.create_database("paydb", "paydb_owner").await?;
//! assert!(database.as_str().starts_with("postgres://paydb_owner:"));
//! # Ok(())
//! # }
//! ```

mod account;
mod child;
mod database_url;
mod etcd;
mod for_tests;
pub mod locate;
mod nginx;
mod pgbouncer;
mod port;
mod postgres;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{try_join, try_join_all};

use crate::reaper::{AskError, Farewell, FindReaperError, Reaper, ReaperCommand, StartReaperError};
use crate::stopper::{self, StopError, StopWith, Stopped, StoppedBy};
use crate::target::Http;
use account::{Account, Folders};

pub use account::NoFolder;
pub use child::{Child, ProcessSpec, WaitLineError};
pub use database_url::{DatabaseUrl, Login};
pub use etcd::Etcd;
pub use for_tests::{TestServices, for_tests};
pub use locate::NotFound;
pub use nginx::Nginx;
pub use pgbouncer::PgBouncer;
pub use port::free_port;
pub use postgres::{Postgres, PrepareDatabaseError};

/// Which services a run needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicesConfig {
    /// The program that owns them.
    pub reaper: ReaperCommand,
    /// Whether a PostgreSQL server is needed.
    pub postgres: bool,
    /// A name for each etcd that is needed; each is a cluster of its own.
    pub etcd: Vec<String>,
}

/// A service could not be found, reached or started.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// There is no reaper: build it.
    #[error("no reaper to own the services")]
    FindReaper(#[from] FindReaperError),
    /// The reaper does not start: build it again.
    #[error("the reaper that owns the services did not start")]
    StartReaper(#[from] StartReaperError),
    /// A program is not installed: the source says what was looked at and what to install.
    #[error("a service is not installed")]
    NotFound(#[from] NotFound),
    /// No folder for temporary files will do: the source says which were tried.
    #[error("there is no place for the services' files")]
    NoFolder(#[from] NoFolder),
    /// The server ended, or did not answer in time: the reason holds its last words.
    #[error("{what} did not start: {why}")]
    NotStarted {
        /// Which server.
        what: String,
        /// Why, with the end of its log.
        why: String,
    },
    /// The reaper refused, or is gone.
    #[error("the reaper could not do its part")]
    Ask(#[from] AskError),
}

/// A process of the target could not be started: its program or folder is at fault.
#[derive(Debug, thiserror::Error)]
#[error("{name} could not be started as {program}")]
pub struct SpawnError {
    /// The process's name.
    pub name: String,
    /// The program.
    pub program: String,
    /// What the system said.
    #[source]
    pub source: AskError,
}

/// What the services' programs call themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// PostgreSQL's version, such as `15.14`.
    pub postgres: Option<String>,
    /// etcd's version, such as `3.4.23`.
    pub etcd: Option<String>,
}

/// The running services. Dropping them ends everything that was started, and blocks until it is gone, for less than two
/// seconds.
#[derive(Debug)]
pub struct Services {
    postgres: Option<Postgres>,
    etcd: Vec<Etcd>,
    run: PathBuf,
    reaper: Arc<Reaper>,
}

impl Services {
    /// Starts what `config` asks for, and returns when all of it answers.
    ///
    /// # Errors
    ///
    /// When a program is not installed or does not start; whatever had been started by then is gone on return.
    pub async fn start(config: ServicesConfig) -> Result<Self, ServiceError> {
        let programs = config.postgres.then(locate::postgres).transpose()?;
        let etcd = if config.etcd.is_empty() {
            None
        } else {
            Some(locate::etcd()?)
        };
        let reaper = Arc::new(Reaper::start(&config.reaper)?);
        let started = start_all(&reaper, programs.as_deref(), etcd.as_deref(), &config.etcd).await;
        match started {
            Ok((postgres, etcd, run)) => Ok(Self {
                postgres,
                etcd,
                run,
                reaper,
            }),
            Err(error) => {
                reaper.close();
                Err(error)
            }
        }
    }

    /// The PostgreSQL server, if one was asked for.
    #[must_use]
    pub fn postgres(&self) -> Option<&Postgres> {
        self.postgres.as_ref()
    }

    /// The etcd of this name, if it was asked for.
    #[must_use]
    pub fn etcd(&self, name: &str) -> Option<&Etcd> {
        self.etcd.iter().find(|etcd| etcd.name() == name)
    }

    /// Every etcd.
    #[must_use]
    pub fn etcds(&self) -> &[Etcd] {
        &self.etcd
    }

    /// The run's temporary folder: it is removed at the end. Others may enter it, but not list it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.run
    }

    /// What the services' programs call themselves.
    #[must_use]
    pub fn versions(&self) -> Versions {
        Versions {
            postgres: self
                .postgres
                .as_ref()
                .map(|postgres| postgres.version().to_owned()),
            etcd: self.etcd.first().map(|etcd| etcd.version().to_owned()),
        }
    }

    /// Starts one more PostgreSQL server, from the programs in this folder, such as [`locate::postgres_18`] finds. It ends
    /// with the rest.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub async fn start_postgres(&self, programs: &Path) -> Result<Postgres, ServiceError> {
        self.start_postgres_with(programs, &[]).await
    }

    /// The same, with further settings, each `name=value`, which win over the kit's own: the kit's servers do not wait for
    /// the disk (`fsync=off`) and write what logical decoding needs (`wal_level=logical`).
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub async fn start_postgres_with(
        &self,
        programs: &Path,
        settings: &[&str],
    ) -> Result<Postgres, ServiceError> {
        let account = Account::choose();
        let folders = account.folders(&self.reaper, &programs.join("postgres")).await?;
        Postgres::start(&self.reaper, programs, &account, &folders, settings).await
    }

    /// Starts one more etcd, of one member, under this name. It ends with the rest.
    ///
    /// # Errors
    ///
    /// When it is not installed or does not start.
    pub async fn start_etcd(&self, name: &str) -> Result<Etcd, ServiceError> {
        Etcd::start(&self.reaper, &locate::etcd()?, &self.run, name).await
    }

    /// Starts a PgBouncer in transaction mode before a server of this run: any database, any role with its password. It has
    /// `pool_size` connections (at least 1) for each pair of database and role, and ends with the rest.
    ///
    /// # Errors
    ///
    /// When it is not installed or does not start.
    pub async fn start_pgbouncer(
        &self,
        postgres: &Postgres,
        pool_size: u16,
    ) -> Result<PgBouncer, ServiceError> {
        let program = locate::pgbouncer()?;
        let account = Account::choose();
        let folders = account.folders(&self.reaper, &program).await?;
        PgBouncer::start(&self.reaper, &program, &account, &folders, postgres, pool_size).await
    }

    /// Starts an nginx that hands on what comes, in HTTP/1.1 and as it comes, and takes it in `http`: at one address of its own
    /// for each of these. It ends with the rest.
    ///
    /// # Errors
    ///
    /// When it is not installed or does not start.
    pub async fn start_nginx(&self, upstreams: &[SocketAddr], http: Http) -> Result<Nginx, ServiceError> {
        let program = locate::nginx()?;
        let account = Account::choose();
        let folders = account.folders_for(&self.reaper, &program, "-v").await?;
        Nginx::start(&self.reaper, &program, &account, &folders, upstreams, http).await
    }

    /// Starts a process in a process group of its own, with no standard input and its output in files.
    ///
    /// # Errors
    ///
    /// When the program cannot be run.
    pub async fn spawn(&self, spec: ProcessSpec) -> Result<Child, SpawnError> {
        let started = Child::start(&self.reaper, &self.run.join("logs"), &spec, None, Farewell::Kill).await;
        started.map_err(|source| SpawnError {
            name: spec.name,
            program: spec.program.display().to_string(),
            source,
        })
    }

    /// Stops processes by these means from now on, and says by which: a run that is to use the freezer where it can learns here
    /// whether it does. Without this call they are stopped by signals.
    ///
    /// # Errors
    ///
    /// When [`StopWith::Freezer`] is asked for and no group of cgroup v2 is delegated to this process, with the reason; when
    /// something stands at this moment; or when the reaper has gone.
    pub async fn stop_with(&self, means: StopWith) -> Result<StoppedBy, AskError> {
        self.reaper.stop_with(means).await
    }

    /// Stops any process that comes from what was started here, with everything that comes from it: a PostgreSQL backend,
    /// for example.
    ///
    /// # Errors
    ///
    /// When it is none of these, or when a task does not stop; then everything runs again and the run is void.
    pub async fn stop(&self, pid: u32) -> Result<Stopped, StopError> {
        self.stop_within(pid, stopper::USUAL).await
    }

    /// The same, where a task may take this long to stop. Nothing else is stopped, started or ended before this is over.
    ///
    /// # Errors
    ///
    /// As above.
    pub async fn stop_within(&self, pid: u32, within: Duration) -> Result<Stopped, StopError> {
        Stopped::stop(Arc::clone(&self.reaper), pid, within).await
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        // Others may still hold a part of this: a child's handle, a stopped process.
        self.reaper.close();
    }
}

async fn start_all(
    reaper: &Arc<Reaper>,
    programs: Option<&Path>,
    etcd: Option<&Path>,
    names: &[String],
) -> Result<(Option<Postgres>, Vec<Etcd>, PathBuf), ServiceError> {
    let account = Account::choose();
    let folders: Option<Folders> = match programs {
        Some(programs) => Some(account.folders(reaper, &programs.join("postgres")).await?),
        None => None,
    };
    let run = match &folders {
        Some(folders) => folders.run.clone(),
        None => account::any_run_folder(reaper).await?,
    };
    let postgres = async {
        match (programs, &folders) {
            (Some(programs), Some(folders)) => Postgres::start(reaper, programs, &account, folders, &[])
                .await
                .map(Some),
            _ => Ok(None),
        }
    };
    let members = names
        .iter()
        .flat_map(|name| etcd.map(|program| Etcd::start(reaper, program, &run, name)));
    let (postgres, etcd) = try_join(postgres, try_join_all(members)).await?;
    Ok((postgres, etcd, run))
}
