//! Scenarios about a transaction that does not come to its COMMIT: its client or its backend stands still, or it has failed.

use super::pause::{
    Pause, attempted_after, is_read_around, parties, raised_within, stop_of, takeover, void, wrote_within,
};
use crate::history::{At, DbAnswer, Half, Uncommitted};
use crate::judge::clients::is_accepted;
use crate::judge::facts::{Facts, Guarded, Seen};
use crate::judge::said::Said;
use crate::judge::verdict::Violation;

/// The stale holder's write was made but for its COMMIT, which was held; the resource was stopped, the lease ended, and the
/// successor was granted and seen waiting for that transaction. Guarded, a later holder raised and wrote inside the stop, which
/// outlasted the bound on idle transactions; the COMMIT, let go, came to nothing, and the write was presented again. In the twin
/// the successor waited for longer than its bound.
pub(super) fn client_stopped(facts: &Facts<'_>, idle_ns: u64) -> Result<(), Violation> {
    let Some(stale) = facts.stale_grant() else {
        return Err(void("no stale grant is known", &[]));
    };
    let pause = Pause::of_stop(stop_of(facts, "R")?)?;
    let (commit, made) = uncommitted(facts, pause)?;
    let name = &made.request.op;
    if made.request.grant.as_ref() != Some(&stale.record.grant) {
        return Err(void(format!("{name} is not the stale holder's"), &[made.line]));
    }
    takeover(facts, stale, pause)?;
    let since = seen_waiting(facts, "R", pause)?;
    match facts.run.half {
        Half::Guarded => {
            if pause.to.since(commit.at).as_nanos() < u128::from(idle_ns) {
                let why = "the resource went on before its idle transaction had to be over";
                return Err(void(why, &[pause.line, commit.line]));
            }
            if is_accepted(facts, made) {
                return Err(void(format!("{name} did land"), &[made.line]));
            }
            raised_within(facts, pause)?;
            wrote_within(facts, pause)?;
            is_read_around(facts, pause)?;
            let (_, attempt) = parties(facts)?;
            attempted_after(attempt, pause)
        }
        Half::Defeated => {
            let bounds = facts.run.bounds;
            let bound = bounds.deadline_ns.saturating_add(bounds.slack_ns);
            match pause.to.since(since).as_nanos() > u128::from(bound) {
                true => Ok(()),
                false => Err(void(
                    "the resource went on before the successor's bound had passed",
                    &[pause.line],
                )),
            }
        }
    }
}

/// A write was made but for its COMMIT, which was held; its backend was stopped, and a later holder was granted, seen waiting for
/// that transaction, and answered before the backend went on.
pub(super) fn backend_stopped(facts: &Facts<'_>) -> Result<(), Violation> {
    let pause = Pause::of_stop(stop_of(facts, "B")?)?;
    let (_, made) = uncommitted(facts, pause)?;
    seen_waiting(facts, "B", pause)?;
    let attempt = facts.attempt();
    let attempt = attempt.ok_or_else(|| void("the attempt was never made", &[]))?;
    let name = &attempt.request.op;
    if attempt.request.grant == made.request.grant {
        return Err(void(
            format!("{name} is not of a later holder"),
            &[made.line, attempt.line],
        ));
    }
    match pause.contains_all_of(attempt) {
        true => Ok(()),
        false => Err(void(
            format!("{name} was not answered while the backend stood"),
            &[attempt.line, pause.line],
        )),
    }
}

/// The attempt's write was done, and then a statement failed in its transaction. After that some write was committed.
pub(super) fn commit_failed(facts: &Facts<'_>) -> Result<(), Violation> {
    let attempt = facts.attempt();
    let attempt = attempt.ok_or_else(|| void("the attempt was never made", &[]))?;
    let name = &attempt.request.op;
    let done = |answer: &DbAnswer| Said::of_sql(answer.sqlstate.as_deref(), answer.tag.as_deref());
    let wrote = attempt
        .db
        .iter()
        .find(|answer| done(answer.body) == Said::Accepted);
    let wrote =
        wrote.ok_or_else(|| void(format!("{name} was not done before its COMMIT"), &[attempt.line]))?;
    let failed = attempt
        .db
        .iter()
        .find(|answer| answer.body.sqlstate.is_some() && answer.at > wrote.at);
    let failed = failed.ok_or_else(|| {
        let why = format!("nothing failed in the transaction of {name}");
        void(why, &[attempt.line, wrote.line])
    })?;
    let mut later = facts.ops.iter().filter(|op| op.began >= failed.at);
    match later.any(|op| op.is_write() && op.said() == Said::Accepted) {
        true => Ok(()),
        false => Err(void(format!("nothing was written after {name}"), &[failed.line])),
    }
}

/// The COMMIT that was held from before the stop until within it, and the write that it was to commit.
fn uncommitted<'f, 'h>(
    facts: &'f Facts<'h>,
    pause: Pause,
) -> Result<(Seen<'h, Uncommitted>, &'f Guarded<'h>), Violation> {
    let commit = facts.uncommitted.first().copied();
    let commit = commit.ok_or_else(|| void("no COMMIT was held", &[pause.line]))?;
    let name = &commit.body.op;
    let made = facts.op(name);
    let made = made.ok_or_else(|| void(format!("{name} was never made"), &[commit.line]))?;
    let until_then = commit
        .body
        .released
        .is_some_and(|released| pause.contains(released));
    if commit.at > pause.from || !until_then {
        let why = format!("the COMMIT of {name} was not held until the stop was to end");
        return Err(void(why, &[commit.line, pause.line]));
    }
    if made.answer.is_some_and(|answer| answer.at < pause.to) {
        let why = format!("{name} was answered before the stop was over");
        return Err(void(why, &[made.line, pause.line]));
    }
    Ok((commit, made))
}

/// When what was seen waiting for this one inside the stop, began to wait.
fn seen_waiting(facts: &Facts<'_>, on: &str, pause: Pause) -> Result<At, Violation> {
    let waiting = facts
        .waiting
        .iter()
        .filter(|waiting| waiting.body.on == on && pause.contains(waiting.at));
    let ops = waiting.filter_map(|waiting| facts.op(&waiting.body.op));
    ops.map(Guarded::sent).min().ok_or_else(|| {
        void(
            format!("no later holder was seen waiting for the transaction of {on}"),
            &[pause.line],
        )
    })
}
