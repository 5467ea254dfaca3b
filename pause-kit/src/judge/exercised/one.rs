//! Scenarios with one attempt after one takeover.

use super::pause::{
    Pause, attempted_after, is_read_around, parties, raised_within, stop_of, takeover, void, wrote_within,
};
use crate::history::{At, Half};
use crate::judge::facts::{Facts, Guarded};
use crate::judge::said::Said;
use crate::judge::verdict::Violation;

pub(super) fn stopped(facts: &Facts<'_>) -> Result<(), Violation> {
    let (stale, attempt) = parties(facts)?;
    let stop = stop_of(facts, &stale.record.holder)?;
    let pause = Pause::of_stop(stop)?;
    takeover(facts, stale, pause)?;
    wrote_within(facts, pause)?;
    attempted_after(attempt, pause)
}

pub(super) fn resource_restarted(facts: &Facts<'_>) -> Result<(), Violation> {
    stopped(facts)?;
    let (_, attempt) = parties(facts)?;
    let ops = facts.successor_ops();
    let wrote = ops
        .iter()
        .filter(|op| op.is_write() && op.said() == Said::Accepted);
    let wrote = wrote.filter_map(|op| Some(op.answer?.at)).min();
    // Holders' names begin with `H`, by the kit's convention.
    let is_resource = |target: &str| !target.starts_with('H');
    let killed = facts
        .killed
        .iter()
        .find(|killed| is_resource(&killed.body.target) && wrote.is_some_and(|wrote| killed.at >= wrote));
    let again = facts.restarted.iter().find(|again| {
        let same = killed.is_some_and(|killed| {
            again.body.target == killed.body.target
                && again.body.pid != killed.body.pid
                && again.at >= killed.at
        });
        same && again.at <= attempt.began
    });
    match again {
        Some(_) => Ok(()),
        None => Err(void(
            "the resource was not killed and started again between the successor's write and the attempt",
            &[attempt.line],
        )),
    }
}

pub(super) fn queued(facts: &Facts<'_>) -> Result<(), Violation> {
    let (stale, attempt) = parties(facts)?;
    let lay = |op: &Guarded<'_>, pause: Pause| {
        facts.queued.iter().any(|queued| {
            queued.body.op == op.request.op && queued.body.bytes > 0 && pause.contains(queued.at)
        })
    };
    let stop = facts.stops.iter().find(|stop| {
        let span = Pause::of_stop(stop);
        stop.body.target != stale.record.holder && span.is_ok_and(|span| lay(attempt, span))
    });
    let Some(stop) = stop else {
        let why = format!(
            "{} never lay unread in the socket of a stopped resource",
            attempt.request.op
        );
        return Err(void(why, &[attempt.line]));
    };
    let pause = Pause::of_stop(stop)?;
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
    let holder = &stale.record.holder;
    let lay_by = facts
        .queued
        .iter()
        .filter(|queued| queued.body.op == attempt.request.op);
    let lay_by = lay_by.map(|queued| queued.at).find(|at| pause.contains(*at));
    let gone = facts.killed.iter().any(|killed| {
        let after = lay_by.is_some_and(|lay_by| killed.at >= lay_by);
        killed.body.target == *holder && after && pause.contains(killed.at)
    });
    match gone {
        true => Ok(()),
        false => Err(void(
            format!("{holder} was not killed between its write and the resource's going on"),
            &[stop.line, attempt.line],
        )),
    }
}

