//! A holder whose parent cannot be stopped: it stands in `vfork`, an uninterruptible sleep, until its other child has become the
//! program that it is to run, and that child waits before it does.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use nix::fcntl::OFlag;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn};
use nix::sys::stat::Mode;

use crate::services::ProcessSpec;

/// The word that makes the `fence` executable such a parent.
pub const PARENT: &str = "run-a-child-and-stand-in-vfork";

/// The same program, started by a parent that stands in `vfork` until somebody opens the FIFO for writing.
pub(crate) fn with_a_parent(spec: ProcessSpec, fence: &Path, fifo: &Path) -> ProcessSpec {
    let words = [
        PARENT.to_owned(),
        fifo.display().to_string(),
        spec.program.display().to_string(),
    ];
    ProcessSpec {
        args: words.into_iter().chain(spec.args).collect(),
        program: fence.to_owned(),
        ..spec
    }
}

/// Starts the program as a child, stands in `vfork` until the FIFO is opened for writing, and ends as that child does.
pub fn parent(words: &[String]) -> ExitCode {
    let [fifo, program, arguments @ ..] = words else {
        return ExitCode::FAILURE;
    };
    let Ok(mut child) = Command::new(program).args(arguments).spawn() else {
        return ExitCode::FAILURE;
    };
    if stand(fifo).is_err() {
        // The kit waits for a process that cannot be stopped, and will say that there is none.
        eprintln!("no child could be started that opens {fifo} first");
    }
    let status = child.wait().ok().and_then(|status| status.code());
    status
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Starts this executable once more, as a child that opens the FIFO before it becomes that. Whoever starts it so stands until then.
fn stand(fifo: &str) -> nix::Result<()> {
    let myself = std::env::current_exe().map_err(|_| nix::Error::ENOENT)?;
    let myself = CString::new(myself.as_os_str().as_bytes()).map_err(|_| nix::Error::EINVAL)?;
    let mut first = PosixSpawnFileActions::init()?;
    first.add_open(0, fifo, OFlag::O_RDONLY, Mode::empty())?;
    let words: [&CStr; 2] = [&myself, c"--version"];
    let nothing: [&CStr; 0] = [];
    posix_spawn(&*myself, &first, &PosixSpawnAttr::init()?, &words, &nothing).map(drop)
}
