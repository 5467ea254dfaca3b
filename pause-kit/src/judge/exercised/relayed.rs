//! Scenarios about what the path itself sent.

use super::control::kept_its_lease;
use super::pause::{Pause, is_read_around, raised_within, takeover, void, wrote_within};
use crate::history::{Alteration, Attempt, Half, Relay};
use crate::judge::facts::{Facts, Granted, Guarded, Seen};
use crate::judge::said::Said;
use crate::judge::verdict::Violation;

/// The first attempt repeats a write that had been answered before the lease ended, the second one that never arrived. Between
/// the first copy of that and the first repetition the lease ended, and the successor was granted, raised and wrote.
pub(super) fn replayed(facts: &Facts<'_>) -> Result<(), Violation> {
    let stale = stale(facts)?;
    let [landed, lost] = facts.run.attempts.as_slice() else {
        return Err(void("two attempts belong to this", &[]));
    };
    let (landed, lost) = (sent(facts, landed)?, sent(facts, lost)?);
    for one in [&landed, &lost] {
        is(one, Alteration::Nothing)?;
    }
    let first = landed.original;
    let answered = first.answer.filter(|_| first.said() == Said::Accepted);
    let before = |at| stale.end.is_some_and(|(_, ended)| at <= ended);
    if answered.is_none_or(|answer| !before(answer.at)) {
        let why = format!(
            "{} had not been accepted before the lease ended",
            first.request.op
        );
        return Err(void(why, &[first.line]));
    }
    never_arrived(lost.original)?;
    let gone = Pause {
        from: lost.original.began,
        to: landed.relay.at.min(lost.relay.at),
        line: lost.original.line,
    };
    taken_over(facts, stale, gone)
}

/// Each attempt is a write that never arrived, with its claim changed. Between that and the first attempt the lease ended, and
/// the successor was granted, raised and wrote. The twin's path need not have changed anything, and may have sent it once.
pub(super) fn altered(facts: &Facts<'_>, how: Alteration) -> Result<(), Violation> {
    let stale = stale(facts)?;
    let as_it_was = facts.run.half == Half::Defeated && how != Alteration::EqualToken;
    let attempts = match (as_it_was, facts.run.attempts.first()) {
        (true, Some(first)) => std::slice::from_ref(first),
        _ => facts.run.attempts.as_slice(),
    };
    let mut gone: Option<Pause> = None;
    for attempt in attempts {
        let one = sent(facts, attempt)?;
        is(&one, if as_it_was { Alteration::Nothing } else { how })?;
        never_arrived(one.original)?;
        gone.get_or_insert(Pause {
            from: one.original.began,
            to: one.relay.at,
            line: one.original.line,
        });
    }
    let gone = gone.ok_or_else(|| void("the stale attempt was never made", &[stale.line]))?;
    taken_over(facts, stale, gone)
}

/// The attempt repeats a write of its own grant that had been accepted; its lease had not ended when it was answered, and
/// nobody else was granted the key.
pub(super) fn repeated(facts: &Facts<'_>) -> Result<(), Violation> {
    let attempt = facts.run.attempts.first();
    let attempt = attempt.ok_or_else(|| void("the attempt was never made", &[]))?;
    let one = sent(facts, attempt)?;
    is(&one, Alteration::Nothing)?;
    let first = one.original;
    if first.said() != Said::Accepted || first.answer.is_none_or(|answer| answer.at > one.relay.at) {
        let why = format!(
            "{} had not been accepted before it was sent again",
            first.request.op
        );
        return Err(void(why, &[first.line, one.relay.line]));
    }
    if one.op.said() == Said::Accepted {
        let why = format!("{} was not answered as one that is known", one.op.request.op);
        return Err(void(why, &[one.op.line]));
    }
    under_a_live_lease(facts, one.op)
}

