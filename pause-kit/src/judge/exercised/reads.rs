//! Scenarios about a write that rests on an old read.

use super::pause::{
    attempted_after, granted_within, parties, raised_within, stop_before, takeover, void, wrote_within,
};
use crate::history::{Half, Read};
use crate::judge::facts::{Facts, Guarded, Seen};
use crate::judge::said::Said;
use crate::judge::verdict::Violation;

/// The holder was stopped between its read and its write; inside the stop its lease ended and its successor was granted,
/// raised, read and wrote; the holder read nothing more before its attempt.
pub(super) fn stale_read(facts: &Facts<'_>) -> Result<(), Violation> {
    let (stale, attempt) = parties(facts)?;
    let pause = stop_before(facts, attempt)?;
    takeover(facts, stale, pause)?;
    raised_within(facts, pause)?;
    wrote_within(facts, pause)?;
    let next = granted_within(facts, stale, pause)
        .ok_or_else(|| void("no successor was granted inside the pause", &[pause.line]))?;
    let read_by_next = facts.reads.iter().any(|read| {
        let inside = pause.contains(read.body.began) && pause.contains(read.at);
        read.body.by == next.record.holder && inside
    });
    if !read_by_next {
        let why = format!("{} read nothing inside the pause", next.record.holder);
        return Err(void(why, &[pause.line]));
    }
    let holder = &stale.record.holder;
    let reads: Vec<_> = facts
        .reads
        .iter()
        .filter(|read| read.body.by == *holder)
        .collect();
    if !reads.iter().any(|read| read.at <= pause.from) {
        return Err(void(
            format!("{holder} had read nothing before its stop"),
            &[pause.line],
        ));
    }
    if let Some(read) = reads.iter().find(|read| read.at > pause.from) {
        return Err(void(
            format!("{holder} read again after its stop"),
            &[pause.line, read.line],
        ));
    }
    attempted_after(attempt, pause)
}

/// The holder was stopped before its send; inside the stop its lease ended and its successor was granted and read. Guarded,
/// the successor had raised the mark before that read; in the twin it had not been in touch at all. Then the holder made its
/// attempt, and only once that was answered did the successor write, from that read.
pub(super) fn fence_then_read(facts: &Facts<'_>) -> Result<(), Violation> {
    let (stale, attempt) = parties(facts)?;
    let pause = stop_before(facts, attempt)?;
    takeover(facts, stale, pause)?;
    let next = granted_within(facts, stale, pause)
        .ok_or_else(|| void("no successor was granted inside the pause", &[pause.line]))?;
    let name = &next.record.holder;
    let by_next = |read: &&Seen<'_, Read>| read.body.by == *name;
    let mut reads = facts.reads.iter().filter(by_next);
    let Some(read) = reads
        .next()
        .filter(|read| pause.contains(read.at) && pause.contains(read.body.began))
    else {
        return Err(void(
            format!("{name} read nothing inside the pause"),
            &[pause.line],
        ));
    };
    if let Some(more) = reads.next() {
        return Err(void(format!("{name} read again"), &[read.line, more.line]));
    }
    let ops: Vec<&Guarded<'_>> = facts.successor_ops();
    let raise = ops.iter().find(|op| !op.is_write());
    let raised_first = raise.is_some_and(|raise| {
        let answered = raise.answer.is_some_and(|answer| answer.at <= read.body.began);
        raise.said() == Said::Accepted && answered && pause.contains(raise.began)
    });
    match (facts.run.half, raise) {
        (Half::Guarded, _) if !raised_first => {
            return Err(void(
                format!("{name} had not raised the mark before it read"),
                &[read.line],
            ));
        }
        (Half::Defeated, Some(raise)) => {
            return Err(void(format!("{name} raised the mark"), &[raise.line]));
        }
        _ => {}
    }
    attempted_after(attempt, pause)?;
    let answered = attempt.answer.map(|answer| answer.at);
    let wrote = ops.iter().find(|op| op.is_write());
    let after = wrote.is_some_and(|write| {
        write.said() == Said::Accepted && answered.is_some_and(|answered| write.began >= answered)
    });
    match after {
        true => Ok(()),
        false => {
            let why = format!("{name} did not write once {} was answered", attempt.request.op);
            Err(void(why, &[attempt.line]))
        }
    }
}
