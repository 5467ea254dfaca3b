//! Broken services: each file under `tests/mutants/service` replaces lines of the example in Python, whose table has no trigger, so
//! that its own code is all that fences.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::super::mutants::{Project, copy_tree};
use super::super::run::root;
use super::Failure;

/// The scenarios that the example is put through here: also those whose late write no fresher token can reach.
const SCENARIOS: &str = r#"scenarios = ["S01", "S02", "S05", "S07", "S29", "S34", "S35", "S67"]"#;
const DEFEAT: &str = r#"defeat_sql = "../../reference-resource/defeat/admit_everything.sql""#;

/// The example.
pub(super) const STOCK: Project = Project {
    copy_with,
    folder: "examples/python-http",
};

fn copy_with(mutant: &Path) -> Result<TempDir, Failure> {
    let copy = tempfile::tempdir()?;
    // Where the example looks for the guard's SQL.
    for path in [
        "fence-pg/sql",
        "reference-resource/defeat",
        "examples/python-http",
    ] {
        copy_tree(&root().join(path), &copy.path().join(path))?;
    }
    let example = copy.path().join("examples/python-http");
    let program = example.join("stock.py");
    let broken = changed(&fs::read_to_string(&program)?, &fs::read_to_string(mutant)?)?;
    fs::write(&program, broken)?;
    let config = example.join("fence.toml");
    let lines = fs::read_to_string(&config)?;
    let lines = lines.lines().map(|line| match line {
        line if line.starts_with("scenarios = ") => SCENARIOS,
        line if line.starts_with("defeat = ") => DEFEAT,
        line => line,
    });
    fs::write(&config, lines.collect::<Vec<_>>().join("\n"))?;
    Ok(copy)
}

/// The program with each replacement made: what stands between `<<<<` and `====` becomes what stands between that and
/// `>>>>`, in whole lines or in a part of one.
fn changed(program: &str, mutant: &str) -> Result<String, Failure> {
    let mut program = program.to_owned();
    for change in mutant.split("<<<<\n").skip(1) {
        let (was, then) = change.split_once("====\n").ok_or("a change without ====")?;
        let (then, _) = then.split_once(">>>>\n").ok_or("a change without >>>>")?;
        let (was, then) = match program.contains(was) {
            true => (was, then),
            false => (was.trim_end_matches('\n'), then.trim_end_matches('\n')),
        };
        if program.matches(was).count() != 1 {
            return Err(format!("not there, or more than once: {was}").into());
        }
        program = program.replace(was, then);
    }
    Ok(program)
}
