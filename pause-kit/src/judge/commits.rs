//! What the resource's commit order says: invariants 1, 6 and 10, from the write-ahead log and not from the guard's own word.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::facts::{Facts, Seen};
use super::verdict::{Invariant, Violation};
use crate::history::{Change, Commit, GuardForm};

/// A committed admission or write of one key with its true token.
pub(super) struct Entry<'h> {
    line: usize,
    grant: Option<&'h str>,
    token: i64,
    what: &'static str,
}

/// What is counted for each class and key.
pub(super) type ByKey<'h, T> = BTreeMap<(&'h str, &'h str), T>;

/// 1 and 6 of these commits.
pub(super) fn in_order(facts: &Facts<'_>) -> Vec<Violation> {
    let keys = by_key(facts);
    [order(facts, &keys), contiguity(facts, &keys)].concat()
}

/// 1: tokens do not fall in commit order.
fn order(facts: &Facts<'_>, keys: &ByKey<'_, Vec<Entry<'_>>>) -> Vec<Violation> {
    let mut found = Vec::new();
    for ((_, key), entries) in keys {
        let mut highest: Option<&Entry<'_>> = None;
        let mut named = BTreeSet::new();
        for entry in entries {
            match highest {
                Some(newer) if entry.token < newer.token => {
                    if named.insert((entry.grant, entry.what)) {
                        let (late, newer_who) = (facts.who(entry.grant), facts.who(newer.grant));
                        let why = format!(
                            "on {key}, {} of {late} was committed after {} of {newer_who}",
                            entry.what, newer.what
                        );
                        found.push(Violation::new(Invariant::Order, why, &[newer.line, entry.line]));
                    }
                }
                _ => highest = Some(entry),
            }
        }
    }
    found
}

/// 6: in commit order each grant has one unbroken run.
fn contiguity(facts: &Facts<'_>, keys: &ByKey<'_, Vec<Entry<'_>>>) -> Vec<Violation> {
    let mut found = Vec::new();
    for ((_, key), entries) in keys {
        let mut over: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        for pair in entries.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            if before.grant == after.grant {
                continue;
            }
            over.insert(before.grant, before.line);
            if let Some(left_off) = over.get(&after.grant) {
                let who = facts.who(after.grant);
                let why = format!(
                    "on {key}, {who} came back after {} had taken over",
                    facts.who(before.grant)
                );
                found.push(Violation::new(
                    Invariant::Contiguity,
                    why,
                    &[*left_off, before.line, after.line],
                ));
                break;
            }
        }
    }
    found
}

/// 10: an id has one effect, which is one transaction.
pub(super) fn one_effect(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut first: HashMap<(&str, &str), (u64, usize)> = HashMap::with_capacity(facts.commits.len());
    for commit in &facts.commits {
        let Change::Write { id, key, .. } = &commit.body.change else {
            continue;
        };
        // A row's last writer may be the last writer of other rows as well; a mark guard's ids are of one operation each.
        let row = if facts.run.guard == GuardForm::Column {
            key
        } else {
            ""
        };
        let earlier = first.entry((id, row)).or_insert((commit.body.xid, commit.line));
        if earlier.0 != commit.body.xid {
            let why = format!("{id} took effect twice");
            found.push(Violation::new(
                Invariant::Idempotency,
                why,
                &[earlier.1, commit.line],
            ));
        }
    }
    found
}

/// Admissions and writes of each key in commit order, with the token of the grant that they truly belong to.
fn by_key<'h>(facts: &Facts<'h>) -> ByKey<'h, Vec<Entry<'h>>> {
    let mut keys: ByKey<'h, Vec<Entry<'h>>> = BTreeMap::new();
    // One grant's commits mostly follow each other, so that its token is at hand.
    let mut last = None;
    let mut run: Vec<Entry<'h>> = Vec::new();
    for commit in &facts.commits {
        let (class, key, grant, what, open) = match &commit.body.change {
            Change::Admission {
                class,
                key,
                grant,
                token,
            } => (
                class,
                key,
                grant.as_deref(),
                "an admission",
                grant.is_none().then(|| token.number()),
            ),
            Change::Write {
                class, key, grant, ..
            } => (class, key, grant.as_deref(), "a write", None),
        };
        let of = (class.as_str(), key.as_str(), grant);
        let right = match last {
            Some((before, right)) if before == of => right,
            _ => {
                if let Some(((class, key, _), _)) = last {
                    keys.entry((class, key)).or_default().append(&mut run);
                }
                grant.and_then(|_| facts.right(class, key, grant))
            }
        };
        last = Some((of, right));
        // What belongs to no grant has no true token: invariant 7 says so.
        let Some(token) = right.map(|right| right.token).or(open) else {
            continue;
        };
        run.push(Entry {
            line: commit.line,
            grant,
            token,
            what,
        });
    }
    if let Some(((class, key, _), _)) = last {
        keys.entry((class, key)).or_default().append(&mut run);
    }
    keys
}

/// The first commit of the write with this id.
pub(super) fn by_id<'h>(facts: &Facts<'h>, class: &str, key: &str, id: &str) -> Option<Seen<'h, Commit>> {
    facts
        .index
        .committed(class, key, id)
        .map(|place| facts.commits[place])
}

/// Ids of the committed writes.
pub(super) fn committed_ids<'h>(facts: &Facts<'h>) -> BTreeMap<&'h str, usize> {
    let mut ids = BTreeMap::new();
    for commit in &facts.commits {
        if let Change::Write { id, .. } = &commit.body.change {
            ids.entry(id.as_str()).or_insert(commit.line);
        }
    }
    ids
}

/// Ids that a read-back at the end must show: all of them, or each row's last writer.
pub(super) fn lasting_ids<'h>(facts: &Facts<'h>) -> BTreeMap<&'h str, usize> {
    if facts.run.guard == GuardForm::Mark {
        return committed_ids(facts);
    }
    let mut last: ByKey<'h, (&'h str, usize)> = BTreeMap::new();
    for commit in &facts.commits {
        if let Change::Write { class, key, id, .. } = &commit.body.change {
            last.insert((class, key), (id, commit.line));
        }
    }
    last.into_values().collect()
}
