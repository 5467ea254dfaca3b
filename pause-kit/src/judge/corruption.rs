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

/// A job that was done twice; failing that, a late write; failing that, a wait without end.
pub(super) fn in_plain_words(facts: &Facts<'_>, found: &[Violation]) -> Option<String> {
    done_twice(facts).or_else(|| {
        let first = |invariant| found.iter().find(|violation| violation.invariant == invariant);
        [
            Invariant::Order,
            Invariant::RealTimeRefusal,
            Invariant::DelayedPacket,
            Invariant::BoundedBlock,
        ]
        .into_iter()
        .find_map(first)
        .map(|violation| violation.why.clone())
    })
}

fn done_twice(facts: &Facts<'_>) -> Option<String> {
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
    let late = if second.token < first.token { ", late," } else { "" };
    let (first, second) = (facts.who(first.grant), facts.who(second.grant));
    let deed = &facts.run.deed;
    Some(format!(
        "{job} was {deed} twice: by {first} and{late} by {second}"
    ))
}
