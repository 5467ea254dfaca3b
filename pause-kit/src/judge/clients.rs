//! What clients saw: invariants 2, 3, 4, 5, 10 and 13, without a look at the commit order (but for 4's log).

use std::collections::BTreeMap;
use std::time::Duration;

use hashbrown::{HashMap, HashSet};

use super::facts::{Facts, Guarded, Seen};
use super::said::{Fence, Said, of_probe};
use super::verdict::{Invariant, Violation};
use crate::history::{At, Exercise, GuardForm, ProbeKind, Read, Reply};

/// 2 and 3: what is stale when it begins, or when it takes effect, is not accepted.
pub(super) fn late(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let contacts = Newer::of(facts, |op| known_by(facts, op));
    for late in facts.ops.iter().filter(|op| is_accepted(facts, op)) {
        // The earliest contact with the newer grants says the most.
        let Some(((contact, contact_line), newer)) = contacts.than(late) else {
            continue;
        };
        let newer = &facts.ops[newer];
        let words = |how: &str| {
            let (late_who, newer_who) = (who(facts, late), who(facts, newer));
            format!(
                "{} of {late_who} was accepted although it {how} {newer_who} had been in touch",
                late.request.op
            )
        };
        if contact < late.began {
            let lines = [contact_line, late.line];
            found.push(Violation::new(
                Invariant::RealTimeRefusal,
                words("began after"),
                &lines,
            ));
            continue;
        }
        let (not_before, absent_line) = not_committed_before(facts, late);
        if contact < not_before {
            let lines = [late.line, contact_line, absent_line];
            found.push(Violation::new(
                Invariant::DelayedPacket,
                words("took effect after"),
                &lines,
            ));
        }
    }
    found
}

/// 4: nothing ever shows a refused id.
pub(super) fn no_effect(facts: &Facts<'_>) -> Vec<Violation> {
    // An id is refused when everything that bore it was, and nothing with it may have landed.
    let mut refused: BTreeMap<(&str, &str, &str), (bool, usize)> = BTreeMap::new();
    let mut note = |what, said: Said, line| {
        let nothing_done = !matches!(said, Said::Accepted | Said::Stored | Said::Unknown);
        let entry = refused.entry(what).or_insert((true, line));
        *entry = (entry.0 && nothing_done, line);
    };
    // What was accepted for later says nothing of its own: whoever makes it bears the same id, and is answered for it.
    for op in facts.ops.iter().filter(|op| op.said() != Said::Deferred) {
        if let Some(id) = op.id() {
            let line = op.answer.map_or(op.line, |answer| answer.line);
            note((&op.request.class, &op.request.key, id), op.said(), line);
        }
    }
    for Seen { line, body, .. } in &facts.probes {
        if let Some(id) = &body.id {
            note((&body.class, &body.key, id), of_probe(body), *line);
        }
    }
    let broken = refused.into_iter().filter(|(_, (all, _))| *all);
    broken
        .filter_map(|((class, key, id), (_, line))| {
            let shown_at = facts.shown(class, key, id)?;
            let why = format!("{id} was refused, and yet it took effect on {key}");
            Some(Violation::new(Invariant::NoEffect, why, &[line, shown_at]))
        })
        .collect()
}

/// 5: a rightful holder is not refused by the fence, for whatever reason the fence gives.
pub(super) fn no_spurious_refusal(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let began = Newer::of(facts, |op| {
        let turned_away = matches!(op.said(), Said::Fenced(_) | Said::Failed | Said::Blocked);
        (!turned_away).then_some((op.began, op.line))
    });
    for op in &facts.ops {
        let (Some(refusal), Some(token)) = (refused_by_fence(op), op.token) else {
            continue;
        };
        let presents_its_own = op.request.presented.token.as_deref() == Some(token.to_string().as_str());
        // The same number granted to another is a collision rightly, and the issuer's fault.
        let equal_elsewhere = refusal.body == Fence::Collision
            && facts.ops.iter().any(|other| {
                other.same_key(op) && other.token == op.token && other.request.grant != op.request.grant
            });
        // What the path made of it is no claim of its holder's.
        let presents_its_own = presents_its_own && !facts.is_altered(&op.request.op);
        if presents_its_own && !newer_began_before(facts, &began, op, refusal.at) && !equal_elsewhere {
            let (who, name) = (who(facts, op), refusal.body.name());
            let why = format!(
                "{} of {who} was refused ({name}) before any newer grant was in touch",
                op.request.op
            );
            let lines = [op.line, refusal.line];
            found.push(Violation::new(Invariant::NoSpuriousRefusal, why, &lines));
        }
    }
    found
}

/// A refusal by the fence with its line and time.
struct ByFence {
    line: usize,
    at: At,
    body: Fence,
}

