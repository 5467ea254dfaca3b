//! A copy of what `fence register check` reads.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// Why something could not be tried.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The day by which everything is judged, and to which the evidence is dated: between the acceptance and the review of every
/// risk on the repository's register.
pub const TODAY: &str = "2026-11-29";

/// The guard of the class of accounts.
pub(super) const GUARD: &str = "fence-pg/sql";
/// The guard of the class of settlements.
pub(super) const SETTLEMENT_GUARD: &str = "settlement-guard";

/// What the check reads, in a folder of its own.
pub struct Project {
    folder: TempDir,
    fence: PathBuf,
}

/// What `fence register check` said.
#[derive(Debug)]
pub struct Checked {
    /// Its exit code.
    pub code: Option<i32>,
    /// The classes that its findings name.
    pub classes: BTreeSet<String>,
    /// All that it printed.
    pub text: String,
}

impl Project {
    /// Copies the repository's registers and guard, gives the class of settlements a target and a guard of its own, and
    /// proves the copy with this `fence`, whose folder holds paydb.
    ///
    /// # Errors
    ///
    /// When a file cannot be copied, or the copy is not proven.
    pub fn proven(fence: &Path) -> Result<Project, Failure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let project = Project::copied(&root, fence)?;
        project.split()?;
        let mut prove = Command::new(fence);
        prove.args(["prove", "--seed", "7"]).current_dir(project.path());
        let output = prove.output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stdout);
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("fence prove: {}\n{said}{error}", output.status).into());
        }
        // Nothing is judged by the day of the run but its age, which is what is pinned here.
        project.edit("fence-evidence/evidence.json", |text| {
            let started = text.lines().find(|line| line.contains("\"started\":"));
            let started = started.ok_or("evidence.json does not say when it was started")?;
            Ok(text.replacen(started, &format!("  \"started\": \"{TODAY}T12:00:00Z\","), 1))
        })?;
        Ok(project)
    }

    /// Another copy, to be spoilt.
    ///
    /// # Errors
    ///
    /// When a file cannot be copied.
    pub fn again(&self) -> Result<Project, Failure> {
        let copy = Project::copied(self.path(), &self.fence)?;
        for part in ["fence-evidence", SETTLEMENT_GUARD] {
            copy_tree(&self.path().join(part), &copy.path().join(part))?;
        }
        Ok(copy)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs `fence register check` on this day.
    ///
    /// # Errors
    ///
    /// When it cannot be run. What it finds is no error.
    pub fn check(&self, today: &str) -> Result<Checked, Failure> {
        let mut check = Command::new(&self.fence);
        check.args(["register", "check", "--json", "--today", today]);
        let output = check.current_dir(self.path()).output()?;
        let findings: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let findings = findings["findings"].as_array().cloned().unwrap_or_default();
        let classes = findings.iter().filter_map(|finding| finding["class"].as_str());
        Ok(Checked {
            code: output.status.code(),
            classes: classes.map(ToOwned::to_owned).collect(),
            text: format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            ),
        })
    }

    /// Changes the text of a file, which must then be another one.
    ///
    /// # Errors
    ///
    /// When there is no such file, the change fails, or it changes nothing.
    pub fn edit(
        &self,
        file: &str,
        change: impl FnOnce(&str) -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        let path = self.path().join(file);
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let changed = change(&text)?;
        if changed == text {
            return Err(format!("nothing was changed in {file}").into());
        }
        Ok(fs::write(&path, changed)?)
    }

    /// Two targets that differ in their names and guards.
    fn split(&self) -> Result<(), Failure> {
        let own = self.path().join(SETTLEMENT_GUARD);
        copy_tree(&self.path().join(GUARD), &own)?;
        fs::write(own.join("9000_settlements.sql"), "-- The guard of settlements.\n")?;
        self.edit("fence.toml", |text| {
            let (before, target) = text.split_once("[targets.paydb]").ok_or("there is no target")?;
            let class = "[classes.\"paydb.settlement\".proof]\ntarget = \"";
            let before = before.replacen(&format!("{class}paydb\""), &format!("{class}settlements\""), 1);
            let second = target.replace("targets.paydb", "targets.settlements");
            let second = second.replacen(GUARD, SETTLEMENT_GUARD, 1);
            Ok(format!(
                "{before}[targets.paydb]{target}\n[targets.settlements]{second}"
            ))
        })
    }

    fn copied(from: &Path, fence: &Path) -> Result<Project, Failure> {
        let folder = tempfile::tempdir()?;
        for part in [
            "fence.toml",
            "risk-register.toml",
            GUARD,
            "reference-resource/defeat",
        ] {
            copy_tree(&from.join(part), &folder.path().join(part))?;
        }
        let fence = fence.to_owned();
        Ok(Project { folder, fence })
    }
}

fn copy_tree(from: &Path, to: &Path) -> Result<(), Failure> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for item in fs::read_dir(from)? {
            let item = item?;
            copy_tree(&item.path(), &to.join(item.file_name()))?;
        }
    } else {
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(from, to)?;
    }
    Ok(())
}
