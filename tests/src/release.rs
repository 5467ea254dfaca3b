//! Whether a commit may be released: only with a whole proof of itself, on the newest servers.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Why it could not be told.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The servers, and how their versions begin.
const SERVERS: [(&str, &str, &str); 2] = [("etcd", "etcd", "3.6."), ("postgres", "PostgreSQL", "18.")];

/// What speaks against a release of the commit that is checked out in `project`, with the evidence in this folder, as this
/// `fence` judges it again. Nothing when it may be released.
///
/// # Errors
///
/// When git or `fence` cannot be run.
pub fn faults(project: &Path, bundle: &Path, fence: &Path) -> Result<Vec<String>, Failure> {
    let mut faults = Vec::new();
    let commit = git(project, &["rev-parse", "--verify", "HEAD"])?
        .trim()
        .to_owned();
    if !git(project, &["status", "--porcelain"])?.is_empty() {
        faults.push(format!("the files here are not just those of commit {commit}"));
    }
    let Ok(text) = fs::read(bundle.join("evidence.json")) else {
        faults.push(format!(
            "there is no evidence in {}: run ./dev prove on this commit",
            bundle.display()
        ));
        return Ok(faults);
    };
    let evidence: Value = serde_json::from_slice(&text)?;
    let version = |name: &str| evidence["versions"][name].as_str().unwrap_or("none");
    if version("commit") != commit {
        faults.push(format!(
            "the evidence is of commit {}, and this is {commit}",
            version("commit")
        ));
    }
    for (name, shown, begins) in SERVERS {
        if !version(name).starts_with(begins) {
            faults.push(format!(
                "it was proven on {shown} {}, and a release is on {begins}x",
                version(name)
            ));
        }
    }
    // Each judges the histories again.
    let out = bundle.display().to_string();
    for judge in [&["verify", &out][..], &["register", "check", "--evidence", &out]] {
        let judged = Command::new(fence).args(judge).current_dir(project).output()?;
        if !judged.status.success() {
            let said = [judged.stdout, judged.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            faults.push(format!("fence {} says:\n{}", judge.join(" "), said.trim_end()));
        }
    }
    Ok(faults)
}

fn git(project: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let output = Command::new("git")
        .arg("-C")
        .arg(project)
        .args(arguments)
        .output()?;
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout)?),
        false => Err(format!("git: {}", String::from_utf8_lossy(&output.stderr).trim()).into()),
    }
}