/// How the fence refused an operation: as its holder was told, or, where the resource told it something else, as the
/// database told the resource.
fn refused_by_fence(op: &Guarded<'_>) -> Option<ByFence> {
    if let (Said::Fenced(body), Some(answer)) = (op.said(), op.answer) {
        let (line, at) = (answer.line, answer.at);
        return Some(ByFence { line, at, body });
    }
    if matches!(op.said(), Said::Accepted | Said::Stored) {
        return None;
    }
    op.db.iter().find_map(|answer| {
        let body = Fence::of_sqlstate(answer.body.sqlstate.as_deref()?)?;
        let (line, at) = (answer.line, answer.at);
        Some(ByFence { line, at, body })
    })
}

/// Whether anything with a larger token that may have been admitted began before `end`.
fn newer_began_before(facts: &Facts<'_>, began: &Newer<'_>, op: &Guarded<'_>, end: At) -> bool {
    let by_op = began.than(op).is_some_and(|((began, _), _)| began <= end);
    let Some(token) = op.token else { return by_op };
    let by_probe = facts.probes.iter().any(|Seen { at, body, .. }| {
        let right = facts.right(&body.class, &body.key, body.presented.grant.as_deref());
        let same_key = body.class == op.request.class && body.key == op.request.key;
        // What was rolled back was no contact.
        let lasting = body.probe != ProbeKind::RolledBack;
        lasting && same_key && *at <= end && right.is_some_and(|right| right.token > token)
    });
    by_op || by_probe
}

/// 10: an id has one answer, and no read shows it twice. That it has one effect is for the commit order.
pub(super) fn one_answer(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut first: HashMap<&str, &Guarded<'_>> = HashMap::new();
    let done = facts
        .ops
        .iter()
        .filter(|op| matches!(op.said(), Said::Accepted | Said::Stored));
    for op in done {
        let (Some(id), Some(answer)) = (op.id(), op.answer) else {
            continue;
        };
        let Some(earlier) = first.insert(id, op) else {
            continue;
        };
        let why = match op.said() {
            Said::Accepted if earlier.said() == Said::Accepted => {
                "accepted twice, the second time as if it were new"
            }
            _ if !same_answer(earlier, op) => "given two different answers",
            _ => continue,
        };
        let lines = [
            earlier.answer.map_or(earlier.line, |earlier| earlier.line),
            answer.line,
        ];
        found.push(Violation::new(
            Invariant::Idempotency,
            format!("{id} was {why}"),
            &lines,
        ));
    }
    let read = facts.reads.iter().map(|read| (read.line, &read.body.ids));
    let read_back = facts.finals.iter().map(|last| (last.line, &last.body.ids));
    for (line, ids) in read.chain(read_back) {
        let mut shown = HashSet::new();
        if let Some(id) = ids.iter().find(|id| !shown.insert(*id)) {
            let why = format!("{id} was shown twice");
            found.push(Violation::new(Invariant::Idempotency, why, &[line]));
        }
    }
    found
}

/// Whether two answers are the same, as far as both are known.
fn same_answer(one: &Guarded<'_>, other: &Guarded<'_>) -> bool {
    let status = |op: &Guarded<'_>| match op.answer?.body {
        Reply::Http { status, .. } => Some(*status),
        Reply::Sql { .. } => None,
    };
    let same_body = match (one.body, other.body) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    status(one) == status(other) && same_body
}

/// 13: the successor's first guarded operation returns within the bound, with whatever answer; so does each on the contested key
/// that says that it was blocked. Time in which the resource itself stood still is not its guard's.
pub(super) fn bounded_block(facts: &Facts<'_>) -> Vec<Violation> {
    let bounds = facts.run.bounds;
    let limit = Duration::from_nanos(bounds.deadline_ns.saturating_add(bounds.slack_ns));
    let mut found = Vec::new();
    let mut touched = HashSet::new();
    let successors: HashSet<&str> = facts.successors().map(|one| one.record.grant.as_str()).collect();
    for op in &facts.ops {
        let grant = op.request.grant.as_deref();
        let of_successor = grant.is_some_and(|grant| successors.contains(grant));
        let first = of_successor && touched.insert(grant);
        let contested = op.request.class == facts.run.class && op.request.key == facts.run.key;
        if !(first || contested && op.said() == Said::Blocked) {
            continue;
        }
        let still_waiting = facts
            .waiting
            .iter()
            .rfind(|waiting| waiting.body.op == op.request.op);
        let (seen_line, seen) = match (op.answer, op.given_up, still_waiting) {
            (Some(answer), ..) => (answer.line, answer.at),
            (None, Some(given_up), _) => given_up,
            (None, None, Some(waiting)) => (waiting.line, waiting.at),
            (None, None, None) => (op.line, facts.last),
        };
        let waited = seen
            .since(op.sent())
            .saturating_sub(resource_stood_still(facts, op.sent(), seen));
        if waited > limit {
            let (who, waited, limit) = (who(facts, op), in_seconds(waited), in_seconds(limit));
            let why = format!(
                "{} of {who} was kept waiting for {waited}; the bound with its slack is {limit}",
                op.request.op
            );
            found.push(Violation::new(
                Invariant::BoundedBlock,
                why,
                &[op.line, seen_line],
            ));
        }
    }
    found
}

