//! Which program is the reaper.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The name of the reaper's own binary.
const BINARY: &str = "pause-kit-reaper";

/// The variable that names the reaper for [`ReaperCommand::find`].
const VARIABLE: &str = "FENCE_REAPER";

/// The program that is started as the reaper: it must call [`main`](super::main).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaperCommand {
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// There is no reaper: build it, or name it in `FENCE_REAPER`.
#[derive(Debug, thiserror::Error)]
#[error(
    "no pause-kit-reaper at {}; build it with `cargo build -p pause-kit --bins`, or name it in FENCE_REAPER",
    .looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
)]
pub struct FindReaperError {
    /// Where it was looked for.
    pub looked: Vec<PathBuf>,
}

impl ReaperCommand {
    /// The reaper that `FENCE_REAPER` names, or else the `pause-kit-reaper` that was built beside this executable or one
    /// folder above it, which is where Cargo puts it for tests.
    ///
    /// # Errors
    ///
    /// When there is none, or when this executable's own place is not known.
    pub fn find() -> Result<Self, FindReaperError> {
        find(env::var_os(VARIABLE).map(PathBuf::from), env::current_exe().ok())
    }
}

fn find(named: Option<PathBuf>, executable: Option<PathBuf>) -> Result<ReaperCommand, FindReaperError> {
    let looked = match named {
        Some(named) => vec![named],
        None => {
            let folders = executable
                .iter()
                .flat_map(|path| path.ancestors().skip(1).take(2));
            folders.map(|folder| folder.join(BINARY)).collect()
        }
    };
    match looked.iter().find(|path| Path::is_file(path)) {
        Some(program) => Ok(ReaperCommand {
            program: program.clone(),
            args: Vec::new(),
        }),
        None => Err(FindReaperError { looked }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_beside_the_executable_and_one_folder_above() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let reaper = folder.path().join(BINARY);
        std::fs::write(&reaper, "").expect("a file in it");
        for executable in [folder.path().join("fence"), folder.path().join("deps/it-0")] {
            let found = find(None, Some(executable)).map(|command| command.program);
            assert_eq!(found.ok(), Some(reaper.clone()));
        }
    }

    #[test]
    fn a_named_one_that_is_absent_is_not_replaced_by_another_and_the_message_says_how_to_build_it() {
        let error = find(Some("/nowhere/reaper".into()), env::current_exe().ok()).expect_err("there is none");
        assert_eq!(
            error.to_string(),
            "no pause-kit-reaper at /nowhere/reaper; build it with `cargo build -p pause-kit --bins`, or name it in \
             FENCE_REAPER"
        );
    }
}
