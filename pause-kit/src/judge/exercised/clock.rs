//! Whether all times can come from one clock: invariant 16.

use crate::history::{At, Event};
use crate::judge::facts::Facts;
use crate::judge::verdict::{Invariant, Violation};

/// 16: times never run backwards, in the file or within an operation, and every name that an event bears is a request's.
pub(in crate::judge) fn one_clock(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut report = |why: &str, lines: &[usize]| found.push(Violation::new(Invariant::OneClock, why, lines));
    let mut before = (1, At::from_nanos(0));
    for (line, at, event) in facts.history.events() {
        if at < before.1 {
            report("the lines are not in the order of time", &[before.0, line]);
        }
        before = (line, at);
        let backwards = match event {
            Event::Stop(stop) => stop.asked > at || stop.resumed.is_some_and(|resumed| resumed < at),
            Event::Withheld(answer) => answer.released.is_some_and(|released| released < at),
            Event::Uncommitted(commit) => commit.released.is_some_and(|released| released < at),
            Event::Hold(hold) => hold.released.is_some_and(|released| released < at),
            Event::Request(request) => request.sent.is_some_and(|sent| sent < at),
            Event::Read(read) => read.began > at,
            _ => false,
        };
        if backwards {
            report("something ends before it begins", &[line]);
        }
    }
    for op in &facts.ops {
        if let Some(answer) = op.answer.filter(|answer| answer.at < op.began) {
            report("a request is answered before it begins", &[op.line, answer.line]);
        }
    }
    for (line, name) in &facts.strays {
        report(
            &format!("{name} is the name of no request, or of two, or is answered twice"),
            &[*line],
        );
    }
    for pair in facts.commits.windows(2) {
        if pair[0].body.order == pair[1].body.order {
            report(
                "two commits have one place in the order",
                &[pair[0].line, pair[1].line],
            );
        }
    }
    found
}
