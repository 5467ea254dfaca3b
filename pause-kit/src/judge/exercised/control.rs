//! Controls: nothing is taken over, and nothing may be refused.

use std::time::Duration;

use super::pause::{stop_before, void};
use crate::history::At;
use crate::judge::facts::{Facts, Granted, Guarded};
use crate::judge::verdict::Violation;

/// The holder was stopped for clearly less than its time to live, a quarter of it at least, and made its attempt after that;
/// its lease had not ended by the time at which that was answered, and nobody else was granted the key.
pub(super) fn short_pause(facts: &Facts<'_>, ttl_ns: u64) -> Result<(), Violation> {
    let attempt = facts
        .attempt()
        .ok_or_else(|| void("the attempt was never made", &[]))?;
    let name = &attempt.request.op;
    let answer = attempt
        .answer
        .ok_or_else(|| void(format!("{name} was not answered"), &[attempt.line]))?;
    let pause = stop_before(facts, attempt)?;
    let (stood, ttl) = (pause.to.since(pause.from), Duration::from_nanos(ttl_ns));
    if stood < ttl / 4 || stood > ttl * 3 / 4 {
        let why = format!(
            "the pause of {stood:.3?} is not between a quarter and three quarters of the TTL of {ttl:?}"
        );
        return Err(void(why, &[pause.line]));
    }
    let granted = kept_its_lease(facts, attempt, answer.line, answer.at)?;
    match granted.at > pause.from {
        true => Err(void(
            "the holder was granted the key after its stop",
            &[granted.line, pause.line],
        )),
        false => Ok(()),
    }
}

/// The holder was never stopped and made its attempt more than its time to live after its grant; its lease had not ended by the
/// time at which that was answered, and nobody else was granted the key.
pub(super) fn kept_alive(facts: &Facts<'_>, ttl_ns: u64) -> Result<(), Violation> {
    let attempt = facts
        .attempt()
        .ok_or_else(|| void("the attempt was never made", &[]))?;
    let name = &attempt.request.op;
    let answer = attempt
        .answer
        .ok_or_else(|| void(format!("{name} was not answered"), &[attempt.line]))?;
    let granted = kept_its_lease(facts, attempt, answer.line, answer.at)?;
    let (held, ttl) = (attempt.began.since(granted.at), Duration::from_nanos(ttl_ns));
    if held <= ttl {
        let why = format!("{name} was sent {held:.3?} after the grant, within the TTL of {ttl:?}");
        return Err(void(why, &[granted.line, attempt.line]));
    }
    match facts
        .stops
        .iter()
        .find(|stop| stop.body.target == granted.record.holder)
    {
        Some(stop) => Err(void(
            "the holder was stopped, and with it what renews",
            &[stop.line],
        )),
        None => Ok(()),
    }
}

/// The attempt's grant, whose lease had not ended when that was answered; nobody else was granted the key.
pub(super) fn kept_its_lease<'h>(
    facts: &Facts<'h>,
    attempt: &Guarded<'_>,
    answer_line: usize,
    answered: At,
) -> Result<Granted<'h>, Violation> {
    let name = &attempt.request.op;
    let grants = &facts.grants;
    let granted = grants
        .iter()
        .find(|granted| Some(&granted.record.grant) == attempt.request.grant.as_ref());
    let granted = granted.ok_or_else(|| {
        void(
            format!("the store never made the grant of {name}"),
            &[attempt.line],
        )
    })?;
    // A holder that is done gives its lock back, and the store may be seen to say so before the answer has passed the path.
    let until = match granted.released {
        true => attempt.sent(),
        false => answered,
    };
    if let Some((line, _)) = granted.end.filter(|(_, at)| *at <= until) {
        let why = format!("the lease ended before {name} was answered");
        return Err(void(why, &[line, answer_line]));
    }
    let of_key = |other: &&Granted<'_>| {
        other.record.key == granted.record.key && other.record.class == granted.record.class
    };
    match grants
        .iter()
        .filter(of_key)
        .find(|other| other.line != granted.line)
    {
        Some(other) => Err(void("the key was granted to another", &[other.line])),
        None => Ok(*granted),
    }
}
