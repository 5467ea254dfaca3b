//! The `fence` command: proves, class by class, that a stale holder's write is refused.

mod arguments;
mod config;
mod epoch;
mod exit;
mod guard;
mod prove;
mod register;
mod token;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    arguments::Arguments::parse().run()
}
