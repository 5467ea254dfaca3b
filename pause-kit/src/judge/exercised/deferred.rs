//! A write that the resource accepted for later.

use super::pause::{Pause, is_read_around, parties, raised_within, takeover, void, wrote_within};
use crate::judge::facts::Facts;
use crate::judge::said::Said;
use crate::judge::verdict::Violation;

/// A write of the stale holder was accepted for later, and a worker was started after that; in between the lease ended, and the successor was granted, raised and wrote. The attempt is what the worker made of that write.
pub(super) fn made_later(facts: &Facts<'_>) -> Result<(), Violation> {
    let (stale, attempt) = parties(facts)?;
    let (holder, worker) = (&stale.record.holder, &attempt.request.holder);
    let accepted = facts.ops.iter().find_map(|op| {
        let own = op.request.grant.as_ref() == Some(&stale.record.grant);
        let answer = op
            .answer
            .filter(|_| own && op.is_write() && op.said() == Said::Deferred);
        Some((op, answer?))
    });
    let (asked, answer) = accepted.ok_or_else(|| {
        void(
            format!("no write of {holder} was accepted for later"),
            &[stale.line],
        )
    })?;
    let started = facts
        .started
        .iter()
        .find(|started| started.body.target == *worker);
    let started = started.ok_or_else(|| void(format!("{worker} was never started"), &[attempt.line]))?;
    let between = Pause {
        from: answer.at,
        to: started.at,
        line: started.line,
    };
    takeover(facts, stale, between)?;
    raised_within(facts, between)?;
    wrote_within(facts, between)?;
    is_read_around(facts, between)?;
    let (name, asked_for) = (&attempt.request.op, &asked.request.op);
    if attempt.began < started.at {
        let why = format!("{name} began before {worker} was started");
        return Err(void(why, &[attempt.line, started.line]));
    }
    match asked.id().is_some() && asked.id() == attempt.id() {
        true => Ok(()),
        false => Err(void(
            format!("{name} is not the write that {asked_for} asked for"),
            &[asked.line, attempt.line],
        )),
    }
}
