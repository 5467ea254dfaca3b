//! The `fence` command: proves, class by class, that a stale holder's write is refused.

#![deny(clippy::print_stdout, clippy::print_stderr)] // they panic when nobody reads: see `say`

mod arguments;
mod config;
mod doctor;
mod epoch;
mod exit;
mod guard;
mod hold;
mod locks;
mod pg;
mod prove;
mod proven_by;
mod register;
mod regular;
mod say;
mod store;
mod timeline;
mod token;
mod verify;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match arguments::Arguments::try_parse() {
        Ok(arguments) => arguments.run(),
        Err(error) => arguments::refuse(&error),
    }
}
