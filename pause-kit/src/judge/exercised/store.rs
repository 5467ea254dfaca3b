//! Scenarios in which the lock store itself is stopped, or gone.

use std::time::Duration;

use super::pause::{
    Pause, attempted_after, parties, raised_within, seen, stop_of, takeover, void, wrote_within,
};
use super::several::grant_of;
use crate::history::Event;
use crate::judge::facts::Facts;
use crate::judge::said::Said;
use crate::judge::verdict::Violation;

/// The lock store was stopped for longer than the time to live, after the stale grant and before its lease ended, and a keepalive
/// of its holder's lay unread meanwhile. Before the attempt the lease ended, and the successor was granted, raised and wrote.
pub(super) fn stopped(facts: &Facts<'_>, ttl_ns: u64) -> Result<(), Violation> {
    let (stale, attempt) = parties(facts)?;
    let pause = Pause::of_stop(stop_of(facts, "L")?)?;
    let (stood, ttl) = (pause.to.since(pause.from), Duration::from_nanos(ttl_ns));
    if stood <= ttl {
        let why = format!("the lock store stood for {stood:.3?}, within the TTL of {ttl:?}");
        return Err(void(why, &[pause.line]));
    }
    if stale.at > pause.from {
        return Err(void(
            "the stale grant was made after the stop",
            &[stale.line, pause.line],
        ));
    }
    let unread = seen(facts, |event| match event {
        Event::Unheard(one) => Some(one),
        _ => None,
    });
    let unheard = unread
        .iter()
        .any(|one| one.body.holder == stale.record.holder && one.body.bytes > 0 && pause.contains(one.at));
    if !unheard {
        let why = format!(
            "no keepalive of {} lay unread while the lock store stood",
            stale.record.holder
        );
        return Err(void(why, &[pause.line]));
    }
    let gone = Pause {
        from: pause.from,
        to: attempt.began,
        line: pause.line,
    };
    takeover(facts, stale, gone)?;
    raised_within(facts, gone)?;
    wrote_within(facts, gone)?;
    attempted_after(attempt, gone)
}

/// The second attempt's holder was granted the key after the first one's, and had written by the time when the lock store was
/// killed; both attempts were made after that, the first one first.
pub(super) fn gone(facts: &Facts<'_>) -> Result<(), Violation> {
    let [late, rightful] = facts.run.attempts.as_slice() else {
        return Err(void("two attempts belong to this", &[]));
    };
    let made = |op| {
        let made = facts.op(op);
        made.ok_or_else(|| void(format!("{op} was never made"), &[]))
    };
    let (late, rightful) = (made(&late.op)?, made(&rightful.op)?);
    let (older, newer) = (grant_of(facts, late)?, grant_of(facts, rightful)?);
    if newer.line < older.line || newer.record.grant == older.record.grant {
        let why = format!("{} is not of a later holder", rightful.request.op);
        return Err(void(why, &[older.line, newer.line]));
    }
    let killed = facts.killed.iter().find(|killed| killed.body.target == "L");
    let killed = killed.ok_or_else(|| void("the lock store was never killed", &[]))?;
    let wrote = facts.ops.iter().any(|op| {
        let before = op.answer.is_some_and(|answer| answer.at <= killed.at);
        op.is_write() && op.request.grant == rightful.request.grant && op.said() == Said::Accepted && before
    });
    if !wrote {
        let why = format!(
            "{} had not written when the lock store was killed",
            newer.record.holder
        );
        return Err(void(why, &[killed.line]));
    }
    let in_turn = late.answer.is_some_and(|answer| answer.at <= rightful.began);
    match killed.at <= late.began && in_turn {
        true => Ok(()),
        false => Err(void(
            "the attempts were not made in turn once the lock store was gone",
            &[killed.line, late.line, rightful.line],
        )),
    }
}