pub(super) fn held(facts: &Facts<'_>) -> Result<(), Violation> {
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
    let pause = Pause {
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
    is_read_around(facts, pause)
}

/// Each attempt was held after another number of its bytes, from none to all but the last; while all of them were, the lease
/// ended, and the successor was granted, raised and wrote. Each was sent to its end after that.
pub(super) fn swept(facts: &Facts<'_>, bytes: u64) -> Result<(), Violation> {
    let (stale, _) = parties(facts)?;
    let mut all: Option<Pause> = None;
    for (byte, attempt) in (0..bytes).zip(&facts.run.attempts) {
        let name = &attempt.op;
        let op = facts
            .op(name)
            .ok_or_else(|| void(format!("{name} was never made"), &[]))?;
        let hold = facts.holds.iter().find(|hold| hold.body.op == *name);
        let hold = hold.filter(|hold| hold.body.byte == byte && hold.body.length == Some(bytes));
        let held = hold.and_then(|hold| Some((hold, hold.body.released?)));
        let Some((hold, released)) = held else {
            let why = format!("{name} was not held after {byte} of {bytes} bytes, and let go");
            return Err(void(why, &[op.line]));
        };
        if op.request.sent.is_none_or(|sent| sent < released) {
            let why = format!("{name} was not sent to its end after the release");
            return Err(void(why, &[op.line, hold.line]));
        }
        let before = all.unwrap_or(Pause {
            from: hold.at,
            to: released,
            line: hold.line,
        });
        all = Some(Pause {
            from: before.from.max(hold.at),
            to: before.to.min(released),
            line: hold.line,
        });
    }
    let attempts = facts.run.attempts.len() as u64;
    let all = all.filter(|_| attempts == bytes).ok_or_else(|| {
        void(
            format!("{attempts} writes of {bytes} bytes do not sweep them"),
            &[],
        )
    })?;
    takeover(facts, stale, all)?;
    raised_within(facts, all)?;
    wrote_within(facts, all)?;
    is_read_around(facts, all)
}

pub(super) fn idle_in_transaction(facts: &Facts<'_>, idle_ns: u64) -> Result<(), Violation> {
    let Some(stale) = facts.stale_grant() else {
        return Err(void("no stale grant is known", &[]));
    };
    let holder = &stale.record.holder;
    let stop = stop_of(facts, holder)?;
    let pause = Pause::of_stop(stop)?;
    let of_stale = |op: &&Guarded<'_>| op.request.grant.as_ref() == Some(&stale.record.grant);
    let passed = facts.ops.iter().filter(of_stale).find_map(|op| {
        let passed = op.db.iter().filter(|answer| {
            let done =
                Said::of_sql(answer.body.sqlstate.as_deref(), answer.body.tag.as_deref()) == Said::Accepted;
            done && answer.at <= pause.from && op.began <= pause.from
        });
        Some((op, passed.map(|answer| answer.at).max()?))
    });
    let Some((first, idle_from)) = passed else {
        return Err(void(
            format!("no guarded statement of {holder} was answered before its stop"),
            &[stop.line],
        ));
    };
    takeover(facts, stale, pause)?;
    if facts.run.half == Half::Guarded {
        ended_by_its_bound(facts, first, idle_from, idle_ns)?;
    }
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
    match facts.attempt() {
        Some(attempt) => attempted_after(attempt, pause),
        None => Err(void(
            format!("{holder} never presented its write again"),
            &[stop.line],
        )),
    }
}

/// The transaction of a holder that stood idle in it was answered, and failed, by the time that the bound and the slack allow.
fn ended_by_its_bound(
    facts: &Facts<'_>,
    first: &Guarded<'_>,
    idle_from: At,
    idle_ns: u64,
) -> Result<(), Violation> {
    let name = &first.request.op;
    let answer = first
        .answer
        .filter(|_| first.said() == Said::Failed)
        .ok_or_else(|| void(format!("{name} was not answered as failed"), &[first.line]))?;
    let allowed = idle_ns.saturating_add(facts.run.bounds.slack_ns);
    if answer.at.since(idle_from).as_nanos() > u128::from(allowed) {
        let why = format!("{name} was not ended by the bound on idle transactions");
        return Err(void(why, &[first.line, answer.line]));
    }
    Ok(())
}

/// The holder was killed with its write on disk and started again with it; in between its lease ended, and its successor was
/// granted, raised, read and wrote. The second process did nothing but present that write.
pub(super) fn restarted(facts: &Facts<'_>) -> Result<(), Violation> {
    let (stale, attempt) = parties(facts)?;
    let holder = &stale.record.holder;
    let of_holder = |name: &String| name == holder;
    let killed = facts.killed.iter().find(|killed| of_holder(&killed.body.target));
    let killed = killed.ok_or_else(|| void(format!("{holder} was never killed"), &[]))?;
    let again = facts.restarted.iter().find(|again| of_holder(&again.body.target));
    let again = again.ok_or_else(|| void(format!("{holder} was never started again"), &[killed.line]))?;
    let lines = [killed.line, again.line];
    if again.at < killed.at || again.body.pid == killed.body.pid {
        return Err(void(
            format!("{holder} was not started again after it was killed"),
            &lines,
        ));
    }
    let gone = Pause {
        from: killed.at,
        to: again.at,
        line: killed.line,
    };
    takeover(facts, stale, gone)?;
    raised_within(facts, gone)?;
    wrote_within(facts, gone)?;
    let own = facts.ops.iter().filter(|op| op.request.holder == *holder);
    let mut own = own.filter(|op| op.request.op != attempt.request.op);
    if !own
        .clone()
        .any(|op| op.said() == Said::Accepted && op.began <= gone.from)
    {
        return Err(void(
            format!("{holder} was not in touch before it was killed"),
            &lines,
        ));
    }
    let read = facts
        .reads
        .iter()
        .find(|read| read.body.by == *holder && read.at > gone.from);
    let more = own.find(|op| op.began > gone.from).map(|op| op.line);
    if let Some(line) = more.or(read.map(|read| read.line)) {
        let why = format!("{holder} did more than present its write once it was started again");
        return Err(void(why, &[again.line, line]));
    }
    attempted_after(attempt, gone)
}
