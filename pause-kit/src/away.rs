//! A holder as the child of another process, whose process group and session it has left: whoever stops the parent alone, or
//! its group, stops nothing that writes.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::services::ProcessSpec;

/// The word that makes the `fence` executable such a parent.
pub const PARENT: &str = "run-a-child-in-a-session-of-its-own";
/// The word that makes it the child, until it becomes the program.
pub const CHILD: &str = "become-a-session-of-its-own";

/// The same program, started by a parent.
pub(crate) fn with_a_parent(spec: ProcessSpec, fence: &Path) -> ProcessSpec {
    let words = [PARENT.to_owned(), spec.program.display().to_string()];
    ProcessSpec {
        args: words.into_iter().chain(spec.args).collect(),
        program: fence.to_owned(),
        ..spec
    }
}

/// Starts the program as a child in a session of its own, waits for it, and ends as it does.
pub fn parent(words: &[String]) -> ExitCode {
    let child =
        std::env::current_exe().and_then(|myself| Command::new(myself).arg(CHILD).args(words).status());
    match child {
        Ok(status) => status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .map_or(ExitCode::FAILURE, ExitCode::from),
        Err(_) => ExitCode::FAILURE,
    }
}

/// Leaves the parent's session and becomes the program. It returns only where that fails.
pub fn child(words: &[String]) -> ExitCode {
    let [program, arguments @ ..] = words else {
        return ExitCode::FAILURE;
    };
    if rustix::process::setsid().is_ok() {
        // What it returns is why the program could not be started.
        let _ = Command::new(program).args(arguments).exec();
    }
    ExitCode::FAILURE
}
