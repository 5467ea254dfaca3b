//! The attempts that the scenario is about: invariant 14, and the outcome of each.

use std::collections::BTreeSet;

use super::clients::{is_accepted, known_by};
use super::facts::{Facts, Guarded};
use super::said::{Fence, Said, is_cut_short};
use super::verdict::{Invariant, SeenRefusal, Violation};
use crate::history::{self, Change, Exercise, Outcome, Reply, TokenNumber};

/// What became of one attempt.
#[derive(Debug, Default)]
pub(super) struct Attempt {
    /// `None` when that cannot be told, or when it was accepted wrongly.
    pub(super) outcome: Option<Outcome>,
    pub(super) refusal: Option<SeenRefusal>,
    pub(super) violations: Vec<Violation>,
    /// Why nothing can be said, when nothing can.
    pub(super) doubt: Option<String>,
}

/// 14: an attempt that must be refused is answered as stale, exactly: `ZF001`, its own token and the mark in the DETAIL, and
/// 412 where HTTP stands between. What became of each, in the header's order; `late` are the violations by late writes.
pub(super) fn check(facts: &Facts<'_>, late: &[Violation]) -> Vec<Attempt> {
    let attempts = facts.run.attempts.iter();
    attempts
        .map(|attempt| match facts.op(&attempt.op) {
            Some(op) => judge(facts, op, attempt, late),
            None => Attempt::default(),
        })
        .collect()
}

fn judge(facts: &Facts<'_>, op: &Guarded<'_>, run: &history::Attempt, late: &[Violation]) -> Attempt {
    let name = &op.request.op;
    let mut attempt = Attempt {
        outcome: outcome(facts, op, shown_late(facts, op, late)),
        ..Attempt::default()
    };
    match op.said() {
        Said::Accepted | Said::Stored => return attempt,
        Said::Unknown if run.expected == Outcome::Unknown => {}
        Said::Deferred => {
            attempt.doubt = Some(format!(
                "{name} was accepted for later, and nothing tells what came of it"
            ));
        }
        Said::Unknown if op.answer.is_none() => attempt.doubt = Some(format!("{name} got no answer")),
        _ => {}
    }
    let status = op.answer.and_then(|answer| match answer.body {
        Reply::Http { status, .. } => Some(*status),
        Reply::Sql { .. } => None,
    });
    let lines: Vec<usize> = [op.line]
        .into_iter()
        .chain(op.answer.map(|answer| answer.line))
        .collect();
    let broken = |why: String| vec![Violation::new(Invariant::Reason, format!("{name} {why}"), &lines)];
    // Where a backend stands, being blocked is the end of it.
    let expects_stale = match run.expected {
        Outcome::Refused => true,
        Outcome::Blocked => facts.run.exercise != Exercise::BackendStopped,
        _ => false,
    };
    let database = said_by_database(op);
    let wrong_kind = match op.said() {
        Said::Fenced(Fence::Stale) | Said::Unknown | Said::Deferred | Said::Blocked | Said::Failed => None,
        Said::Fenced(fence) => Some(format!("was refused as {}, not as stale", fence.name())),
        _ => Some(format!(
            "was answered {}, which is not how stale is answered",
            status.unwrap_or_default()
        )),
    };
    attempt.violations = match (&database, wrong_kind) {
        (Some((sqlstate, _)), _) if expects_stale && sqlstate != "ZF001" && !is_cut_short(sqlstate) => {
            broken(format!("was refused with {sqlstate}, not with ZF001"))
        }
        (_, Some(why)) if expects_stale => broken(why),
        (Some((sqlstate, detail)), _)
            if sqlstate == "ZF001" && !right_details(facts, op).contains(detail) =>
        {
            broken(format!(
                "was refused as stale with the detail {detail:?}, which are not its token and the mark"
            ))
        }
        _ if op.said() == Said::Fenced(Fence::Stale) && status.is_some_and(|status| status != 412) => {
            broken(format!("was answered {}, not 412", status.unwrap_or_default()))
        }
        _ => Vec::new(),
    };
    if attempt.violations.is_empty() && expects_stale && attempt.doubt.is_none() {
        attempt.doubt = match (op.said(), &database) {
            (Said::Fenced(Fence::Stale), Some((sqlstate, _))) if sqlstate == "ZF001" => None,
            (Said::Fenced(Fence::Stale), _) => Some(format!(
                "the code and the detail with which the database refused {name} were not seen"
            )),
            _ => Some(format!("{name} was answered, but neither as stale nor as done")),
        };
    }
    if let Said::Fenced(_) = op.said() {
        attempt.refusal = Some(seen_refusal(database, status));
    }
    attempt
}

/// Whether one of the violations by late writes is this operation's: its request, or a commit of its id, is among the lines.
fn shown_late(facts: &Facts<'_>, op: &Guarded<'_>, late: &[Violation]) -> bool {
    let commits = facts.commits.iter().filter(
        |commit| matches!(&commit.body.change, Change::Write { id, .. } if op.id() == Some(id.as_str())),
    );
    let mut lines = commits.map(|commit| commit.line).chain([op.line]);
    lines.any(|line| {
        let late = late.iter();
        // The first line of a fallen order is the newer one's.
        late.flat_map(|violation| match violation.invariant {
            Invariant::Order => &violation.lines[1..],
            _ => &violation.lines[..],
        })
        .any(|shown| *shown == line)
    })
}

