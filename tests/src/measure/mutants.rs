//! Broken guards: each file under `tests/mutants` replaces `fence.admit` or `fence.raise_mark`. Its first two lines name the
//! invariant that is found broken and the scenario that finds it, beforehand.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::run::{evidence, finish, root, scenarios};
use super::{Failure, Figure};

pub(crate) fn mutants() -> Result<Figure, Failure> {
    killed(&all("tests/mutants", "sql")?, &PAYDB, 5)
}

/// The files of a folder that end so, in the order of their names.
pub(super) fn all(folder: &str, end: &str) -> Result<Vec<PathBuf>, Failure> {
    let files = fs::read_dir(root().join(folder))?.map(|file| file.map(|file| file.path()));
    let mut files = files.collect::<Result<Vec<_>, _>>()?;
    files.retain(|file| file.extension().is_some_and(|known| known == end));
    files.sort();
    Ok(files)
}

/// Plays each of these mutants, of which there are at least so many, in the copy of a project that it is put into.
pub(super) fn killed(files: &[PathBuf], project: &Project, least: usize) -> Result<Figure, Failure> {
    let mut killed = 0;
    for file in files {
        let verdict = match kill(file, project) {
            Ok(how) => {
                killed += 1;
                how
            }
            Err(error) => format!("survived: {error}"),
        };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        println!("{name:<48} {verdict}");
    }
    let all = files.len();
    Ok(Figure {
        line: format!("{killed} of {all} mutants killed"),
        reached: killed == all && all >= least,
    })
}

/// What mutants are put into.
pub(super) struct Project {
    /// Makes a copy with this mutant in it.
    pub(super) copy_with: fn(&Path) -> Result<TempDir, Failure>,
    /// Where its `fence.toml` stands in the copy.
    pub(super) folder: &'static str,
}

/// This workspace's own.
pub(super) const PAYDB: Project = Project {
    copy_with,
    folder: "",
};

/// Plays the guarded half of the scenario that a mutant names in a copy of the project that it is in, and says by what it
/// was found.
fn kill(mutant: &Path, project: &Project) -> Result<String, Failure> {
    let text = fs::read_to_string(mutant)?;
    let named = |number: usize, word: &str| text.lines().nth(number)?.strip_prefix(word);
    let expected = named(0, "-- breaks: ").ok_or("its first line is not `-- breaks: NUMBER NAME`")?;
    let scenario = named(1, "-- by: ").ok_or("its second line is not `-- by: SCENARIO`")?;
    let number = expected.split(' ').next().unwrap_or_default();
    let copy = (project.copy_with)(mutant)?;
    let path = |file: &str| copy.path().join(project.folder).join(file).display().to_string();
    let (config, out) = (path("fence.toml"), path("evidence"));
    let own = ["--config", &config, "--seed", "7", "--out", &out];
    let run = finish(&[&own[..], &["--scenario", scenario, "--only-guarded"]].concat())?;
    if run.exit != Some(1) {
        return Err(format!("exit {:?}, not 1\n{}", run.exit, run.text()).into());
    }
    let evidence = evidence(Path::new(&out))?;
    let broken: Vec<String> = scenarios(&evidence)?
        .iter()
        .filter(|one| one["verdict"] == "violated")
        .flat_map(|one| one["on"]["violated"].as_array().cloned().unwrap_or_default())
        .map(|violation| violation["invariant"].to_string())
        .collect();
    if !broken.iter().any(|invariant| invariant == number) {
        return Err(format!("expected invariant {expected}, found {broken:?}").into());
    }
    Ok(format!("violated in {scenario}, invariant {expected}"))
}

/// A copy of the project whose guard ends with this file.
pub(crate) fn copy_with(mutant: &Path) -> Result<TempDir, Failure> {
    let copy = tempfile::tempdir()?;
    for path in ["fence.toml", "fence-pg/sql", "reference-resource"] {
        copy_tree(&root().join(path), &copy.path().join(path))?;
    }
    fs::copy(mutant, copy.path().join("fence-pg/sql/9999_mutant.sql"))?;
    Ok(copy)
}

pub(super) fn copy_tree(from: &Path, to: &Path) -> Result<(), Failure> {
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
