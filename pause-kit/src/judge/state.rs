//! What the resource ends up with: invariants 11 and 12, from the commit order and from reading back.

use std::collections::BTreeMap;

use super::commits::ByKey;
use super::facts::Facts;
use super::said::Said;
use super::verdict::{Invariant, Violation};
use crate::history::{Change, Mark};

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
    let mut marks: ByKey<'_, &Mark> = BTreeMap::new();
    for mark in &last.body.marks {
        marks.entry((&mark.class, &mark.key)).or_insert(mark);
    }
    for op in facts.ops.iter().filter(|op| op.said() == Said::Accepted) {
        let (Some(token), Some(answer)) = (op.token, op.answer) else {
            continue;
        };
        let mark = marks.get(&(op.request.class.as_str(), op.request.key.as_str()));
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
