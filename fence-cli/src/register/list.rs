//! The accepted risks, the next review first.

use std::fmt::Write;

use fence_core::{Day, Days, Risk};

use super::calendar::written;
use super::file::RegisterFile;

/// The table of the risks to be reviewed within so many days; of all, when no number is given.
pub(super) fn text(register: &RegisterFile, today: Day, within: Option<Days>) -> String {
    let due = register
        .register
        .due(today, within.unwrap_or(Days::new(u32::MAX)));
    if due.is_empty() {
        return match within {
            Some(within) => format!("nothing is due within {within} of {}\n", written(today)),
            None => "no risk is on the register\n".to_owned(),
        };
    }
    let width = |of: fn(&Risk) -> &str, head: &str| {
        let widths = due.iter().map(|risk| of(risk).chars().count());
        widths.max().unwrap_or_default().max(head.len())
    };
    let class = width(|risk| risk.class().as_str(), "class");
    let owner = width(|risk| &risk.parts().owner, "owner");
    let mut out = String::new();
    let mut row = |name: &str, who: &str, day: &str, left: &str| {
        writeln!(out, "{name:<class$}  {who:<owner$}  {day:<10}  {left}")
            .expect("writing to a String does not fail");
    };
    row("class", "owner", "review by", &format!("on {}", written(today)));
    for risk in due {
        let parts = risk.parts();
        let left = match (
            parts.review_by.days_after(today),
            today.days_after(parts.review_by),
        ) {
            (Some(left), _) => format!("{left} left"),
            (None, Some(past)) => format!("{past} overdue"),
            (None, None) => "overdue".to_owned(),
        };
        row(
            parts.class.as_str(),
            &parts.owner,
            &written(parts.review_by),
            &left,
        );
    }
    out
}
