//! Every way to break a guard that the proof knows of, and every way to break a good history: each is found, by what was named
//! beforehand.

mod known;
mod service;

use std::collections::BTreeSet;
use std::process::Command;

use super::mutants::{PAYDB, all, killed};
use super::run::root;
use super::{Failure, Figure};
use known::{Found, KNOWN};

/// How many broken histories there are at least.
const HISTORIES: usize = 30;

pub(crate) fn kit_mutants() -> Result<Figure, Failure> {
    let guard = killed(&all("tests/mutants", "sql")?, &PAYDB, 50)?;
    let installed = killed(&all("tests/mutants/sql", "sql")?, &PAYDB, 50)?;
    let service = killed(&all("tests/mutants/service", "txt")?, &service::STOCK, 12)?;
    let known = known()?;
    let histories = histories()?;
    let legs = [
        ("of the guard", guard),
        ("of the rest of its SQL", installed),
        ("of a service", service),
        ("ways", known),
        ("histories", histories),
    ];
    Ok(Figure {
        line: legs
            .each_ref()
            .map(|(what, leg)| format!("{what}: {}", leg.line))
            .join("; "),
        reached: legs.iter().all(|(_, leg)| leg.reached),
    })
}

/// Each known way has its mutants among the files, or a test that plays it, which is run here.
fn known() -> Result<Figure, Failure> {
    let mut found = 0;
    for (way, by) in KNOWN {
        let verdict = match by {
            Found::Mutants(files) => {
                let absent = files
                    .iter()
                    .find(|file| !root().join("tests/mutants").join(file).is_file());
                absent.map_or_else(
                    || Ok(files.join(", ")),
                    |file| Err(format!("{file} is not there")),
                )
            }
            Found::Test { package, name, why } => {
                let passed = tests(package, name)?.len() == 1;
                let said = format!("{name} of {package}: {why}");
                if passed { Ok(said) } else { Err(said) }
            }
        };
        found += usize::from(verdict.is_ok());
        let verdict = verdict.unwrap_or_else(|why| format!("survived: {why}"));
        println!("{way:<64} {verdict}");
    }
    Ok(Figure {
        line: format!(
            "{found} of {} known ways have mutants that are killed",
            KNOWN.len()
        ),
        reached: found == KNOWN.len(),
    })
}

/// The judge's own tests, each of which breaks something in a good history.
fn histories() -> Result<Figure, Failure> {
    let named = tests("pause-kit", "judge::mutants::")?;
    for name in &named {
        println!("found in a history: {name}");
    }
    Ok(Figure {
        line: format!("{} ways to break a good one found", named.len()),
        reached: named.len() >= HISTORIES,
    })
}

/// The names of the tests that this one begins, or is, and that passed. None where one of them failed.
fn tests(package: &str, name: &str) -> Result<BTreeSet<String>, Failure> {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--package", package, "--test", "it", "--", name]);
    cargo.env("CARGO_TERM_COLOR", "never");
    let output = cargo.current_dir(root()).output()?;
    if !output.status.success() {
        println!("{}", String::from_utf8_lossy(&output.stdout));
        return Ok(BTreeSet::new());
    }
    let text = String::from_utf8(output.stdout)?;
    let passed = text
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... ok"));
    Ok(passed.map(str::to_owned).collect())
}
