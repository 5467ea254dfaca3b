//! The judge, on a small storm that went well and with one thing changed in it.

use std::collections::HashMap;

use super::audit::Committed;
use super::judge::{
    Attempt, Deed, EFFECT, Findings, IDENTITY, LEDGER, ORDER, Outcome, REAL_TIME, REASON, SPURIOUS, judge,
};
use super::store::{Resource, token};

const KEY: Resource = Resource(3);

/// Grant 1 writes, grant 2 raises the mark and writes, grant 1 comes late and is refused.
struct Small {
    attempts: Vec<Attempt>,
    committed: Vec<Committed>,
    sums: HashMap<Resource, i64>,
}

fn attempt(place: u64, entry: &str, deed: Deed, began: u64, outcome: Outcome) -> Attempt {
    Attempt {
        resource: KEY,
        place,
        entry: entry.to_owned(),
        deed,
        level: "READ COMMITTED",
        retried: Vec::new(),
        began,
        ended: began + 1,
        outcome,
    }
}

fn commit(place: u64, entry: &str, total: i64) -> Committed {
    Committed {
        resource: KEY,
        entry: entry.to_owned(),
        token: token(place),
        total,
    }
}

impl Small {
    fn new() -> Small {
        let detail = format!("presented {}, seen {}", token(1), token(2));
        let mut sums: HashMap<Resource, i64> = Resource::all().map(|resource| (resource, 0)).collect();
        sums.insert(KEY, 12);
        Small {
            attempts: vec![
                attempt(1, "a", Deed::Write { amount: 5 }, 1, Outcome::Applied),
                attempt(2, "raise", Deed::Raise, 3, Outcome::Applied),
                attempt(2, "b", Deed::Write { amount: 7 }, 5, Outcome::Applied),
                attempt(1, "late", Deed::Write { amount: 9 }, 7, Outcome::Stale { detail }),
            ],
            committed: vec![commit(1, "a", 5), commit(2, "b", 12)],
            sums,
        }
    }

    fn judge(&self) -> Findings {
        judge(&self.attempts, &self.committed, &self.sums)
    }

    fn breaks(&self) -> Vec<&'static str> {
        self.judge().broken.into_keys().collect()
    }
}

#[test]
fn a_storm_that_went_well_breaks_nothing_and_its_late_write_is_counted() {
    let findings = Small::new().judge();
    assert!(findings.broken.is_empty(), "{findings:?}");
    assert_eq!((findings.applied, findings.stale), (2, 1));
    assert_eq!((findings.late, findings.late_applied), (1, 0));
}

#[test]
fn a_late_write_that_is_committed_breaks_order_and_real_time_refusal_whatever_its_writer_was_told() {
    let mut small = Small::new();
    small.committed.push(commit(1, "late", 21));
    small.sums.insert(KEY, 21);
    assert_eq!(small.breaks(), [EFFECT, ORDER, REAL_TIME]);
    small.attempts[3].outcome = Outcome::Applied;
    assert_eq!(small.breaks(), [ORDER, REAL_TIME]);
    assert_eq!(small.judge().late_applied, 1);
}

#[test]
fn a_late_write_under_a_token_that_is_not_its_own_is_found_by_its_grant() {
    let mut small = Small::new();
    small.attempts[3].outcome = Outcome::Applied;
    let mut forged = commit(1, "late", 21);
    forged.token = token(2);
    small.committed.push(forged);
    small.sums.insert(KEY, 21);
    assert_eq!(small.breaks(), [IDENTITY, ORDER, REAL_TIME]);
}

#[test]
fn a_write_that_overlaps_its_successor_may_land_before_it_and_not_after() {
    let mut small = Small::new();
    // It begins before the successor's raise has ended: no client can tell, and the log can.
    small.attempts[3] = attempt(1, "late", Deed::Write { amount: 9 }, 2, Outcome::Applied);
    small.committed.insert(1, commit(1, "late", 14));
    small.committed[2].total = 21;
    small.sums.insert(KEY, 21);
    assert!(small.breaks().is_empty(), "{:?}", small.judge());
    small.committed.swap(1, 2);
    (small.committed[1].total, small.committed[2].total) = (12, 21);
    assert_eq!(small.breaks(), [ORDER]);
}

#[test]
fn a_refusal_as_stale_before_any_newer_admission_began_is_spurious() {
    let mut small = Small::new();
    let detail = format!("presented {}, seen {}", token(1), token(2));
    small.attempts[0].outcome = Outcome::Stale { detail };
    small.committed = vec![commit(2, "b", 7)];
    small.sums.insert(KEY, 7);
    assert_eq!(small.breaks(), [SPURIOUS]);
}

#[test]
fn a_refusal_in_other_words_or_for_another_reason_breaks_reason() {
    for detail in [
        format!("presented {}, seen {}", token(1), token(9)),
        format!("presented {}, seen {}", token(2), token(2)),
        String::new(),
    ] {
        let mut small = Small::new();
        small.attempts[3].outcome = Outcome::Stale { detail };
        assert_eq!(small.breaks(), [REASON]);
    }
    let mut small = Small::new();
    small.attempts[3].outcome = Outcome::Failed("57014".to_owned());
    assert_eq!(small.breaks(), [REASON]);
}

#[test]
fn an_acknowledged_write_that_is_lost_or_doubled_is_found_in_effect_and_ledger() {
    let mut small = Small::new();
    small.committed.pop();
    assert_eq!(small.breaks(), [EFFECT, LEDGER]);
    let mut small = Small::new();
    small.committed.push(commit(2, "b", 19));
    small.sums.insert(KEY, 19);
    assert_eq!(small.breaks(), [EFFECT]);
    let mut small = Small::new();
    // A lost update: the second sum was computed from a read before the first.
    small.committed[1].total = 7;
    small.sums.insert(KEY, 7);
    assert_eq!(small.breaks(), [LEDGER]);
    let mut small = Small::new();
    small.sums.remove(&KEY);
    assert_eq!(small.breaks(), [LEDGER]);
}