/// Every attempt but the last is the last one with its claim changed; that one was held until they were all answered, and its
/// lease had not ended when it was answered itself.
pub(super) fn closed(facts: &Facts<'_>, how: Alteration) -> Result<(), Violation> {
    let Some((itself, changed)) = facts.run.attempts.split_last() else {
        return Err(void("the attempt was never made", &[]));
    };
    let itself = facts
        .op(&itself.op)
        .ok_or_else(|| void(format!("{} was never made", itself.op), &[]))?;
    let hold = facts.holds.iter().find(|hold| hold.body.op == itself.request.op);
    let released = hold.and_then(|hold| Some((hold, hold.body.released?)));
    let (hold, released) = released.ok_or_else(|| {
        let why = format!("{} was not held and let go", itself.request.op);
        void(why, &[itself.line])
    })?;
    for attempt in changed {
        let one = sent(facts, attempt)?;
        is(&one, how)?;
        if one.original.request.op != itself.request.op {
            let why = format!("{} is not made of {}", attempt.op, itself.request.op);
            return Err(void(why, &[one.relay.line]));
        }
        if one.relay.at < hold.at || one.op.answer.is_none_or(|answer| answer.at > released) {
            let why = format!(
                "{} was not answered while {} was held",
                attempt.op, itself.request.op
            );
            return Err(void(why, &[one.op.line, hold.line]));
        }
    }
    if itself.request.sent.is_none_or(|sent| sent < released) {
        let why = format!("{} was not sent after the others", itself.request.op);
        return Err(void(why, &[itself.line, hold.line]));
    }
    under_a_live_lease(facts, itself)
}

/// What the path sent, and what it was made of.
struct Sent<'f, 'h> {
    op: &'f Guarded<'h>,
    relay: Seen<'h, Relay>,
    original: &'f Guarded<'h>,
}

fn sent<'f, 'h>(facts: &'f Facts<'h>, attempt: &Attempt) -> Result<Sent<'f, 'h>, Violation> {
    let name = &attempt.op;
    let op = facts.op(name);
    let op = op.ok_or_else(|| void(format!("{name} was never made"), &[]))?;
    let relay = facts.relays.iter().copied().find(|relay| relay.body.op == *name);
    let relay = relay.ok_or_else(|| void(format!("{name} was not sent by the path"), &[op.line]))?;
    let original = facts.op(&relay.body.of);
    let original = original.ok_or_else(|| void(format!("{name} was made of nothing"), &[relay.line]))?;
    let same = original.id() == op.id() && original.request.grant == op.request.grant;
    if !same || original.began > relay.at || op.began < relay.at {
        let why = format!("{name} is no later copy of {}", relay.body.of);
        return Err(void(why, &[original.line, op.line]));
    }
    Ok(Sent { op, relay, original })
}

/// The path did this to the request, as far as what was presented can show it.
fn is(sent: &Sent<'_, '_>, how: Alteration) -> Result<(), Violation> {
    let (was, is) = (&sent.original.request.presented, &sent.op.request.presented);
    let token = is.token.as_deref().unwrap_or_default();
    let shows = match how {
        Alteration::Nothing => was.grant == is.grant,
        Alteration::Twice => token.contains(", ") && was.token.iter().any(|own| token.contains(own.as_str())),
        Alteration::Stripped => is.token.is_none() && is.grant.is_none(),
        Alteration::EqualToken => was.grant == is.grant && was.token != is.token && !token.is_empty(),
        Alteration::Malformed | Alteration::Missing => true,
    };
    match sent.relay.body.how == how && shows {
        true => Ok(()),
        false => Err(void(
            format!("{} is not what the scenario makes of it", sent.op.request.op),
            &[sent.relay.line, sent.op.line],
        )),
    }
}

fn stale<'h>(facts: &Facts<'h>) -> Result<Granted<'h>, Violation> {
    facts
        .stale_grant()
        .ok_or_else(|| void("the store never made the stale grant", &[]))
}

fn never_arrived(op: &Guarded<'_>) -> Result<(), Violation> {
    match (op.request.sent, op.answer) {
        (None, None) => Ok(()),
        _ => Err(void(
            format!("{} did arrive at the resource", op.request.op),
            &[op.line],
        )),
    }
}

fn taken_over(facts: &Facts<'_>, stale: Granted<'_>, gone: Pause) -> Result<(), Violation> {
    takeover(facts, stale, gone)?;
    raised_within(facts, gone)?;
    wrote_within(facts, gone)?;
    is_read_around(facts, gone)
}

fn under_a_live_lease(facts: &Facts<'_>, op: &Guarded<'_>) -> Result<(), Violation> {
    let name = &op.request.op;
    let answer = op
        .answer
        .ok_or_else(|| void(format!("{name} was not answered"), &[op.line]))?;
    kept_its_lease(facts, op, answer.line, answer.at).map(drop)
}
