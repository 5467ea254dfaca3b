//! What the resource's commit order says: invariants 1, 6, 7, 10, 11 and 12, from the write-ahead log and not from the
//! guard's own word; and 8 from the lock store.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::Facts;
use super::said::Said;
use super::verdict::{Invariant, Violation};
use crate::history::{Change, GuardForm};

/// A committed admission or write of one key with its true token.
struct Entry<'h> {
    line: usize,
    grant: Option<&'h str>,
    token: i64,
    what: &'static str,
}

type ByKey<'h, T> = BTreeMap<(&'h str, &'h str), T>;

/// 1: tokens do not fall in commit order.
pub(super) fn order(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for ((_, key), entries) in by_key(facts) {
        let mut highest: Option<&Entry<'_>> = None;
        let mut named = BTreeSet::new();
        for entry in &entries {
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
pub(super) fn contiguity(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for ((_, key), entries) in by_key(facts) {
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

/// 7: equal tokens have equal grants, and whatever is committed or accepted belongs to a right that was given.
pub(super) fn identity(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut owner: ByKey<'_, BTreeMap<i64, (Option<&str>, usize)>> = BTreeMap::new();
    for commit in &facts.commits {
        let line = commit.line;
        let mut report =
            |why: String, lines: &[usize]| found.push(Violation::new(Invariant::Identity, why, lines));
        match &commit.body.change {
            Change::Admission {
                class,
                key,
                token,
                grant,
            } => {
                let grant = grant.as_deref();
                let number = token.number();
                let right = match grant {
                    Some(_) => facts.right(class, key, grant).map(|right| right.token),
                    // Without grant ids the number is all that there is.
                    None => facts.rights.iter().find_map(|right| {
                        let same = right.class == class && right.key == key && right.token == number;
                        (same && right.grant.is_none()).then_some(number)
                    }),
                };
                match right {
                    None => report(
                        format!("on {key}, token {token} of {} was admitted", facts.who(grant)),
                        &[line],
                    ),
                    Some(right) if right != number => report(
                        format!("on {key}, {} was admitted with token {token}", facts.who(grant)),
                        &[line],
                    ),
                    Some(_) => {}
                }
                let seen = owner
                    .entry((class, key))
                    .or_default()
                    .entry(number)
                    .or_insert((grant, line));
                if seen.0 != grant {
                    let (one, other) = (facts.who(seen.0), facts.who(grant));
                    report(
                        format!("on {key}, token {token} served two grants: {one} and {other}"),
                        &[seen.1, line],
                    );
                }
            }
            Change::Write {
                class,
                key,
                grant,
                token,
                ..
            } => {
                let right = grant
                    .as_deref()
                    .and_then(|grant| facts.right(class, key, Some(grant)));
                let who = facts.who(grant.as_deref());
                match (right, token) {
                    (None, _) => report(format!("on {key}, a write of {who} took effect"), &[line]),
                    (Some(right), Some(token)) if right.token != token.number() => {
                        report(format!("on {key}, a write of {who} bears token {token}"), &[line]);
                    }
                    _ => {}
                }
            }
        }
    }
    for op in facts
        .ops
        .iter()
        .filter(|op| op.token.is_none() && op.said() == Said::Accepted)
    {
        let who = facts.who(op.request.grant.as_deref());
        let why = format!("{} of {who} was accepted on {}", op.request.op, op.request.key);
        found.push(Violation::new(Invariant::Identity, why, &[op.line]));
    }
    found
}

/// 8: the store grants a key to one after the other, with strictly increasing tokens.
pub(super) fn grants(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut last: ByKey<'_, usize> = BTreeMap::new();
    for (index, granted) in facts.grants.iter().enumerate() {
        let record = granted.record;
        let Some(before) = last.insert((&record.class, &record.key), index) else {
            continue;
        };
        let before = &facts.grants[before];
        let (old, new) = (
            facts.who(Some(&before.record.grant)),
            facts.who(Some(&record.grant)),
        );
        let lines = [before.line, granted.line];
        if record.token.number() <= before.record.token.number() {
            let why = format!(
                "{} was granted to {new} after {old}: the token did not rise",
                record.key
            );
            found.push(Violation::new(Invariant::Grants, why, &lines));
        }
        if before.end.is_none_or(|(line, _)| line > granted.line) {
            let why = format!("{} was granted to {new} while {old} still had it", record.key);
            found.push(Violation::new(Invariant::Grants, why, &lines));
        }
    }
    found
}

/// 10: an id has one effect, which is one transaction.
pub(super) fn one_effect(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut first: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    for commit in &facts.commits {
        let Change::Write { id, .. } = &commit.body.change else {
            continue;
        };
        let earlier = first.entry(id).or_insert((commit.body.xid, commit.line));
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

/// 11: a mark never falls, and at the end it is no lower than any acknowledged token.
pub(super) fn durable_mark(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut marks: ByKey<'_, (i64, usize)> = BTreeMap::new();
    for commit in &facts.commits {
        let (class, key, token) = match &commit.body.change {
            Change::Admission {
                class, key, token, ..
            } => (class, key, token),
            Change::Write {
                class,
                key,
                token: Some(token),
                ..
            } => (class, key, token),
            Change::Write { .. } => continue,
        };
        let (mark, line) = *marks.entry((class, key)).or_insert((token.number(), commit.line));
        if token.number() < mark {
            let why = format!("the mark of {key} fell from {mark} to {token}");
            found.push(Violation::new(Invariant::DurableMark, why, &[line, commit.line]));
        }
        marks.insert((class, key), (token.number(), commit.line));
    }
    let Some(last) = facts.finals.last() else {
        return found;
    };
    for op in facts.ops.iter().filter(|op| op.said() == Said::Accepted) {
        let (Some(token), Some(answer)) = (op.token, op.answer) else {
            continue;
        };
        let mark = last
            .body
            .marks
            .iter()
            .find(|mark| mark.class == op.request.class && mark.key == op.request.key);
        if mark.is_none_or(|mark| mark.token.number() < token) {
            let mark = mark.map_or("none".to_owned(), |mark| mark.token.to_string());
            let why = format!(
                "{} was acknowledged with token {token}, and the mark read back is {mark}",
                op.request.op
            );
            found.push(Violation::new(
                Invariant::DurableMark,
                why,
                &[answer.line, last.line],
            ));
        }
    }
    found
}

/// 12: balances are the fold of the accepted writes, and debits equal credits in every snapshot.
pub(super) fn ledger(facts: &Facts<'_>) -> Vec<Violation> {
    let opening = &facts.run.opening;
    let mut found = Vec::new();
    if opening.is_empty() {
        return found;
    }
    let mut report = |why: String, line| found.push(Violation::new(Invariant::Ledger, why, &[line]));
    let total: i128 = opening.values().map(|balance| i128::from(*balance)).sum();
    let mut fold: BTreeMap<&str, i128> = opening
        .iter()
        .map(|(name, open)| (name.as_str(), (*open).into()))
        .collect();
    for commit in &facts.commits {
        let Change::Write { id, moves, .. } = &commit.body.change else {
            continue;
        };
        if moves.iter().map(|side| i128::from(side.amount)).sum::<i128>() != 0 {
            report(format!("the debits and credits of {id} differ"), commit.line);
        }
        for side in moves {
            *fold.entry(&side.account).or_default() += i128::from(side.amount);
        }
    }
    for read in &facts.reads {
        let whole = opening
            .keys()
            .all(|account| read.body.balances.contains_key(account));
        let sum: i128 = read
            .body
            .balances
            .values()
            .map(|balance| i128::from(*balance))
            .sum();
        if whole && sum != total {
            report(
                format!("a snapshot sums to {sum}, the accounts were opened with {total}"),
                read.line,
            );
        }
    }
    for last in &facts.finals {
        for (account, expected) in &fold {
            let balance = last.body.balances.get(*account);
            if balance.is_none_or(|balance| i128::from(*balance) != *expected) {
                let shown = balance.map_or("nothing".to_owned(), i64::to_string);
                report(
                    format!("{account} ends with {shown}, its committed writes make {expected}"),
                    last.line,
                );
            }
        }
    }
    found
}

/// Admissions and writes of each key in commit order, with the token of the grant that they truly belong to.
fn by_key<'h>(facts: &Facts<'h>) -> ByKey<'h, Vec<Entry<'h>>> {
    let mut keys: ByKey<'h, Vec<Entry<'h>>> = BTreeMap::new();
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
        let right = grant.and_then(|grant| facts.right(class, key, Some(grant)));
        // What belongs to no grant has no true token: invariant 7 says so.
        let Some(token) = right.map(|right| right.token).or(open) else {
            continue;
        };
        keys.entry((class, key)).or_default().push(Entry {
            line: commit.line,
            grant,
            token,
            what,
        });
    }
    keys
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
