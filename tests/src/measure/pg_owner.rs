//! The tests of the PostgreSQL guards once more, each in a database that a role with no further rights owns, installs the guard
//! in and uses; those that ask for a superuser beside it, for what no owner can set up, are listed by name.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use super::run::root;
use super::{Failure, Figure};

pub(crate) fn pg_owner() -> Result<Figure, Failure> {
    let folder = tempfile::tempdir()?;
    let roles = folder.path().join("roles");
    let output = Command::new("cargo")
        .args([
            "test",
            "--package",
            "fence-pg",
            "--all-features",
            "--no-fail-fast",
        ])
        .env("FENCE_TEST_ROLE", "owner")
        .env("FENCE_TEST_ROLES", &roles)
        .env("CARGO_TERM_COLOR", "never")
        .current_dir(root())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let tests = Tests::read(&text);
    let noted = fs::read_to_string(&roles).unwrap_or_default();
    let by = |word: &str| -> BTreeSet<&str> {
        let words = noted.lines().filter_map(|line| line.split_once(' '));
        words
            .filter(|(first, _)| *first == word)
            .map(|(_, test)| test)
            .collect()
    };
    let (owner, superuser) = (by("owner"), by("superuser"));
    for failed in &tests.failed {
        println!("failed: {failed}");
    }
    for ignored in &tests.ignored {
        println!("not run: {ignored}");
    }
    for test in &superuser {
        println!("with a superuser beside the owner: {test}");
    }
    let strangers: Vec<_> = owner
        .union(&superuser)
        .filter(|test| !tests.passed.contains(**test))
        .collect();
    for stranger in &strangers {
        println!("in a database, and not among the tests that passed: {stranger}");
    }
    Ok(Figure {
        line: format!(
            "{} of {} tests passed, {} of them in databases that a plain owner installed and used, {} of these with a superuser beside it",
            tests.passed.len(),
            tests.passed.len() + tests.failed.len() + tests.ignored.len(),
            owner.len(),
            superuser.len(),
        ),
        reached: output.status.success()
            && tests.failed.is_empty()
            && tests.ignored.is_empty()
            && strangers.is_empty()
            && owner.len() > 50
            && superuser.is_subset(&owner),
    })
}

/// What the test programs said.
#[derive(Default)]
struct Tests {
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
    ignored: BTreeSet<String>,
}

impl Tests {
    fn read(text: &str) -> Tests {
        let mut tests = Tests::default();
        for line in text.lines() {
            let Some((name, end)) = line
                .strip_prefix("test ")
                .and_then(|rest| rest.split_once(" ... "))
            else {
                continue;
            };
            let name = name.to_owned();
            match end {
                "ok" => tests.passed.insert(name),
                end if end.starts_with("ignored") => tests.ignored.insert(name),
                _ => tests.failed.insert(name),
            };
        }
        tests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_did_not_run_is_not_one_that_passed() {
        let text = "running 3 tests\ntest a::b ... ok\ntest a::c ... ignored, a service is missing\ntest a::d ... FAILED\n\
                    test src/lib.rs - x (line 3) - compile ... ok\ntest result: FAILED. 1 passed";
        let tests = Tests::read(text);
        assert_eq!(
            Vec::from_iter(&tests.passed),
            ["a::b", "src/lib.rs - x (line 3) - compile"]
        );
        assert_eq!(Vec::from_iter(&tests.failed), ["a::d"]);
        assert_eq!(Vec::from_iter(&tests.ignored), ["a::c"]);
    }
}
