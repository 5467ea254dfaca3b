//! Whether the two checks agree. What clients were told and shown, and what the write-ahead log holds, are two records of
//! one history, taken in different places. Where they differ, an acknowledged write was lost, an effect came from nowhere,
//! or the kit recorded wrongly: in each case neither record can be believed alone.

use hashbrown::HashSet;

use super::commits::{committed_ids, lasting_ids};
use super::facts::Facts;
use super::said::{Said, of_probe};
use super::verdict::{Invariant, Violation};
use crate::history::{Change, GuardForm, Half};

/// Every difference between the two records.
pub(super) fn check(facts: &Facts<'_>, found: &[Violation]) -> Vec<Violation> {
    let mut differences = acknowledged_is_committed(facts);
    differences.extend(committed_was_sent(facts));
    differences.extend(read_back_is_committed(facts));
    differences.extend(late_is_out_of_order(found));
    differences
}

/// 9, the part that the log alone can show: under the mark guard a write and its admission are one transaction.
pub(super) fn one_step(facts: &Facts<'_>) -> Vec<Violation> {
    if facts.run.guard != GuardForm::Mark || facts.run.half != Half::Guarded {
        return Vec::new();
    }
    let mut found = Vec::new();
    let admissions = facts
        .commits
        .iter()
        .filter_map(|commit| match &commit.body.change {
            Change::Admission { class, key, .. } => Some((class, key, commit.body.xid)),
            Change::Write { .. } => None,
        });
    let admissions: HashSet<_> = admissions.collect();
    for write in &facts.commits {
        let Change::Write {
            class: of,
            key: on,
            id,
            ..
        } = &write.body.change
        else {
            continue;
        };
        let admitted = admissions.contains(&(of, on, write.body.xid));
        if !admitted {
            let why = format!("{id} was committed by a transaction that did not write the mark of {on}");
            found.push(Violation::new(Invariant::Linearizable, why, &[write.line]));
        }
    }
    found
}

fn acknowledged_is_committed(facts: &Facts<'_>) -> Vec<Violation> {
    let committed = committed_ids(facts);
    let admitted = facts
        .commits
        .iter()
        .filter_map(|commit| match &commit.body.change {
            Change::Admission {
                class, key, grant, ..
            } => Some((class, key, grant)),
            Change::Write { .. } => None,
        });
    let admitted: HashSet<_> = admitted.collect();
    let mut found = Vec::new();
    for op in facts.ops.iter().filter(|op| op.said() == Said::Accepted) {
        let line = op.answer.map_or(op.line, |answer| answer.line);
        if op.id().is_some_and(|id| !committed.contains_key(id)) {
            let why = format!("{} was acknowledged, and no commit holds it", op.request.op);
            found.push(Violation::new(Invariant::Agreement, why, &[line]));
        }
        let admitted = admitted.contains(&(&op.request.class, &op.request.key, &op.request.grant));
        if facts.run.guard == GuardForm::Mark && !admitted {
            let why = format!(
                "{} was acknowledged, and no admission of its grant was committed",
                op.request.op
            );
            found.push(Violation::new(Invariant::Agreement, why, &[line]));
        }
    }
    for probe in &facts.probes {
        let accepted = of_probe(probe.body) == Said::Accepted;
        let missing = probe
            .body
            .id
            .as_ref()
            .filter(|id| !committed.contains_key(id.as_str()));
        if let (true, Some(id)) = (accepted, missing) {
            let why = format!("the probe {id} was acknowledged, and no commit holds it");
            found.push(Violation::new(Invariant::Agreement, why, &[probe.line]));
        }
    }
    found
}

fn committed_was_sent(facts: &Facts<'_>) -> Vec<Violation> {
    let sent = |id: &str| {
        facts.bearers(id).next().is_some()
            || facts
                .probes
                .iter()
                .any(|probe| probe.body.id.as_deref() == Some(id))
    };
    let committed = committed_ids(facts).into_iter();
    committed
        .filter(|(id, _)| !sent(id))
        .map(|(id, line)| {
            Violation::new(
                Invariant::Agreement,
                format!("{id} was committed, and nobody sent it"),
                &[line],
            )
        })
        .collect()
}

fn read_back_is_committed(facts: &Facts<'_>) -> Vec<Violation> {
    let (committed, lasting) = (committed_ids(facts), lasting_ids(facts));
    let mut found = Vec::new();
    for last in &facts.finals {
        let shown: HashSet<&str> = last.body.ids.iter().map(String::as_str).collect();
        let missing = lasting.iter().filter(|(id, _)| !shown.contains(*id));
        for (id, line) in missing {
            let why = format!("{id} was committed, and reading back does not show it");
            found.push(Violation::new(Invariant::Agreement, why, &[*line, last.line]));
        }
    }
    let read = facts.reads.iter().map(|read| (read.line, &read.body.ids));
    let read_back = facts.finals.iter().map(|last| (last.line, &last.body.ids));
    for (line, ids) in read.chain(read_back) {
        for id in ids.iter().filter(|id| !committed.contains_key(id.as_str())) {
            let why = format!("{id} was shown, and no commit holds it");
            found.push(Violation::new(Invariant::Agreement, why, &[line]));
        }
    }
    found
}

/// Whatever clients saw accepted too late stands after its successor in the commit order as well.
fn late_is_out_of_order(found: &[Violation]) -> Option<Violation> {
    let is = |invariant| move |violation: &&Violation| violation.invariant == invariant;
    let late = found.iter().find(|violation| {
        matches!(
            violation.invariant,
            Invariant::RealTimeRefusal | Invariant::DelayedPacket
        )
    })?;
    if found.iter().find(is(Invariant::Order)).is_some() {
        return None;
    }
    let why = format!("clients saw that {}, and the commit order does not", late.why);
    Some(Violation::new(Invariant::Agreement, why, &late.lines))
}
