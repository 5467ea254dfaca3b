//! The command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use pause_kit::{away, unstoppable};

use crate::exit::Failure;
use crate::{doctor, epoch, exit, hold, locks, pg, prove, register, say, timeline, token, verify};

/// Proves that lock classes are fenced: pauses real holders past their lease, and watches the resource refuse their late
/// writes.
#[derive(Debug, Parser)]
#[command(name = "fence", version, arg_required_else_help = true, max_term_width = 100, after_help = exit::HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prove the classes of fence.toml: each scenario with the guard, and again without it
    Prove(prove::ProveArguments),
    /// Judge recorded evidence, or any history, again, from the files alone
    Verify(verify::VerifyArguments),
    /// Judge a folder of evidence again and draw it: the page that `fence prove` writes beside it
    Timeline(timeline::TimelineArguments),
    /// Explain a fencing token: its epoch, its revision, and the header that presents it
    Token(token::TokenArguments),
    /// Check the registers of fenced and of accepted classes, and list what is due for review
    #[command(subcommand)]
    Register(register::RegisterCommand),
    /// Run a command while a lock is held, and stop it before the lock can be anyone else's
    Hold(hold::HoldArguments),
    /// List who holds which locks, with which tokens and for how long, and who waits
    Locks(locks::LocksArguments),
    /// Begin an epoch, the upper part of every token, in a lock store
    #[command(subcommand)]
    Epoch(epoch::EpochCommand),
    /// Guard tables of a PostgreSQL database
    #[command(subcommand)]
    Pg(pg::PgCommand),
    /// Name every way around the guard that a PostgreSQL database leaves open, and the fix for each
    Doctor(doctor::DoctorArguments),
    /// Own the processes of a run; `fence prove` starts this itself
    #[command(name = REAPER, hide = true)]
    Reaper,
    /// Give the terminal to a process group; `fence hold` starts this itself
    #[command(name = TERMINAL, hide = true)]
    Terminal {
        /// The group
        group: i32,
    },
    /// Start a holder as a child that has left; `fence prove` starts this itself
    #[command(name = away::PARENT, hide = true)]
    Parent(Words),
    /// Start a holder and stand in vfork; `fence prove` starts this itself
    #[command(name = unstoppable::PARENT, hide = true)]
    Unstoppable(Words),
    /// Become a child that has left; the command before starts this itself
    #[command(name = away::CHILD, hide = true)]
    Child(Words),
}

/// A program and its arguments.
#[derive(Debug, clap::Args)]
struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// The word that makes this executable give the terminal back to `fence hold`.
pub(crate) const TERMINAL: &str = "give-the-terminal-back";

/// The word that makes this executable the reaper of a run.
pub(crate) const REAPER: &str = "own-processes-of-a-run";

impl Arguments {
    /// Runs the command and gives its exit code.
    pub(crate) fn run(self) -> ExitCode {
        match self.command {
            Command::Prove(arguments) => exit::report(prove::run(&arguments)),
            Command::Verify(arguments) => exit::report(verify::run(&arguments)),
            Command::Timeline(arguments) => exit::report(timeline::run(&arguments)),
            Command::Token(arguments) => exit::report(token::run(&arguments)),
            Command::Register(command) => exit::report(register::run(&command)),
            Command::Hold(arguments) => hold::run(&arguments),
            Command::Locks(arguments) => exit::report(locks::run(&arguments)),
            Command::Epoch(command) => exit::report(epoch::run(&command)),
            Command::Pg(command) => exit::report(pg::run(&command)),
            Command::Doctor(arguments) => exit::report(doctor::run(&arguments)),
            Command::Reaper => pause_kit::reaper::main(),
            Command::Terminal { group } => hold::give_the_terminal_back(group),
            Command::Parent(words) => away::parent(&words.words),
            Command::Unstoppable(words) => unstoppable::parent(&words.words),
            Command::Child(words) => away::child(&words.words),
        }
    }
}

/// Says what is wrong with the arguments, also as JSON where that is asked for; or what `--help` and `--version` ask for.
pub(crate) fn refuse(error: &clap::Error) -> ! {
    let asked_for_json = std::env::args_os().any(|argument| argument == "--json");
    if asked_for_json && error.use_stderr() {
        let message = error.render().to_string();
        let message = message.trim().trim_start_matches("error: ").to_owned();
        say::show(&format!("{:#}\n", Failure::usage(message).json()));
    }
    if error.use_stderr()
        && std::env::args_os()
            .nth(1)
            .is_some_and(|command| command == "hold")
    {
        // There is nowhere left to say that it could not be said.
        let _ = error.print();
        std::process::exit(i32::from(exit::HOLD_FAILED));
    }
    error.exit()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Arguments;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }
}
