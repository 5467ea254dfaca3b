//! Whose what is: invariant 7 from the commit order and the answers, 8 from the lock store.

use std::collections::BTreeMap;

use super::commits::ByKey;
use super::facts::Facts;
use super::said::Said;
use super::verdict::{Invariant, Violation};
use crate::history::Change;

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
                    None => facts.index.is_open(class, key, number).then_some(number),
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
