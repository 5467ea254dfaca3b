//! Pauses, and what must have happened inside them.

use crate::history::{At, Event, Stop};
use crate::judge::facts::{Facts, Granted, Guarded, Seen};
use crate::judge::said::Said;
use crate::judge::verdict::{Invariant, Violation};
use crate::scenario::ScenarioId;

pub(super) fn parties<'f, 'h>(facts: &'f Facts<'h>) -> Result<(Granted<'h>, &'f Guarded<'h>), Violation> {
    let stale = facts
        .stale_grant()
        .ok_or_else(|| void("the store never made the stale grant", &[]))?;
    let attempt = facts
        .attempt()
        .ok_or_else(|| void("the stale attempt was never made", &[stale.line]))?;
    Ok((stale, attempt))
}

/// Every event of a kind that few scenarios have.
pub(super) fn seen<'h, T>(facts: &Facts<'h>, pick: impl Fn(&'h Event) -> Option<&'h T>) -> Vec<Seen<'h, T>> {
    let events = facts.history.events();
    let picked = events.filter_map(|(line, at, event)| {
        let body = pick(event)?;
        Some(Seen { line, at, body })
    });
    picked.collect()
}

pub(super) fn stop_of<'f, 'h>(facts: &'f Facts<'h>, target: &str) -> Result<&'f Seen<'h, Stop>, Violation> {
    let stop = facts.stops.iter().find(|stop| stop.body.target == target);
    stop.ok_or_else(|| void(format!("{target} was never stopped"), &[]))
}

/// The lease ended, by what the scenario lets end it, and a successor was granted inside the pause.
pub(super) fn takeover(facts: &Facts<'_>, stale: Granted<'_>, pause: Pause) -> Result<(), Violation> {
    let scenario: Option<ScenarioId> = facts.run.scenario.parse().ok();
    let right = scenario.and_then(ScenarioId::ends_leases_by);
    if let (Some(right), Some(cause), Some((line, _))) = (right, stale.cause, stale.end)
        && right != cause
    {
        return Err(void(format!("the lease was {cause}, and not {right}"), &[line]));
    }
    match stale.end {
        Some((_, at)) if pause.contains(at) => {}
        Some((line, _)) => {
            return Err(void(
                "the lease did not end inside the pause",
                &[line, pause.line],
            ));
        }
        None => return Err(void("the lease did not end", &[stale.line])),
    }
    match granted_within(facts, stale, pause) {
        Some(_) => Ok(()),
        None => Err(void("no successor was granted inside the pause", &[pause.line])),
    }
}

/// The next grant of the same key, when it was made inside the pause.
pub(super) fn granted_within<'h>(facts: &Facts<'h>, stale: Granted<'_>, pause: Pause) -> Option<Granted<'h>> {
    let (class, key) = (&stale.record.class, &stale.record.key);
    let later = facts.grants.iter().copied().filter(|granted| {
        granted.line > stale.line && granted.record.class == *class && granted.record.key == *key
    });
    later
        .into_iter()
        .next()
        .filter(|granted| pause.contains(granted.at))
}

pub(super) fn raised_within(facts: &Facts<'_>, pause: Pause) -> Result<(), Violation> {
    let ops = facts.successor_ops();
    let raised =
        |op: &&Guarded<'_>| !op.is_write() && op.said() == Said::Accepted && pause.contains_all_of(op);
    match ops.iter().any(raised) {
        true => Ok(()),
        false => Err(void(
            "no successor raised the mark inside the pause",
            &[pause.line],
        )),
    }
}

/// The last stop of the one who made this attempt that was over before it began.
pub(super) fn stop_before(facts: &Facts<'_>, attempt: &Guarded<'_>) -> Result<Pause, Violation> {
    let holder = &attempt.request.holder;
    let stops = facts.stops.iter().filter(|stop| stop.body.target == *holder);
    let over = stops.filter_map(|stop| Pause::of_stop(stop).ok());
    let before = over.filter(|pause| pause.to <= attempt.began);
    before.max_by_key(|pause| pause.to).ok_or_else(|| {
        let why = format!(
            "{holder} was never stopped and let go on before {}",
            attempt.request.op
        );
        void(why, &[attempt.line])
    })
}

pub(super) fn wrote_within(facts: &Facts<'_>, pause: Pause) -> Result<(), Violation> {
    let ops = facts.successor_ops();
    let wrote = |op: &&Guarded<'_>| op.is_write() && op.said() == Said::Accepted && pause.contains_all_of(op);
    if ops.iter().any(wrote) {
        Ok(())
    } else {
        Err(void("no successor wrote inside the pause", &[pause.line]))
    }
}

/// The kit itself read once the successor's write was answered and before the release, and again after it.
pub(super) fn is_read_around(facts: &Facts<'_>, hold: Pause) -> Result<(), Violation> {
    let ops = facts.successor_ops();
    let wrote = ops
        .iter()
        .filter(|op| op.is_write() && op.said() == Said::Accepted && hold.contains_all_of(op));
    let wrote = wrote.filter_map(|op| Some(op.answer?.at)).min();
    let reads = || facts.reads.iter().filter(|read| read.body.by == "kit");
    let before =
        wrote.is_some_and(|wrote| reads().any(|read| read.body.began >= wrote && read.at <= hold.to));
    if !before {
        return Err(void("the kit did not read before the release", &[hold.line]));
    }
    match reads().any(|read| read.body.began >= hold.to) {
        true => Ok(()),
        false => Err(void("the kit did not read after the release", &[hold.line])),
    }
}

pub(super) fn attempted_after(attempt: &Guarded<'_>, pause: Pause) -> Result<(), Violation> {
    if attempt.began < pause.to {
        let why = format!("{} began before its holder was resumed", attempt.request.op);
        return Err(void(why, &[attempt.line, pause.line]));
    }
    Ok(())
}

/// The time that stands for the pause.
#[derive(Clone, Copy)]
pub(super) struct Pause {
    pub(super) from: At,
    pub(super) to: At,
    pub(super) line: usize,
}

impl Pause {
    pub(super) fn of_stop(stop: &Seen<'_, Stop>) -> Result<Pause, Violation> {
        let target = &stop.body.target;
        let never = || void(format!("{target} was never let go on"), &[stop.line]);
        Ok(Pause {
            from: stop.at,
            to: stop.body.resumed.ok_or_else(never)?,
            line: stop.line,
        })
    }

    pub(super) fn contains(self, at: At) -> bool {
        self.from <= at && at <= self.to
    }

    pub(super) fn contains_all_of(self, op: &Guarded<'_>) -> bool {
        self.contains(op.began) && op.answer.is_some_and(|answer| self.contains(answer.at))
    }
}

pub(super) fn void(why: impl Into<String>, lines: &[usize]) -> Violation {
    Violation::new(Invariant::Exercised, why, lines)
}
