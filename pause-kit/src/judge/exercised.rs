//! Whether the run counts: invariants 15 and 16.

use super::facts::{Facts, Granted, Guarded, Seen};
use super::probes;
use super::said::Said;
use super::verdict::{Invariant, Violation};
use crate::history::{At, Event, Exercise, Stop};

/// 16: times never run backwards, in the file or within an operation, and every name that an event bears is a request's.
pub(super) fn one_clock(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut report = |why: &str, lines: &[usize]| found.push(Violation::new(Invariant::OneClock, why, lines));
    let mut before = (1, At::from_nanos(0));
    for (line, at, event) in facts.history.events() {
        if at < before.1 {
            report("the lines are not in the order of time", &[before.0, line]);
        }
        before = (line, at);
        let backwards = match event {
            Event::Stop(stop) => stop.asked > at || stop.resumed.is_some_and(|resumed| resumed < at),
            Event::Hold(hold) => hold.released.is_some_and(|released| released < at),
            Event::Request(request) => request.sent.is_some_and(|sent| sent < at),
            Event::Read(read) => read.began > at,
            _ => false,
        };
        if backwards {
            report("something ends before it begins", &[line]);
        }
    }
    for op in &facts.ops {
        if let Some(answer) = op.answer.filter(|answer| answer.at < op.began) {
            report("a request is answered before it begins", &[op.line, answer.line]);
        }
    }
    for (line, name) in &facts.strays {
        report(
            &format!("{name} is the name of no request, or of two, or is answered twice"),
            &[*line],
        );
    }
    for pair in facts.commits.windows(2) {
        if pair[0].body.order == pair[1].body.order {
            report(
                "two commits have one place in the order",
                &[pair[0].line, pair[1].line],
            );
        }
    }
    found
}

/// 15: the run went through what the scenario is about.
pub(super) fn exercised(facts: &Facts<'_>) -> Vec<Violation> {
    let missing = match facts.run.exercise {
        Exercise::Stopped => stopped(facts),
        Exercise::Queued => queued(facts),
        Exercise::Held => held(facts),
        Exercise::IdleInTransaction { idle_ns } => idle_in_transaction(facts, idle_ns),
        Exercise::Control => Ok(()),
    };
    let mut found: Vec<Violation> = missing.err().into_iter().collect();
    for stop in &facts.stops {
        found.extend(confirmed(stop).err());
    }
    for kind in probes::missing(facts) {
        found.push(void(format!("the probe {kind:?} was not made"), &[]));
    }
    if facts.finals.is_empty() {
        found.push(void("nothing was read back at the end", &[]));
    }
    found
}

fn stopped(facts: &Facts<'_>) -> Result<(), Violation> {
    let (stale, attempt) = parties(facts)?;
    let stop = stop_of(facts, &stale.record.holder)?;
    let pause = Span::of_stop(stop)?;
    takeover(facts, stale, pause)?;
    wrote_within(facts, pause)?;
    attempted_after(attempt, pause)
}

fn queued(facts: &Facts<'_>) -> Result<(), Violation> {
    let (stale, attempt) = parties(facts)?;
    let lay = |op: &Guarded<'_>, pause: Span| {
        facts.queued.iter().any(|queued| {
            queued.body.op == op.request.op && queued.body.bytes > 0 && pause.contains(queued.at)
        })
    };
    let stop = facts.stops.iter().find(|stop| {
        let span = Span::of_stop(stop);
        stop.body.target != stale.record.holder && span.is_ok_and(|span| lay(attempt, span))
    });
    let Some(stop) = stop else {
        let why = format!(
            "{} never lay unread in the socket of a stopped resource",
            attempt.request.op
        );
        return Err(void(why, &[attempt.line]));
    };
    let pause = Span::of_stop(stop)?;
    takeover(facts, stale, pause)?;
    let ops = facts.successor_ops();
    let raised =
        |op: &&Guarded<'_>| !op.is_write() && op.said() == Said::Accepted && pause.contains_all_of(op);
    if !ops.iter().any(raised) {
        return Err(void(
            "no successor had its mark raised while the resource stood still",
            &[stop.line],
        ));
    }
    if !ops.iter().any(|op| op.is_write() && lay(op, pause)) {
        return Err(void(
            "no successor's write lay unread in the resource's socket",
            &[stop.line],
        ));
    }
    Ok(())
}

fn held(facts: &Facts<'_>) -> Result<(), Violation> {
    let (stale, attempt) = parties(facts)?;
    let Some(hold) = facts.holds.iter().find(|hold| hold.body.op == attempt.request.op) else {
        return Err(void(
            format!("{} was never held", attempt.request.op),
            &[attempt.line],
        ));
    };
    let Some(released) = hold.body.released else {
        return Err(void(
            format!("{} was never released", attempt.request.op),
            &[hold.line],
        ));
    };
    let pause = Span {
        from: hold.at,
        to: released,
        line: hold.line,
    };
    takeover(facts, stale, pause)?;
    wrote_within(facts, pause)?;
    if attempt.request.sent.is_none_or(|sent| sent < released) {
        let why = format!("{} was not sent to its end after the release", attempt.request.op);
        return Err(void(why, &[attempt.line, hold.line]));
    }
    Ok(())
}

