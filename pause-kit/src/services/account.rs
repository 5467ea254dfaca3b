//! As whom PostgreSQL runs, and where: it refuses to be root, and the folder of one user is often closed to another.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::child::{Child, ProcessSpec};
use crate::reaper::{AskError, Farewell, Owner, Reaper};

/// No folder for temporary files serves the user that PostgreSQL has to run as.
#[derive(Debug, thiserror::Error)]
#[error("no folder for temporary files that {user} can use; tried {}; set TMPDIR to one", .tried.join(", "))]
pub struct NoFolder {
    /// The user.
    pub user: String,
    /// Each folder that was tried, and what was wrong with it.
    pub tried: Vec<String>,
}

/// The user that PostgreSQL runs as: nobody else than the kit's, unless that is root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    /// The user's name, for messages.
    pub(super) name: String,
    /// The user to change to; none when the kit's own will do.
    pub(super) owner: Option<Owner>,
}

impl Account {
    /// As root the user `postgres`, or else `nobody`; otherwise the kit's own user.
    pub(super) fn choose() -> Self {
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        Self::choose_for(rustix::process::geteuid().is_root(), &users)
    }

    fn choose_for(root: bool, users: &str) -> Self {
        if !root {
            return Self {
                name: "this user".to_owned(),
                owner: None,
            };
        }
        let known = ["postgres", "nobody"]
            .iter()
            .find_map(|name| Some((*name, user(users, name)?)));
        let (name, owner) = known.unwrap_or((
            "nobody",
            Owner {
                uid: 65534,
                gid: 65534,
            },
        ));
        Self {
            name: format!("user {name}"),
            owner: Some(owner),
        }
    }

    /// Makes the run's folder and in it one of this account's own, in the first place where that account is able to use
    /// it: it is tried with the very program that is to run there.
    pub(super) async fn folders(&self, reaper: &Arc<Reaper>, program: &Path) -> Result<Folders, NoFolder> {
        self.folders_for(reaper, program, "--version").await
    }

    /// The same for a program that tells its version in another way.
    pub(super) async fn folders_for(
        &self,
        reaper: &Arc<Reaper>,
        program: &Path,
        asked: &str,
    ) -> Result<Folders, NoFolder> {
        let mut tried = Vec::new();
        for base in bases() {
            match self.try_base(reaper, &base, program, asked).await {
                Ok(folders) => return Ok(folders),
                Err(reason) => tried.push(format!("{} ({reason})", base.display())),
            }
        }
        Err(NoFolder {
            user: self.name.clone(),
            tried,
        })
    }

    async fn try_base(
        &self,
        reaper: &Arc<Reaper>,
        base: &Path,
        program: &Path,
        asked: &str,
    ) -> Result<Folders, String> {
        let run = run_folder(reaper, base)
            .await
            .map_err(|error| error.to_string())?;
        let own = run.to_str().ok_or("its name is not UTF-8")?;
        let own = PathBuf::from(
            reaper
                .folder(own, self.owner)
                .await
                .map_err(|error| error.to_string())?,
        );
        let mut spec = ProcessSpec::new("probe", "/bin/sh").args(["-c", PROBE, "sh"]);
        spec.args.push(own.display().to_string());
        spec.args
            .extend([program.display().to_string(), asked.to_owned()]);
        spec.cwd = Some(PathBuf::from("/"));
        let probe = Child::start(reaper, &run.join("logs"), &spec, self.owner, Farewell::Kill).await;
        let probe = probe.map_err(|error| error.to_string())?;
        let ended = probe.exited().await.map_err(|error| error.to_string())?;
        if !ended.success() {
            return Err(format!("{} cannot use it: {}", self.name, probe.tail()));
        }
        let said = std::fs::read_to_string(probe.stdout()).map_err(|error| error.to_string())?;
        Ok(Folders { run, own, said })
    }
}

/// Enters the folder, writes in it, and runs the program from there.
const PROBE: &str = r#"cd "$1" && : >probe && rm probe && "$2" "$3" 2>&1"#;

/// Where a run keeps its files.
#[derive(Debug)]
pub(super) struct Folders {
    /// The run's folder.
    pub(super) run: PathBuf,
    /// The folder in it that belongs to the account.
    pub(super) own: PathBuf,
    /// What the program that was tried said about its version.
    pub(super) said: String,
}

/// A folder for a run without an account of its own, in the first place where one can be made.
pub(super) async fn any_run_folder(reaper: &Arc<Reaper>) -> Result<PathBuf, NoFolder> {
    let mut tried = Vec::new();
    for base in bases() {
        match run_folder(reaper, &base).await {
            Ok(folder) => return Ok(folder),
            Err(error) => tried.push(format!("{} ({error})", base.display())),
        }
    }
    Err(NoFolder {
        user: "this user".to_owned(),
        tried,
    })
}

async fn run_folder(reaper: &Arc<Reaper>, base: &Path) -> Result<PathBuf, AskError> {
    let refused = || AskError::System("its name is not UTF-8".to_owned());
    reaper
        .folder(base.to_str().ok_or_else(refused)?, None)
        .await
        .map(PathBuf::from)
}

fn bases() -> Vec<PathBuf> {
    let named = env::var_os("TMPDIR").map(PathBuf::from);
    let usual = ["/tmp", "/var/tmp", "/dev/shm", "/run"].map(PathBuf::from);
    let mut found: Vec<PathBuf> = Vec::new();
    for base in named.into_iter().chain(usual).filter(|base| base.is_absolute()) {
        if !found.contains(&base) {
            found.push(base);
        }
    }
    found
}

/// Makes a file that this owner alone can read.
pub(super) fn write_private(path: &Path, text: &str, owner: Option<Owner>) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::{OpenOptionsExt, fchown};
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    match owner {
        Some(owner) => fchown(&file, Some(owner.uid), Some(owner.gid)),
        None => Ok(()),
    }
}

fn user(users: &str, name: &str) -> Option<Owner> {
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut numbers = line.split(':').skip(2);
    let owner = Owner {
        uid: numbers.next()?.parse().ok()?,
        gid: numbers.next()?.parse().ok()?,
    };
    (owner.uid != 0).then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSTGRES: &str = "postgres:x:101:104:PostgreSQL:/var/lib/postgresql:/bin/bash\n";
    const NOBODY: &str = "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65533::/:/bin/false\n";

    #[test]
    fn root_becomes_postgres_or_else_nobody() {
        let both = Account::choose_for(true, &format!("{NOBODY}{POSTGRES}"));
        assert_eq!(both.owner, Some(Owner { uid: 101, gid: 104 }));
        assert_eq!(
            Account::choose_for(true, NOBODY).owner,
            Some(Owner {
                uid: 65534,
                gid: 65533
            })
        );
        assert_eq!(
            Account::choose_for(true, "").owner,
            Some(Owner {
                uid: 65534,
                gid: 65534
            })
        );
    }

    #[test]
    fn an_ordinary_user_stays_who_he_is() {
        assert_eq!(Account::choose_for(false, POSTGRES).owner, None);
    }

    #[test]
    fn a_user_postgres_that_is_root_in_disguise_is_not_taken() {
        let users = format!("postgres:x:0:0::/:/bin/sh\n{NOBODY}");
        assert_eq!(
            Account::choose_for(true, &users).owner,
            Some(Owner {
                uid: 65534,
                gid: 65533
            })
        );
    }
}
