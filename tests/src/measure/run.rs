//! One run of `fence prove`, as a person would start it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::{Failure, family};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// A folder of temporary files that a run has for itself, reachable by the user that PostgreSQL runs as.
pub(crate) fn folder() -> Result<TempDir, Failure> {
    let folder = tempfile::Builder::new().prefix("fence-measure-").tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777))?;
    Ok(folder)
}

/// `fence prove` with its own folder of temporary files, in a process group of its own.
pub(crate) fn prove(temporary: &Path, arguments: &[&str]) -> Command {
    use std::os::unix::process::CommandExt;
    // It was built together with this program.
    let beside = std::env::current_exe()
        .unwrap_or_default()
        .with_file_name("fence");
    let mut command = Command::new(beside);
    command
        .arg("prove")
        .args(arguments)
        .env("TMPDIR", temporary)
        .current_dir(root());
    command.stdin(Stdio::null()).process_group(0);
    command
}

/// A finished run.
pub(crate) struct Finished {
    pub(crate) exit: Option<i32>,
    pub(crate) output: Output,
    pub(crate) took: Duration,
    /// What was left behind: processes, temporary files, shared memory.
    pub(crate) left: Vec<String>,
}

impl Finished {
    /// What the run printed, both streams.
    pub(crate) fn text(&self) -> String {
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!("{}{}", shown(&self.output.stdout), shown(&self.output.stderr))
    }
}

/// Runs `fence prove` to its end and looks for what it left behind.
pub(crate) fn finish(arguments: &[&str]) -> Result<Finished, Failure> {
    family::adopt()?;
    let temporary = folder()?;
    let segments = segments()?;
    let start = Instant::now();
    let output = prove(temporary.path(), arguments).output()?;
    let took = start.elapsed();
    let mut left = left_behind(temporary.path(), segments)?;
    if let Err(relatives) = family::gone_within(Duration::from_millis(500))? {
        left.extend(
            relatives
                .into_iter()
                .map(|relative| format!("process {} {}", relative.pid, relative.name)),
        );
    }
    Ok(Finished {
        exit: output.status.code(),
        output,
        took,
        left,
    })
}

/// The temporary files and shared memory that are there now and should not be.
pub(crate) fn left_behind(temporary: &Path, segments_before: usize) -> Result<Vec<String>, Failure> {
    let mut left = Vec::new();
    for item in fs::read_dir(temporary)? {
        left.push(format!("{}", item?.path().display()));
    }
    let segments_now = segments()?;
    if segments_now > segments_before {
        left.push(format!(
            "{} segments of System V shared memory",
            segments_now - segments_before
        ));
    }
    Ok(left)
}

/// The segments of System V shared memory whose creator is gone: nobody will remove them.
pub(crate) fn segments() -> Result<usize, Failure> {
    let table = fs::read_to_string("/proc/sysvipc/shm")?;
    let mut rows = table
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>());
    let creator = rows
        .next()
        .and_then(|head| head.iter().position(|name| *name == "cpid"))
        .ok_or("no column cpid")?;
    let orphaned = |row: &Vec<&str>| {
        row.get(creator)
            .is_some_and(|pid| !Path::new("/proc").join(pid).exists())
    };
    Ok(rows.filter(orphaned).count())
}

/// The evidence that a run wrote.
pub(crate) fn evidence(folder: &Path) -> Result<Value, Failure> {
    let file = folder.join("evidence.json");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(serde_json::from_str(&text)?)
}

/// The scenarios of the evidence.
pub(crate) fn scenarios(evidence: &Value) -> Result<&Vec<Value>, Failure> {
    evidence["scenarios"]
        .as_array()
        .ok_or_else(|| "evidence.json has no scenarios".into())
}

/// Whether a scenario is a control, which must hold and has no twin.
pub(crate) fn is_control(scenario: &Value) -> bool {
    scenario["verdict"] == "held" && scenario["defeated"].is_null()
}

/// Waits for a child without losing the others: its exit code, or the signal as 128 and more.
pub(crate) fn wait(child: &mut Child) -> Result<i32, Failure> {
    use std::os::unix::process::ExitStatusExt;
    let status = child.wait()?;
    Ok(status
        .code()
        .or(status.signal().map(|signal| 128 + signal))
        .unwrap_or(-1))
}