fn outcome(facts: &Facts<'_>, op: &Guarded<'_>, accepted_wrongly: bool) -> Option<Outcome> {
    let told_otherwise = !matches!(op.said(), Said::Accepted | Said::Stored | Said::Fenced(_));
    if facts.run.exercise == Exercise::CommitFailed && told_otherwise && op.answer.is_some() {
        return (!is_accepted(facts, op)).then_some(Outcome::NotCommitted);
    }
    let stale_grant_wrote = facts.ops.iter().any(|other| {
        other.is_write() && other.request.grant == op.request.grant && other.said() == Said::Accepted
    });
    match op.said() {
        Said::Accepted | Said::Stored => (!accepted_wrongly).then_some(Outcome::Legal),
        Said::Fenced(Fence::Stale) if is_blocked_first(facts.run.exercise) => {
            // Its first transaction must have failed, or there was nothing to block for.
            (!stale_grant_wrote).then_some(if successor_was_blocked_then_applied(facts) {
                Outcome::Blocked
            } else {
                Outcome::Refused
            })
        }
        Said::Fenced(Fence::Stale) => Some(Outcome::Refused),
        Said::Fenced(Fence::Collision) => Some(Outcome::Conflict),
        Said::Fenced(_) => Some(Outcome::Closed),
        Said::Unknown => Some(Outcome::Unknown),
        Said::Blocked if facts.run.exercise == Exercise::BackendStopped => Some(Outcome::Blocked),
        Said::Deferred | Said::Declined | Said::Blocked | Said::Failed => None,
    }
}

/// Whether the successor is to find an open transaction in its way before the late attempt is refused.
fn is_blocked_first(exercise: Exercise) -> bool {
    matches!(
        exercise,
        Exercise::IdleInTransaction { .. } | Exercise::MarkHeld { .. }
    )
}

fn successor_was_blocked_then_applied(facts: &Facts<'_>) -> bool {
    let ops = facts.successor_ops();
    let blocked = ops.iter().position(|op| op.said() == Said::Blocked);
    blocked.is_some_and(|first| {
        ops[first..]
            .iter()
            .any(|op| op.is_write() && op.said() == Said::Accepted)
    })
}

/// The error with which the database answered the attempt: on the path behind the resource, or to the holder itself.
fn said_by_database(op: &Guarded<'_>) -> Option<(String, String)> {
    let behind = op
        .db
        .iter()
        .filter_map(|seen| Some((seen.body.sqlstate.clone()?, seen.body.detail.clone())));
    let itself = op.answer.and_then(|answer| match answer.body {
        Reply::Sql {
            sqlstate: Some(sqlstate),
            detail,
            ..
        } => Some((sqlstate.clone(), detail.clone())),
        _ => None,
    });
    // The first error is the guard's; what follows it in a failed transaction is only an echo.
    behind
        .chain(itself)
        .next()
        .map(|(sqlstate, detail)| (sqlstate, detail.unwrap_or_default()))
}

/// Every detail that is right: its own token, and a mark that was committed and is larger, no smaller than what was surely
/// there when the attempt began.
fn right_details(facts: &Facts<'_>, op: &Guarded<'_>) -> BTreeSet<String> {
    let Some(presented) = op.token else {
        return BTreeSet::new();
    };
    let contacts = facts.ops.iter().filter(|other| other.same_key(op));
    let surely = contacts.filter_map(|other| {
        let (contact, _) = known_by(facts, other)?;
        (contact < op.began).then_some(other.token?)
    });
    let floor = surely.max().unwrap_or(presented).max(presented);
    let committed = facts
        .commits
        .iter()
        .filter_map(|commit| match &commit.body.change {
            Change::Admission {
                class, key, token, ..
            } => Some((class, key, token.number())),
            Change::Write {
                class,
                key,
                token: Some(token),
                ..
            } => Some((class, key, token.number())),
            Change::Write { .. } => None,
        });
    committed
        .filter(|(class, key, _)| **class == op.request.class && **key == op.request.key)
        .filter(|(_, _, mark)| *mark >= floor && *mark > presented)
        .map(|(_, _, mark)| format!("presented {presented}, seen {mark}"))
        .collect()
}

fn seen_refusal(database: Option<(String, String)>, status: Option<u16>) -> SeenRefusal {
    let (sqlstate, detail) = database.unzip();
    let numbers = detail.as_deref().and_then(|detail| {
        let (presented, seen) = detail.strip_prefix("presented ")?.split_once(", seen ")?;
        Some((presented.parse().ok()?, seen.parse().ok()?))
    });
    SeenRefusal {
        presented: numbers.map(|(presented, _)| TokenNumber::new(presented)),
        seen: numbers.map(|(_, seen)| TokenNumber::new(seen)),
        sqlstate,
        status,
    }
}