fn idle_in_transaction(facts: &Facts<'_>, idle_ns: u64) -> Result<(), Violation> {
    let Some(stale) = facts.stale_grant() else {
        return Err(void("no stale grant is known", &[]));
    };
    let holder = &stale.record.holder;
    let stop = stop_of(facts, holder)?;
    let pause = Span::of_stop(stop)?;
    let of_stale = |op: &&Guarded<'_>| op.request.grant.as_ref() == Some(&stale.record.grant);
    let passed = facts.ops.iter().filter(of_stale).any(|op| {
        op.db.iter().any(|answer| {
            let done =
                Said::of_sql(answer.body.sqlstate.as_deref(), answer.body.tag.as_deref()) == Said::Accepted;
            done && answer.at <= pause.from && op.began <= pause.from
        })
    });
    if !passed {
        return Err(void(
            format!("no guarded statement of {holder} was answered before its stop"),
            &[stop.line],
        ));
    }
    takeover(facts, stale, pause)?;
    let ops = facts.successor_ops();
    let waited = facts.waiting.iter().any(|waiting| {
        let of_successor = ops.iter().any(|op| op.request.op == waiting.body.op);
        of_successor && waiting.body.on == *holder && pause.contains(waiting.at)
    });
    if !waited {
        return Err(void(
            format!("no successor was seen waiting for {holder}'s backend"),
            &[stop.line],
        ));
    }
    let bounds = facts.run.bounds;
    let outlasted = bounds
        .deadline_ns
        .saturating_add(bounds.slack_ns)
        .saturating_add(idle_ns);
    if pause.to.since(pause.from).as_nanos() < u128::from(outlasted) {
        return Err(void(
            format!("{holder} was resumed before all bounds had passed"),
            &[stop.line],
        ));
    }
    match facts.stale() {
        Some(attempt) => attempted_after(attempt, pause),
        None => Err(void(
            format!("{holder} never presented its write again"),
            &[stop.line],
        )),
    }
}

/// Every task was seen stopped, and none of them used the processor until it was let go on.
fn confirmed(stop: &Seen<'_, Stop>) -> Result<(), Violation> {
    let body = stop.body;
    if body.tasks == 0 || body.confirmed != body.tasks {
        let why = format!(
            "{} of {} tasks of {} were seen stopped",
            body.confirmed, body.tasks, body.target
        );
        return Err(void(why, &[stop.line]));
    }
    if body.cpu_before != body.cpu_after {
        let why = format!("{} used the processor while it was stopped", body.target);
        return Err(void(why, &[stop.line]));
    }
    Ok(())
}

fn parties<'f, 'h>(facts: &'f Facts<'h>) -> Result<(Granted<'h>, &'f Guarded<'h>), Violation> {
    let stale = facts
        .stale_grant()
        .ok_or_else(|| void("the store never made the stale grant", &[]))?;
    let attempt = facts
        .stale()
        .ok_or_else(|| void("the stale attempt was never made", &[stale.line]))?;
    Ok((stale, attempt))
}

fn stop_of<'f, 'h>(facts: &'f Facts<'h>, target: &str) -> Result<&'f Seen<'h, Stop>, Violation> {
    let stop = facts.stops.iter().find(|stop| stop.body.target == target);
    stop.ok_or_else(|| void(format!("{target} was never stopped"), &[]))
}

/// The lease ended and a successor was granted inside the pause.
fn takeover(facts: &Facts<'_>, stale: Granted<'_>, pause: Span) -> Result<(), Violation> {
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
    if facts.successors().any(|granted| pause.contains(granted.at)) {
        Ok(())
    } else {
        Err(void("no successor was granted inside the pause", &[pause.line]))
    }
}

fn wrote_within(facts: &Facts<'_>, pause: Span) -> Result<(), Violation> {
    let ops = facts.successor_ops();
    let wrote = |op: &&Guarded<'_>| op.is_write() && op.said() == Said::Accepted && pause.contains_all_of(op);
    if ops.iter().any(wrote) {
        Ok(())
    } else {
        Err(void("no successor wrote inside the pause", &[pause.line]))
    }
}

fn attempted_after(attempt: &Guarded<'_>, pause: Span) -> Result<(), Violation> {
    if attempt.began < pause.to {
        let why = format!("{} began before its holder was resumed", attempt.request.op);
        return Err(void(why, &[attempt.line, pause.line]));
    }
    Ok(())
}

/// The time that stands for the pause.
#[derive(Clone, Copy)]
struct Span {
    from: At,
    to: At,
    line: usize,
}

impl Span {
    fn of_stop(stop: &Seen<'_, Stop>) -> Result<Span, Violation> {
        let target = &stop.body.target;
        let never = || void(format!("{target} was never let go on"), &[stop.line]);
        Ok(Span {
            from: stop.at,
            to: stop.body.resumed.ok_or_else(never)?,
            line: stop.line,
        })
    }

    fn contains(self, at: At) -> bool {
        self.from <= at && at <= self.to
    }

    fn contains_all_of(self, op: &Guarded<'_>) -> bool {
        self.contains(op.began) && op.answer.is_some_and(|answer| self.contains(answer.at))
    }
}

fn void(why: impl Into<String>, lines: &[usize]) -> Violation {
    Violation::new(Invariant::Exercised, why, lines)
}
