//! Steps that no single line tells of.

use std::time::Duration;

use super::facts::Facts;
use super::step::{Lane, Step, Tone};
use super::words::{count, length};
use crate::history::{Event, Probe, ProbeKind};

/// From this on, time in which nothing happens is a step of its own.
const WAIT: Duration = Duration::from_millis(400);

/// The questions to the guard, as one step.
pub(super) fn asked(facts: &Facts<'_>) -> Option<Step> {
    let probes: Vec<_> = facts
        .events
        .iter()
        .filter(|(_, _, event)| matches!(event, Event::Probe(probe) if !is_of_a_holder(facts, probe)))
        .collect();
    let (first, last) = (probes.first()?, probes.last()?);
    let here = |event: &Event| matches!(event, Event::Probe(probe) if probe.key == facts.run.key);
    let here = probes.iter().filter(|(_, _, event)| here(event)).count();
    let keys = match (here, probes.len() - here) {
        (here, 0) => format!("{here} on this key"),
        (0, others) => format!("{others} on other keys"),
        (here, others) => format!("{here} on this key and {others} on others"),
    };
    let text = format!(
        "The guard is asked {} with known answers: {keys}",
        count(probes.len(), "question")
    );
    let mut step = Step::new(first.1, first.0, "asked", text)
        .dot(Lane::Mark)
        .tone(Tone::Aside);
    step.until = last.1;
    step.lines = probes.iter().map(|(line, ..)| *line).collect();
    Some(step)
}

/// Whether it is what a scenario does in a holder's name: an admission that is rolled back.
pub(super) fn is_of_a_holder(facts: &Facts<'_>, probe: &Probe) -> bool {
    let grant = probe.presented.grant.as_deref();
    probe.probe == ProbeKind::RolledBack
        && probe.key == facts.run.key
        && grant.is_some_and(|grant| facts.holder_of(grant).is_some())
}

/// The steps with a row for each long wait between them.
pub(super) fn with_waits(steps: Vec<Step>) -> Vec<Step> {
    let mut all: Vec<Step> = Vec::new();
    for step in steps {
        if let Some(before) = all.last()
            && step.at.since(before.until) >= WAIT
        {
            let mut wait = Step::new(
                before.until,
                0,
                format!("wait {}", before.sign),
                format!("{} pass", length(step.at.since(before.until))),
            );
            wait.until = step.at;
            wait.lines.clear();
            wait.tone = Tone::Wait;
            all.push(wait);
        }
        all.push(step);
    }
    all
}
