//! Broken guards: each file under `tests/mutants` replaces `fence.admit`, and its first line names the invariant that the
//! proof must find broken.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::run::{evidence, finish, root, scenarios};
use super::{Failure, Figure};

pub(crate) fn mutants() -> Result<Figure, Failure> {
    kill_all("tests/mutants", 5, &[])
}

/// Proves each mutant of a folder, which holds at least so many, by runs with these arguments.
pub(crate) fn kill_all(folder: &str, least: usize, arguments: &[&str]) -> Result<Figure, Failure> {
    let mut files: Vec<_> = fs::read_dir(root().join(folder))?.collect::<Result<Vec<_>, _>>()?;
    files.retain(|file| file.path().extension().is_some_and(|end| end == "sql"));
    files.sort_by_key(fs::DirEntry::file_name);
    let (mut killed, mut all) = (0, 0);
    for file in files {
        all += 1;
        let name = file.file_name().to_string_lossy().into_owned();
        let verdict = match kill(&file.path(), arguments) {
            Ok(how) => {
                killed += 1;
                how
            }
            Err(error) => format!("survived: {error}"),
        };
        println!("{name:<44} {verdict}");
    }
    Ok(Figure {
        line: format!("{killed} of {all} mutants killed"),
        reached: killed == all && all >= least,
    })
}

/// Proves a copy of the project whose guard is the mutant, and says by what it was found.
fn kill(mutant: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let text = fs::read_to_string(mutant)?;
    let expected = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("-- breaks: "))
        .ok_or("its first line is not `-- breaks: NUMBER NAME`")?;
    let number = expected.split(' ').next().unwrap_or_default();
    let copy = copy_with(mutant)?;
    let config = copy.path().join("fence.toml").display().to_string();
    let out = copy.path().join("evidence");
    let kept = out.display().to_string();
    let own = ["--config", &config, "--seed", "7", "--out", &kept];
    let run = finish(&[&own[..], arguments].concat())?;
    if run.exit != Some(1) {
        return Err(format!("exit {:?}, not 1\n{}", run.exit, run.text()).into());
    }
    let evidence = evidence(&out)?;
    let broken: Vec<String> = scenarios(&evidence)?
        .iter()
        .filter(|one| one["verdict"] == "violated")
        .flat_map(|one| one["on"]["violated"].as_array().cloned().unwrap_or_default())
        .map(|violation| violation["invariant"].to_string())
        .collect();
    if !broken.iter().any(|invariant| invariant == number) {
        return Err(format!("expected invariant {expected}, found {broken:?}").into());
    }
    Ok(format!("violated, invariant {expected}"))
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
