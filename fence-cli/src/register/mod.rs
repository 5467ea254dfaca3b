//! `fence register`: whether every class is fenced and freshly proven, or knowingly not.

mod calendar;
mod check;
mod evidence;
mod file;
mod finding;
mod list;
mod now;
mod table;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fence_core::{Day, Days};

use crate::config::Manifest;
use crate::exit::{Ending, Failure};
use crate::say;
use file::RegisterFile;

/// At the end of `fence register --help`.
const HELP: &str = "\
fence.toml declares every class: whether a double holder corrupts, what refuses a stale one, and how that is proven.
risk-register.toml, beside it, lists the classes that may corrupt and that nothing guards: who has accepted that, why, and
until when. `fence prove` writes the evidence that the check judges again, and what each class was proven by: the check
compares that with what is declared and stands in the SQL files now.";

/// What to do with the registers.
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum RegisterCommand {
    /// Judge the evidence again, and say of each class what is not in order: exit code 1 when something is not
    Check(CheckArguments),
    /// List the accepted risks, the next review first
    List(ListArguments),
}

/// What is checked, and on which day.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    common: CommonArguments,
    /// The folder of the evidence [default: fence-evidence beside fence.toml]
    #[arg(long, value_name = "DIR")]
    evidence: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is listed.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    common: CommonArguments,
    /// Only what is overdue or due within so many days, such as 30d
    #[arg(long, value_name = "DAYS", value_parser = calendar::days, allow_hyphen_values = true)]
    due: Option<Days>,
}

#[derive(Debug, Args)]
struct CommonArguments {
    /// The file that declares the classes; risk-register.toml stands beside it [default: fence.toml, here or above]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The UTC day to judge by, such as 2026-11-29 [default: today]
    #[arg(long, value_name = "DATE", value_parser = calendar::day, allow_hyphen_values = true)]
    today: Option<Day>,
}

/// Runs the command.
pub(crate) fn run(command: &RegisterCommand) -> Result<Ending, Failure> {
    match command {
        RegisterCommand::Check(arguments) => {
            let checked = check(arguments);
            if let (true, Err(failure)) = (arguments.json, &checked) {
                say::show(&format!("{:#}\n", failure.json()));
            }
            checked
        }
        RegisterCommand::List(arguments) => {
            let (_, register, today) = open(&arguments.common)?;
            say::answer(&list::text(&register, today, arguments.due))?;
            Ok(Ending::Done)
        }
    }
}

fn check(arguments: &CheckArguments) -> Result<Ending, Failure> {
    let (manifest, register, today) = open(&arguments.common)?;
    let folder = match &arguments.evidence {
        Some(folder) => folder.clone(),
        None => manifest.folder.join("fence-evidence"),
    };
    let outcome = check::check(&manifest, &register, &folder, today).map_err(Failure::usage)?;
    match arguments.json {
        true => say::answer(&format!("{}\n", table::json(&outcome)))?,
        false => say::answer(&table::text(&outcome))?,
    }
    match outcome.findings.is_empty() {
        true => Ok(Ending::Done),
        false => Ok(Ending::OutOfOrder),
    }
}

fn open(arguments: &CommonArguments) -> Result<(Manifest, RegisterFile, Day), Failure> {
    let manifest = Manifest::load(arguments.config.as_deref()).map_err(Failure::usage)?;
    let register = RegisterFile::load(&manifest.folder).map_err(Failure::usage)?;
    Ok((
        manifest,
        register,
        arguments.today.unwrap_or_else(calendar::today),
    ))
}
