//! What came out, as the report that CI systems read: a suite for each class, a case for each scenario.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pause_kit::evidence::{Evidence, ScenarioEvidence, Verdict};
use pause_kit::plan::{Halves, Plan};
use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::summary;

/// The report could not be written. Name another file with `--junit`.
#[derive(Debug, thiserror::Error)]
pub(super) enum JunitError {
    #[error("the report for {} could not be put into words", .0.display())]
    Words(PathBuf, #[source] SerializeError),
    #[error("cannot write {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
}

/// Writes the report.
pub(super) fn write(file: &Path, plan: &Plan, evidence: &Evidence) -> Result<(), JunitError> {
    let text = report(plan, evidence)
        .to_string()
        .map_err(|error| JunitError::Words(file.to_owned(), error))?;
    fs::write(file, text).map_err(|error| JunitError::Io(file.to_owned(), error))
}

fn report(plan: &Plan, evidence: &Evidence) -> Report {
    let mut report = Report::new(plan.again.clone());
    for class in &evidence.classes {
        let mut suite = TestSuite::new(class.name.to_string());
        let of_class = evidence.scenarios.iter().filter(|one| one.class == class.name);
        for scenario in of_class {
            let mut case = TestCase::new(scenario.id.to_string(), status(plan.halves, scenario));
            case.set_classname(class.name.to_string());
            suite.add_test_case(case);
        }
        report.add_test_suite(suite);
    }
    report
}

/// Violated is a failure, and what shows nothing is an error. Without the guard it is the other way round: there the one that
/// stays clean is the failure.
fn status(halves: Halves, scenario: &ScenarioEvidence) -> TestCaseStatus {
    let kind = match (halves, scenario.verdict) {
        (Halves::DefeatedOnly, Verdict::Violated) => None,
        (Halves::DefeatedOnly, _) => Some(NonSuccessKind::Failure),
        (_, Verdict::Proven | Verdict::Held) => None,
        (_, Verdict::Violated) => Some(NonSuccessKind::Failure),
        (_, Verdict::Inconclusive) => Some(NonSuccessKind::Error),
    };
    let Some(kind) = kind else {
        return TestCaseStatus::success();
    };
    let mut status = TestCaseStatus::non_success(kind);
    let word = summary::verdict(halves, scenario);
    status.set_type(word);
    let broken = scenario.on.iter().flat_map(|on| on.violated.iter().flatten());
    let broken: Vec<String> = broken.map(|one| format!("{}: {}", one.name, one.why)).collect();
    let why = scenario
        .why
        .iter()
        .cloned()
        .chain(broken)
        .collect::<Vec<_>>()
        .join("\n");
    status.set_message(format!("{word}: {}", scenario.id.summary()));
    status.set_description(why);
    status
}
