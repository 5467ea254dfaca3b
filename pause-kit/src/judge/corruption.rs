//! The corruption in plain words.

use std::collections::BTreeMap;

use super::facts::Facts;
use super::verdict::{Invariant, Violation};
use crate::history::Change;

/// A committed write with the job that it did.
struct Done<'h> {
    id: &'h str,
    grant: Option<&'h str>,
    token: Option<i64>,
}

/// A job that was done twice; failing that, a late write or a lost one; failing that, a wait without end.
pub(super) fn in_plain_words(facts: &Facts<'_>, found: &[Violation]) -> Option<String> {
    done_twice(facts, found).or_else(|| {
        let first = |invariant| found.iter().find(|violation| violation.invariant == invariant);
        [
            Invariant::Order,
            Invariant::RealTimeRefusal,
            Invariant::DelayedPacket,
            Invariant::LostUpdate,
            Invariant::BoundedBlock,
        ]
        .into_iter()
        .find_map(first)
        .map(|violation| violation.why.clone())
    })
}

fn done_twice(facts: &Facts<'_>, found: &[Violation]) -> Option<String> {
    let mut jobs: BTreeMap<(&str, &str, &str), Vec<Done<'_>>> = BTreeMap::new();
    for commit in &facts.commits {
        let Change::Write {
            class,
            key,
            id,
            grant,
            job: Some(job),
            ..
        } = &commit.body.change
        else {
            continue;
        };
        let done = jobs.entry((class, key, job)).or_default();
        if done.iter().all(|earlier| earlier.id != id) {
            let grant = grant.as_deref();
            let token = facts.right(class, key, grant).map(|right| right.token);
            done.push(Done { id, grant, token });
        }
    }
    let ((_, _, job), done) = jobs.iter().find(|(_, done)| done.len() > 1)?;
    let (first, second) = (&done[0], &done[1]);
    // The one with the smaller token is late when it came after its successor's first contact, whoever did the job first.
    let out_of_order = found
        .iter()
        .any(|violation| violation.invariant == Invariant::Order);
    let late = |this: &Done<'_>, other: &Done<'_>| out_of_order && this.token < other.token;
    let after_first = if late(first, second) { ", late," } else { "" };
    let before_second = if late(second, first) { ", late," } else { "" };
    let (first, second) = (facts.who(first.grant), facts.who(second.grant));
    let deed = &facts.run.deed;
    Some(format!(
        "{job} was {deed} twice: by {first}{after_first} and{before_second} by {second}"
    ))
}
