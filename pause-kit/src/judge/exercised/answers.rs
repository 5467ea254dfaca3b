//! Scenarios about answers that were held on their way.

use super::pause::{Pause, is_read_around, parties, raised_within, stop_of, takeover, void, wrote_within};
use crate::history::{Answerer, At, Attempt, Withheld};
use crate::judge::clients::is_accepted;
use crate::judge::facts::{Facts, Guarded, Seen};
use crate::judge::said::Said;
use crate::judge::verdict::Violation;

/// The attempt had arrived whole and the database had answered the resource on its behalf; that answer was held, and the
/// resource stopped. Inside the stop the lease ended, and the successor was granted, raised and wrote. The answer was let go
/// before the resource went on, and the attempt was answered after that.
pub(super) fn between(facts: &Facts<'_>) -> Result<(), Violation> {
    let (stale, attempt) = parties(facts)?;
    let name = &attempt.request.op;
    let answer = withheld(facts, attempt, Answerer::Database)?;
    let pause = Pause::of_stop(stop_of(facts, "R")?)?;
    if answer.at > pause.from {
        let why = format!("the resource was stopped before the database had answered it for {name}");
        return Err(void(why, &[pause.line, answer.line]));
    }
    if answer
        .body
        .released
        .is_none_or(|released| !pause.contains(released))
    {
        return Err(void(
            "the database's answer was not held until the resource was to go on",
            &[answer.line, pause.line],
        ));
    }
    if attempt.request.sent.is_none_or(|sent| sent > pause.from) {
        return Err(void(
            format!("{name} had not arrived before the resource was stopped"),
            &[attempt.line, pause.line],
        ));
    }
    if attempt.answer.is_some_and(|answer| answer.at < pause.to) {
        return Err(void(
            format!("{name} was answered before the resource went on"),
            &[attempt.line, pause.line],
        ));
    }
    takeover(facts, stale, pause)?;
    raised_within(facts, pause)?;
    wrote_within(facts, pause)?;
    is_read_around(facts, pause)
}

/// Two attempts, both committed and neither answered: the database's answer to the first was held while the resource was
/// stopped, and the resource's answer to the second while the holder was. Whoever came next read both, and wrote nothing.
pub(super) fn lost(facts: &Facts<'_>) -> Result<(), Violation> {
    let [first, second] = facts.run.attempts.as_slice() else {
        return Err(void("two attempts belong to this", &[]));
    };
    let mut until = At::from_nanos(0);
    for (attempt, by, who) in [
        (first, Answerer::Database, "R"),
        (second, Answerer::Resource, "H1"),
    ] {
        let op = made(facts, attempt)?;
        let name = &op.request.op;
        let answer = withheld(facts, op, by)?;
        let pause = Pause::of_stop(stop_of(facts, who)?)?;
        let (line, given_up) = op
            .given_up
            .filter(|_| op.answer.is_none() && op.said() == Said::Unknown)
            .ok_or_else(|| void(format!("{name} was answered"), &[op.line]))?;
        if answer.at > pause.from || !pause.contains(given_up) {
            let why = format!("{name} was not cut off while {who} stood and its answer was held");
            return Err(void(why, &[answer.line, pause.line, line]));
        }
        if !is_accepted(facts, op) {
            return Err(void(format!("{name} did not land"), &[op.line]));
        }
        until = until.max(given_up);
    }
    let ids: Vec<&str> = [first, second]
        .into_iter()
        .filter_map(|attempt| facts.op(&attempt.op)?.id())
        .collect();
    let next = facts
        .grants
        .iter()
        .find(|granted| granted.at > until && granted.record.key == facts.run.key);
    let next = next.ok_or_else(|| void("nobody came to look what had landed", &[]))?;
    let holder = &next.record.holder;
    let found = facts.reads.iter().any(|read| {
        let all = ids.iter().all(|id| read.body.ids.iter().any(|shown| shown == id));
        read.body.by == *holder && read.body.began > until && all
    });
    if !found {
        return Err(void(format!("{holder} did not find both writes"), &[next.line]));
    }
    let wrote = facts
        .ops
        .iter()
        .find(|op| op.is_write() && op.request.holder == *holder);
    match wrote {
        Some(op) => Err(void(format!("{holder} wrote once more"), &[op.line])),
        None => Ok(()),
    }
}

fn made<'f, 'h>(facts: &'f Facts<'h>, attempt: &Attempt) -> Result<&'f Guarded<'h>, Violation> {
    let op = facts.op(&attempt.op);
    op.ok_or_else(|| void(format!("{} was never made", attempt.op), &[]))
}

fn withheld<'h>(facts: &Facts<'h>, op: &Guarded<'_>, by: Answerer) -> Result<Seen<'h, Withheld>, Violation> {
    let name = &op.request.op;
    let mut all = facts.withheld.iter().copied();
    all.find(|answer| answer.body.op == *name && answer.body.by == by)
        .ok_or_else(|| void(format!("no such answer for {name} was held"), &[op.line]))
}