/// The earliest moment by which a client knew that the operation's admission is committed, and the line.
pub(super) fn known_by(facts: &Facts<'_>, op: &Guarded<'_>) -> Option<(At, usize)> {
    if !is_accepted(facts, op) {
        return None;
    }
    let answered = op.answer.filter(|_| op.said() == Said::Accepted);
    let answered = answered.map(|answer| (answer.at, answer.line));
    let shown = first_read(facts, op).map(|read| (read.at, read.line));
    answered.into_iter().chain(shown).min()
}

/// A moment before which the operation was certainly not committed, and the line: its beginning, or the beginning of the
/// last read that did not show it.
fn not_committed_before(facts: &Facts<'_>, op: &Guarded<'_>) -> (At, usize) {
    if facts.run.guard != GuardForm::Mark {
        return (op.began, op.line);
    }
    let absent = facts.reads.iter().filter(|read| {
        let of_key = read.body.class == op.request.class && read.body.key == op.request.key;
        let absent = op
            .id()
            .is_some_and(|id| read.body.ids.iter().all(|shown| shown != id));
        of_key && absent
    });
    let last = absent.map(|read| (read.body.began, read.line)).max();
    last.into_iter().fold((op.began, op.line), Ord::max)
}

/// Whether the operation took effect as far as clients can tell: the resource said so, or, where it said nothing, its id
/// was shown and nothing else can have brought it.
pub(super) fn is_accepted(facts: &Facts<'_>, op: &Guarded<'_>) -> bool {
    match op.said() {
        Said::Accepted => true,
        Said::Unknown | Said::Deferred => op.id().is_some_and(|id| {
            let read_back = || facts.read_back(&op.request.class, &op.request.key, id);
            let brought_by_another = facts.bearers(id).any(|other| {
                let same = other.same_key(op);
                let may_be = matches!(other.said(), Said::Accepted | Said::Unknown | Said::Deferred);
                same && may_be && other.request.op != op.request.op
            });
            !brought_by_another && (first_read(facts, op).is_some() || read_back().is_some())
        }),
        _ => false,
    }
}

fn first_read<'h>(facts: &Facts<'h>, op: &Guarded<'_>) -> Option<Seen<'h, Read>> {
    facts.first_read(&op.request.class, &op.request.key, op.id()?)
}

/// By key, what happened first to anything with a token larger than another.
struct Newer<'h> {
    /// By class and key, in the order of tokens: the token, and the earliest moment, with its line, of anything with this
    /// token or a larger one, with the operation's place.
    keys: HashMap<(&'h str, &'h str), Vec<(i64, Earliest)>>,
}

/// A moment with its line, and the operation's place.
type Earliest = ((At, usize), usize);

impl<'h> Newer<'h> {
    fn of(facts: &Facts<'h>, when: impl Fn(&Guarded<'h>) -> Option<(At, usize)>) -> Newer<'h> {
        let mut keys: HashMap<_, Vec<(i64, Earliest)>> = HashMap::new();
        for (place, op) in facts.ops.iter().enumerate() {
            if let (Some(token), Some(when)) = (op.token, when(op)) {
                let key = (op.request.class.as_str(), op.request.key.as_str());
                keys.entry(key).or_default().push((token, (when, place)));
            }
        }
        for moments in keys.values_mut() {
            moments.sort_by_key(|(token, _)| *token);
            let mut earliest: Option<Earliest> = None;
            for (_, moment) in moments.iter_mut().rev() {
                let first = |((at, _), place): Earliest| (at, place);
                *moment = earliest.map_or(*moment, |earlier| {
                    if first(earlier) <= first(*moment) {
                        earlier
                    } else {
                        *moment
                    }
                });
                earliest = Some(*moment);
            }
        }
        Newer { keys }
    }

    fn than(&self, op: &Guarded<'_>) -> Option<Earliest> {
        let token = op.token?;
        let moments = self
            .keys
            .get(&(op.request.class.as_str(), op.request.key.as_str()))?;
        let larger = moments.partition_point(|(other, _)| *other <= token);
        moments.get(larger).map(|(_, moment)| *moment)
    }
}

fn who(facts: &Facts<'_>, op: &Guarded<'_>) -> String {
    facts.who(op.request.grant.as_deref())
}

/// How long the resource, through which an operation went, was stopped between two instants.
fn resource_stood_still(facts: &Facts<'_>, from: At, to: At) -> Duration {
    // There it goes through another process of the resource.
    let through_another = matches!(facts.run.exercise, Exercise::MarkHeld { .. });
    let stops = facts
        .stops
        .iter()
        .filter(|stop| stop.body.target == "R" && !through_another);
    stops
        .map(|stop| {
            let end = stop.body.resumed.unwrap_or(to).min(to);
            end.since(stop.body.asked.max(from))
        })
        .sum()
}

fn in_seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
