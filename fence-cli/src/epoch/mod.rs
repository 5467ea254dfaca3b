//! `fence epoch`: the epochs of a lock store.

mod advance;
mod classes;
mod init;
mod show;
mod watch;
mod witness;

use clap::Subcommand;
use fence_core::Epoch;

use crate::exit::{Ending, Failure};

/// At the end of `fence epoch --help`.
const HELP: &str = "\
A token is an epoch and a revision of the store. When a store loses history, by a restore or an emptied folder, its revisions
come again: advance the epoch after any restore, before the holders come back. A store that is seen to have lost history is
sealed, and grants nothing until then. A witness is a database with the guard: it remembers the epochs and how it last saw
the store. Without one, a data directory that was put back goes unseen.";

#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum EpochCommand {
    /// Say which epoch is in force, whether the store is sealed, and what the witnesses remember
    Show(show::ShowArguments),
    /// Write the epoch record of a lock store that never had one. Without a record it grants nothing
    Init(init::InitArguments),
    /// Begin a higher epoch: after any restore, to open a sealed store, or to place or move a class
    Advance(advance::AdvanceArguments),
    /// Keep witnesses current, every 10 s, and seal the store when they show that it lost history
    Watch(watch::WatchArguments),
}

/// Runs one of the subcommands.
pub(crate) fn run(command: &EpochCommand) -> Result<Ending, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::service)?;
    runtime.block_on(async {
        match command {
            EpochCommand::Show(arguments) => show::run(arguments).await,
            EpochCommand::Init(arguments) => init::run(arguments).await,
            EpochCommand::Advance(arguments) => advance::run(arguments).await,
            EpochCommand::Watch(arguments) => watch::run(arguments).await,
        }
    })
}

fn epoch(text: &str) -> Result<Epoch, String> {
    let number: u16 = text
        .parse()
        .map_err(|_| "an epoch is a number, 1 to 32767".to_owned())?;
    Epoch::new(number).map_err(|error| error.to_string())
}
