//! The records of decisions under `docs/adr`.

use std::path::{Path, PathBuf};

use crate::architecture::assert_guarded;
use crate::source::{files, read};

fn records() -> Vec<PathBuf> {
    let mut records = files();
    records.retain(|file| file.starts_with("docs/adr") && !file.ends_with("README.md"));
    records.sort();
    records
}

#[test]
fn every_decision_says_what_it_rests_on_and_names_the_tests_that_hold_it() {
    for file in records() {
        let text = read(&file);
        let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
        for wanted in [
            "Context",
            "What was measured",
            "Decision",
            "Consequences",
            "Rejected",
        ] {
            let heading = format!("## {wanted}");
            assert!(
                headings.contains(&heading.as_str()),
                "{}: no {heading}",
                file.display()
            );
        }
        assert!(
            text.lines().count() <= 60,
            "{} is longer than a page",
            file.display()
        );
        assert_guarded(&text);
    }
}

#[test]
fn decisions_are_numbered_without_gaps_and_listed() {
    let list = read(Path::new("docs/adr/README.md"));
    let records = records();
    assert!(
        records.len() >= 4,
        "only {} decisions are recorded",
        records.len()
    );
    for (number, file) in (1..).zip(records) {
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(
            name.starts_with(&format!("{number:04}-")),
            "{name} is not number {number}"
        );
        assert!(
            read(&file).starts_with(&format!("# {number:04} ")),
            "{name} has another title"
        );
        assert!(
            list.contains(&format!("[{number:04}]({name})")),
            "{name} is not listed"
        );
    }
}
