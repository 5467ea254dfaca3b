//! The terminal, which belongs to the command's group while it runs.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use pause_kit::group::Group;
use rustix::process::{Pid, getpgrp};
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};

use crate::arguments::TERMINAL;

/// The terminal was given to a group, and goes back.
pub(super) struct Lent {
    to: Pid,
}

/// Gives the terminal to the command, if this process has it: a process of a group in the background cannot read it.
pub(super) fn lend(group: &Group) -> Option<Lent> {
    let stdin = io::stdin();
    if !isatty(&stdin) || tcgetpgrp(&stdin).ok()? != getpgrp() {
        return None;
    }
    let to = Pid::from_raw(i32::try_from(group.id()).ok()?)?;
    tcsetpgrp(&stdin, to).ok()?;
    // It may have been stopped, reading before the terminal was its own.
    let _ = group.signal(rustix::process::Signal::CONT.as_raw());
    Some(Lent { to })
}

impl Lent {
    /// Takes the terminal back. The first process of the group must not have been waited for.
    ///
    /// Only a process in the foreground may, and this one is not; so one is started there that does.
    pub(super) fn take_back(self) {
        let Ok(own) = std::env::current_exe() else { return };
        let giver = Command::new(own)
            .args([TERMINAL, &getpgrp().as_raw_nonzero().to_string()])
            .process_group(self.to.as_raw_nonzero().get())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        // Without it the shell takes the terminal back itself, if it is one that people type into.
        let _ = giver;
    }
}

/// What that process does.
pub(crate) fn give_back(to: i32) -> ExitCode {
    match Pid::from_raw(to).map(|to| tcsetpgrp(io::stdin(), to)) {
        Some(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
