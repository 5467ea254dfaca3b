//! A small process, in a session of its own, that owns everything the kit starts.
//!
//! The kit may die at any moment and of any cause, SIGKILL included, while servers run and while a process stands
//! stopped. So it starts nothing itself: it asks its reaper to, over a pipe. When that pipe ends, the reaper walks the tree
//! of all that it started, orphans and processes in sessions of their own included, continues what is stopped, asks
//! PostgreSQL to put its shared memory away, kills the rest, removes the temporary folders, and goes.
//!
//! A program that uses the kit provides the reaper's process: `pause-kit-reaper`, or its own executable with a
//! subcommand that does nothing but call [`main`].

mod client;
mod command;
mod family;
mod freeze;
mod freezer;
mod leftovers;
mod protocol;
mod server;
mod stop;
mod sweep;

use std::io::Write;
use std::process::ExitCode;

pub use client::{AskError, StartReaperError};
pub use command::{FindReaperError, ReaperCommand};
pub use protocol::{Ended, StopWith, StoppedBy, TaskTime, UnknownMeans};

pub(crate) use client::{Reaper, Spawned, StopRefused};
pub(crate) use protocol::{Farewell, Owner, Spawn};

/// Serves a kit on standard input and output until it goes, then ends everything that was started for it.
///
/// This is the whole `main` of a reaper's process. It must have no other threads.
#[must_use]
pub fn main() -> ExitCode {
    match server::serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Whoever reads the standard error may be gone by now.
            let _ = writeln!(
                std::io::stderr(),
                "the reaper of the pause kit cannot work: {error}"
            );
            ExitCode::FAILURE
        }
    }
}
