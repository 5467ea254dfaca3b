//! What the resource's commit order says: invariants 1, 6 and 10, from the write-ahead log and not from the guard's own word.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::facts::{Facts, Seen};
use super::verdict::{Invariant, Violation};
use crate::history::{Change, Commit, GuardForm};

/// A committed admission or write of one key with its true token.
#[derive(Clone, Copy)]
struct Committed<'h> {
    line: usize,
    grant: Option<&'h str>,
    token: i64,
    what: &'static str,
}

/// What is counted for each class and key.
pub(super) type ByKey<'h, T> = BTreeMap<(&'h str, &'h str), T>;

/// 1 and 6 of these commits.
pub(super) fn in_order(facts: &Facts<'_>) -> Vec<Violation> {
    let mut keys: ByKey<'_, usize> = BTreeMap::new();
    let mut logs: Vec<Log<'_>> = Vec::new();
    // One grant's commits mostly follow each other, so that its token and its key's log are at hand.
    let mut last = None;
    for commit in &facts.commits {
        let (class, key, grant, what, open) = match &commit.body.change {
            Change::Admission {
                class,
                key,
                grant,
                token,
            } => (class, key, grant, "an admission", Some(token.number())),
            Change::Write {
                class, key, grant, ..
            } => (class, key, grant, "a write", None),
        };
        let of = (class.as_str(), key.as_str(), grant.as_deref());
        let (token, log) = match last {
            Some((before, token, log)) if before == of => (token, log),
            _ => {
                let (class, key, grant) = of;
                let right = grant.and_then(|_| facts.right(class, key, grant));
                let log = *keys.entry((class, key)).or_insert_with(|| {
                    logs.push(Log::of(key));
                    logs.len() - 1
                });
                (right.map(|right| right.token), log)
            }
        };
        last = Some((of, token, log));
        // What belongs to no grant has no true token: invariant 7 says so.
        let Some(token) = token.or(open.filter(|_| grant.is_none())) else {
            continue;
        };
        let (line, grant) = (commit.line, of.2);
        logs[log].take(
            facts,
            Committed {
                line,
                grant,
                token,
                what,
            },
        );
    }
    let places = || keys.values().copied();
    let unordered: Vec<_> = places()
        .flat_map(|log| std::mem::take(&mut logs[log].unordered))
        .collect();
    let broken = places().filter_map(|log| logs[log].broken.take());
    unordered.into_iter().chain(broken).collect()
}

/// What is known of the commits of one key so far.
struct Log<'h> {
    key: &'h str,
    /// The last of those with the largest token.
    highest: Option<Committed<'h>>,
    before: Option<Committed<'h>>,
    /// Grants and kinds that were named already.
    named: BTreeSet<(Option<&'h str>, &'static str)>,
    /// Of each grant that another one followed, the last line.
    over: BTreeMap<Option<&'h str>, usize>,
    /// Of rule 1.
    unordered: Vec<Violation>,
    /// Of rule 6, the first.
    broken: Option<Violation>,
}

impl<'h> Log<'h> {
    fn of(key: &'h str) -> Log<'h> {
        Log {
            key,
            highest: None,
            before: None,
            named: BTreeSet::new(),
            over: BTreeMap::new(),
            unordered: Vec::new(),
            broken: None,
        }
    }

    fn take(&mut self, facts: &Facts<'_>, this: Committed<'h>) {
        match self.highest {
            Some(newer) if this.token < newer.token => self.note_late(facts, newer, this),
            _ => self.highest = Some(this),
        }
        if let Some(before) = self.before.replace(this)
            && before.grant != this.grant
        {
            self.note_change(facts, before, this);
        }
    }

    /// 1: tokens do not fall in commit order.
    fn note_late(&mut self, facts: &Facts<'_>, newer: Committed<'h>, late: Committed<'h>) {
        if self.named.insert((late.grant, late.what)) {
            let (late_who, newer_who) = (facts.who(late.grant), facts.who(newer.grant));
            let why = format!(
                "on {}, {} of {late_who} was committed after {} of {newer_who}",
                self.key, late.what, newer.what
            );
            let lines = [newer.line, late.line];
            self.unordered.push(Violation::new(Invariant::Order, why, &lines));
        }
    }

    /// 6: in commit order each grant has one unbroken run.
    fn note_change(&mut self, facts: &Facts<'_>, before: Committed<'h>, after: Committed<'h>) {
        self.over.insert(before.grant, before.line);
        if let (None, Some(left_off)) = (&self.broken, self.over.get(&after.grant)) {
            let (who, other) = (facts.who(after.grant), facts.who(before.grant));
            let why = format!("on {}, {who} came back after {other} had taken over", self.key);
            let lines = [*left_off, before.line, after.line];
            self.broken = Some(Violation::new(Invariant::Contiguity, why, &lines));
        }
    }
}

/// 10: an id has one effect, which is one transaction.
pub(super) fn one_effect(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    // The places of commits, by the ids in them: the ids themselves would make the table of a long log too large to be quick.
    let mut first: HashTable<u32> = HashTable::with_capacity(facts.commits.len());
    let hasher = DefaultHashBuilder::default();
    let of = |place: u32| effect(facts, &facts.commits[place as usize]);
    for (place, commit) in (0..).zip(&facts.commits) {
        let Some(this) = effect(facts, commit) else {
            continue;
        };
        let hash = |place: &u32| hasher.hash_one(of(*place));
        match first.entry(
            hasher.hash_one(Some(this)),
            |other| of(*other) == Some(this),
            hash,
        ) {
            Entry::Vacant(free) => {
                free.insert(place);
            }
            Entry::Occupied(earlier) => {
                let earlier = &facts.commits[*earlier.get() as usize];
                if earlier.body.xid != commit.body.xid {
                    let why = format!("{} took effect twice", this.0);
                    let lines = [earlier.line, commit.line];
                    found.push(Violation::new(Invariant::Idempotency, why, &lines));
                }
            }
        }
    }
    found
}

/// The id that a commit gave an effect, and the row where that tells more. A row's last writer may be the last writer of other
/// rows as well; a mark guard's ids are of one operation each.
fn effect<'h>(facts: &Facts<'h>, commit: &Seen<'h, Commit>) -> Option<(&'h str, &'h str)> {
    match &commit.body.change {
        Change::Admission { .. } => None,
        Change::Write { id, key, .. } if facts.run.guard == GuardForm::Column => Some((id, key)),
        Change::Write { id, .. } => Some((id, "")),
    }
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
