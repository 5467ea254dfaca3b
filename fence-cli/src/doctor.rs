//! `fence doctor`: what a database's present state leaves open.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Args;
use serde::Serialize;
use serde_json::json;
use sqlx::Row as _;

use crate::exit::{Ending, Failure};
use crate::pg::{self, AnswerArguments, Database, DatabaseArguments, Installed, ServerError, literal, names};
use crate::say;

/// At the end of `fence doctor --help`.
const HELP: &str = "\
Exit code 0: nothing was found; 1: something was, or could not be judged. It changes nothing, but for --memory: a database that has
lost what FILE remembers is stopped (SQLSTATE ZF008) until SELECT fence.acknowledge('REASON'). Keep FILE on another machine than the
database. A severity is open: a write can pass the guard, or its mark can be lost; weak: the guard holds, and something that it
relies on does not; unknown: not judged, and why.";

/// Which database, and whom to suspect.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    database: DatabaseArguments,
    #[command(flatten)]
    answer: AnswerArguments,
    /// A role that the application connects as; repeat it for more [default: those that were granted the guard or may write a
    /// guarded table]
    #[arg(long, value_name = "ROLE")]
    application_role: Vec<String>,
    /// Compare the database with what FILE remembers of it, and let FILE remember it as it is now; it is made where there is none
    #[arg(long, value_name = "FILE")]
    memory: Option<PathBuf>,
}

/// One way around, or one doubt.
#[derive(Debug, Serialize)]
struct Finding {
    severity: String,
    finding: String,
    object: String,
    detail: String,
    fix: String,
}

/// The file of an outside memory cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} {}", file.display())]
struct MemoryError {
    what: &'static str,
    file: PathBuf,
    source: io::Error,
}

/// Runs the command.
pub(crate) fn run(arguments: &DoctorArguments) -> Result<Ending, Failure> {
    pg::told(arguments.answer.json, pg::block_on(look(arguments)))
}

async fn look(arguments: &DoctorArguments) -> Result<Ending, Failure> {
    let mut database = arguments.database.connect("fence doctor").await?;
    let mut findings = Vec::new();
    let installed = Installed::read(&mut database).await?;
    if let Some(finding) = of_installation(&installed) {
        findings.push(finding);
    }
    if installed.has_doctor() {
        if let Some(file) = &arguments.memory {
            findings.extend(compare(&mut database, file).await?);
        }
        findings.extend(of_database(&mut database, &arguments.application_role).await?);
    }
    database.notices.tell();
    database.close().await;
    match arguments.answer.json {
        true => say::answer(&format!("{:#}\n", json!({ "findings": findings })))?,
        false => say::answer(&text(&findings))?,
    }
    match findings.is_empty() {
        true => Ok(Ending::Done),
        false => Ok(Ending::Found),
    }
}

async fn of_database(database: &mut Database, roles: &[String]) -> Result<Vec<Finding>, Failure> {
    let roles = match roles.is_empty() {
        true => String::new(),
        false => names(roles),
    };
    let rows = database
        .run(&format!("SELECT * FROM fence.doctor({roles})"))
        .await?;
    let mut findings = Vec::new();
    for row in rows {
        let text = |column: &str| row.try_get::<String, _>(column).map_err(ServerError::failure);
        findings.push(Finding {
            severity: text("severity")?,
            finding: text("finding")?,
            object: text("object")?,
            detail: text("detail")?,
            fix: text("fix")?,
        });
    }
    Ok(findings)
}

fn of_installation(installed: &Installed) -> Option<Finding> {
    let (severity, finding, detail, fix) = match installed {
        Installed::Whole => return None,
        Installed::Nothing => (
            "open",
            "not-installed",
            "there is no guard in this database".to_owned(),
            "fence pg migrate",
        ),
        Installed::Behind(files) => (
            "weak",
            "guard-behind",
            format!("the guard lacks, or has otherwise, {}", files.join(", ")),
            "fence pg migrate",
        ),
        Installed::Newer(file) => (
            "unknown",
            "guard-newer",
            format!("not judged whole: the guard has {file}, which this command does not know"),
            "Use the command of the same release as the guard.",
        ),
    };
    Some(Finding {
        severity: severity.to_owned(),
        finding: finding.to_owned(),
        object: "fence".to_owned(),
        detail,
        fix: fix.to_owned(),
    })
}

/// Compares a memory with the database, and takes a new one unless the database has lost the old.
async fn compare(database: &mut Database, file: &Path) -> Result<Option<Finding>, Failure> {
    let fault = |what, source| {
        Failure::usage(MemoryError {
            what,
            file: file.to_owned(),
            source,
        })
    };
    match fs::read_to_string(file) {
        Ok(memory) => {
            let sql = format!(
                "SELECT fence.compare_memory({}) AS outcome",
                literal(memory.trim())
            );
            let rows = database.run(&sql).await?;
            let outcome: String = match rows.first() {
                Some(row) => row.try_get("outcome").map_err(ServerError::failure)?,
                None => String::new(),
            };
            if let Some(finding) = of_memory(&outcome, file) {
                return Ok(Some(finding));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            say::remark(&format!(
                "notice: {} remembers nothing yet; it does from now on",
                file.display()
            ));
        }
        Err(error) => return Err(fault("read", error)),
    }
    let rows = match database.run("SELECT fence.remember() AS memory").await {
        Ok(rows) => rows,
        // A history in doubt is no memory: doctor names it.
        Err(Failure::Usage(_)) => return Ok(None),
        Err(failure) => return Err(failure),
    };
    if let Some(row) = rows.first() {
        let memory: String = row.try_get("memory").map_err(ServerError::failure)?;
        write(file, &memory).map_err(|error| fault("write", error))?;
    }
    Ok(None)
}

fn of_memory(outcome: &str, file: &Path) -> Option<Finding> {
    let (finding, detail, fix) = match outcome {
        "same" | "ahead" => return None,
        "lost" => (
            "history-lost",
            format!(
                "the database has lost what {} remembers, and whatever came later; its admissions are stopped",
                file.display()
            ),
            "Begin an epoch above every earlier one in the lock store, register it with SELECT fence.register_epoch, then SELECT \
             fence.acknowledge('REASON').",
        ),
        _ => (
            "memory-of-another",
            format!("{} remembers another database", file.display()),
            "Connect to the database that it is about, or name another file.",
        ),
    };
    Some(Finding {
        severity: "open".to_owned(),
        finding: finding.to_owned(),
        object: "history".to_owned(),
        detail,
        fix: fix.to_owned(),
    })
}

/// Replaces the file in one step, so that it never holds half a memory.
fn write(file: &Path, memory: &str) -> io::Result<()> {
    use io::Write as _;
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(new, "{memory}")?;
    new.as_file().sync_all()?;
    new.persist(file).map_err(|error| error.error)?;
    Ok(())
}

fn text(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "nothing is open\n".to_owned();
    }
    let mut out = String::new();
    for finding in findings {
        // Writing to a String does not fail.
        let _ = writeln!(
            out,
            "{:<7}  {}  {}\n         {}\n         fix: {}",
            finding.severity,
            finding.finding,
            say::plain(&finding.object),
            say::plain(&finding.detail),
            say::plain(&finding.fix)
        );
    }
    let count = |severity: &str| {
        findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    let _ = writeln!(
        out,
        "{} open, {} weak, {} not judged",
        count("open"),
        count("weak"),
        count("unknown")
    );
    out
}
