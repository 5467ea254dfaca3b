//! The moments of a history that are drawn: most lines, and the ends of stops and holds, which have no line of their own.

use std::collections::BTreeSet;

use super::around::is_of_a_holder;
use super::facts::Facts;
use crate::history::{At, Event, Exercise, Op};

/// A line, or the end of what a line tells of.
#[derive(Clone, Copy)]
pub(super) struct Moment<'h> {
    pub(super) at: At,
    pub(super) line: usize,
    pub(super) event: &'h Event,
    /// The stop is over, or the bytes are let go.
    pub(super) over: bool,
}

/// Everything that is drawn, in the order of time.
pub(super) fn moments<'h>(facts: &Facts<'h>) -> Vec<Moment<'h>> {
    let mut moments = Vec::new();
    for &(line, at, event) in &facts.events {
        let begins = Moment {
            at,
            line,
            event,
            over: false,
        };
        let ends = |at| Moment {
            at,
            line,
            event,
            over: true,
        };
        match event {
            Event::Probe(probe) if is_of_a_holder(facts, probe) => moments.push(begins),
            Event::Commit(_) | Event::Probe(_) | Event::Relay(_) => {}
            Event::Stop(stop) => {
                moments.push(begins);
                moments.extend(stop.resumed.map(ends));
            }
            Event::Hold(hold) => {
                moments.push(begins);
                moments.extend(hold.released.map(ends));
            }
            Event::Withheld(answer) => {
                moments.push(begins);
                moments.extend(answer.released.map(ends));
            }
            Event::Uncommitted(commit) => {
                moments.push(begins);
                moments.extend(commit.released.map(ends));
            }
            _ => moments.push(begins),
        }
    }
    moments.retain(|moment| !is_one_of_many(facts, moment.event));
    moments.sort_by_key(|moment| moment.at);
    moments
}

/// Whether it belongs to a write of a sweep that is neither the first nor the last: those two stand for all.
fn is_one_of_many(facts: &Facts<'_>, event: &Event) -> bool {
    let op = match event {
        Event::Hold(hold) => &hold.op,
        Event::Request(request) => &request.op,
        Event::Answer(answer) => &answer.op,
        Event::Unanswered(lost) => &lost.op,
        Event::DbAnswer(answer) => match &answer.op {
            Some(op) => op,
            None => return false,
        },
        _ => return false,
    };
    let attempts = &facts.run.attempts;
    let swept = matches!(facts.run.exercise, Exercise::Swept { .. });
    swept
        && attempts.len() > 2
        && attempts[1..attempts.len() - 1]
            .iter()
            .any(|attempt| attempt.op == *op)
}

/// The requests that were answered before anything else happened.
pub(super) fn merged<'h>(moments: &[Moment<'h>]) -> BTreeSet<&'h Op> {
    let loud = moments
        .iter()
        .filter(|moment| !matches!(moment.event, Event::DbAnswer(_)));
    let loud: Vec<_> = loud.collect();
    let pairs = loud
        .windows(2)
        .filter_map(|pair| match (pair[0].event, pair[1].event) {
            (Event::Request(request), Event::Answer(answer)) if request.op == answer.op => Some(&request.op),
            (Event::Request(request), Event::Unanswered(lost)) if request.op == lost.op => Some(&request.op),
            _ => None,
        });
    pairs.collect()
}
