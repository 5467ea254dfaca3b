//! The outcome as a table for a person, and as JSON.

use std::fmt::Write;
use std::path::PathBuf;

use serde_json::json;

use super::calendar::written;
use super::check::Outcome;
use super::finding::shortened;
use crate::say;

/// For a person.
pub(super) fn text(outcome: &Outcome) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        writeln!(out, "{}", say::plain(text.trim_end())).expect("writing to a String does not fail");
    };
    let names = outcome.classes.iter().map(|class| class.class.as_str().len());
    let width = names.max().unwrap_or_default().max(5);
    line(&format!(
        "{:<width$}  {:<11}  {:<11}  on {}",
        "class",
        "purpose",
        "enforcement",
        written(outcome.today)
    ));
    for class in &outcome.classes {
        line(&format!(
            "{:<width$}  {:<11}  {:<11}  {}",
            class.class.as_str(),
            class.purpose,
            class.enforcement,
            class.state
        ));
    }
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::new());
    for finding in &outcome.findings {
        let number = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
        line("");
        line(&format!("{}: {}", finding.class, finding.what));
        line(&format!("  at    {}{number}", shortened(&finding.file, &here)));
        line(&format!("  next  {}", finding.next));
    }
    line("");
    line(&match outcome.findings.len() {
        0 => format!("{} classes, all in order", outcome.classes.len()),
        1 => "1 finding".to_owned(),
        count => format!("{count} findings"),
    });
    out
}

/// For a program.
pub(super) fn json(outcome: &Outcome) -> String {
    let classes: Vec<_> = outcome
        .classes
        .iter()
        .map(|class| {
            json!({
                "class": class.class,
                "purpose": class.purpose,
                "enforcement": class.enforcement,
                "state": class.state,
            })
        })
        .collect();
    let whole = json!({
        "today": written(outcome.today),
        "in_order": outcome.findings.is_empty(),
        "classes": classes,
        "findings": outcome.findings,
    });
    format!("{whole:#}")
}
