//! Judges a [`History`]: which invariants were broken, whether the run counts, and what became of the stale attempt.
//!
//! Two checks look at every run. One uses what clients saw alone: intervals, answers, and reads around each release of
//! held bytes. The other uses the resource's commit order, from the write-ahead log, where the true token of a write is the
//! one in the lock store's record of its grant and never the one that was presented. They must agree. Broken invariants
//! beat a void run, and a void run beats a doubtful one.
//!
//! The judge compares tokens by itself on purpose: it calls nothing of the guard's, so that one mistake cannot hide in both.
//!
//! # What this module does not do
//!
//! It proves no absence: it speaks about one history. It does not look at how often the same schedule was run, nor whether
//! the defeated half of a pair corrupts: whoever compares the two halves does. It trusts the file that it is given.
//! Delayed packets that only raise a mark bear no id that a read could show, so there only the commit order speaks.

mod agreement;
mod clients;
mod commits;
mod corruption;
mod exercised;
mod facts;
mod identity;
mod index;
mod join;
mod linear;
mod lost_update;
mod probes;
mod register;
mod said;
mod shrink;
mod stale;
mod state;
mod verdict;

pub(crate) use said::Said;
pub use verdict::{Invariant, Judgement, SeenRefusal, Verdict, Violation};

use crate::history::{History, Outcome};
use crate::linear::Answer;
use facts::Facts;

/// Judges one half.
pub fn judge(history: &History) -> Judgement {
    let facts = Facts::of(history);
    let (violations, doubts) = broken(&facts);
    let late: Vec<Violation> = violations
        .iter()
        .filter(|violation| is_of_late_writes(violation.invariant))
        .cloned()
        .collect();
    let attempts = stale::check(&facts, &late);
    let mut violations = violations;
    violations.extend(attempts.iter().flat_map(|attempt| attempt.violations.clone()));
    violations.sort_by_key(|violation| violation.invariant);

    let corruption = corruption::in_plain_words(&facts, &violations);
    let mut void = exercised::exercised(&facts)
        .into_iter()
        .chain(exercised::one_clock(&facts));
    let doubt = attempts.iter().find_map(|attempt| attempt.doubt.clone());
    let doubt = doubt.into_iter().chain(doubts).next();
    let outcomes: Vec<Option<Outcome>> = attempts.iter().map(|attempt| attempt.outcome).collect();
    let verdict = if let Some(first) = violations.first() {
        Verdict::Violated(first.clone())
    } else if let Some(reason) = void.next() {
        Verdict::Void(reason)
    } else if let Some(why) = doubt {
        Verdict::Inconclusive(why)
    } else {
        as_expected(&facts, &outcomes)
    };
    Judgement {
        verdict,
        outcomes,
        refusal: attempts.into_iter().rev().find_map(|attempt| attempt.refusal),
        violations,
        corruption,
    }
}

/// What the commit order alone says of order, runs and effects: invariants 1, 6 and 10.
///
/// It is a part of [`judge`], for who has nothing but a long log.
pub fn judge_commits(history: &History) -> Vec<Violation> {
    let facts = Facts::of(history);
    let mut found = [commits::in_order(&facts), commits::one_effect(&facts)].concat();
    found.sort_by_key(|violation| violation.invariant);
    found
}

/// What clients saw, as one register a key: invariant 9.
///
/// It is a part of [`judge`], for who has nothing but operations and reads.
pub fn judge_order_of_all(history: &History) -> (Answer, Vec<Violation>) {
    let (found, given_up) = linear::check(&Facts::of(history));
    let answer = match (found.is_empty(), given_up.is_empty()) {
        (false, _) => Answer::Unexplained,
        (true, false) => Answer::Unknown,
        (true, true) => Answer::Explained,
    };
    (answer, found)
}

/// Invariants 1 to 13, lost updates and the probes, on whatever happened.
fn broken(facts: &Facts<'_>) -> (Vec<Violation>, Vec<String>) {
    let (unordered, mut doubts) = linear::check(facts);
    let (probed, probe_doubts) = probes::check(facts);
    doubts.extend(probe_doubts);
    let mut found: Vec<Violation> = [
        commits::in_order(facts),
        clients::late(facts),
        clients::no_effect(facts),
        clients::no_spurious_refusal(facts),
        identity::identity(facts),
        identity::grants(facts),
        unordered,
        agreement::one_step(facts),
        clients::one_answer(facts),
        commits::one_effect(facts),
        state::durable_mark(facts),
        state::ledger(facts),
        clients::bounded_block(facts),
        lost_update::check(facts),
        probed,
    ]
    .concat();
    found.extend(agreement::check(facts, &found));
    (found, doubts)
}

fn is_of_late_writes(invariant: Invariant) -> bool {
    matches!(
        invariant,
        Invariant::Order | Invariant::RealTimeRefusal | Invariant::DelayedPacket
    )
}

/// A control may have no attempt at all.
fn as_expected(facts: &Facts<'_>, outcomes: &[Option<Outcome>]) -> Verdict {
    for (attempt, outcome) in facts.run.attempts.iter().zip(outcomes) {
        let (op, expected) = (&attempt.op, attempt.expected);
        match outcome {
            Some(outcome) if *outcome == expected => {}
            Some(outcome) => {
                return Verdict::Inconclusive(format!("{op}: expected {expected}, got {outcome}"));
            }
            None => {
                return Verdict::Inconclusive(format!("{op}: expected {expected}, got no clear outcome"));
            }
        }
    }
    Verdict::Held
}
