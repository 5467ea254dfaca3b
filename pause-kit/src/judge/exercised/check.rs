//! Whether the run went through what its scenario is about: invariant 15.

use super::pause::{seen, void};
use super::{answers, control, deferred, held_mark, one, reads, relayed, several, store};
use crate::history::{Event, Exercise, Stop, Unstopped};
use crate::judge::facts::{Facts, Seen};
use crate::judge::probes;
use crate::judge::verdict::Violation;

/// 15: the run went through what the scenario is about.
pub(in crate::judge) fn exercised(facts: &Facts<'_>) -> Vec<Violation> {
    let missing = match facts.run.exercise {
        Exercise::Stopped => one::stopped(facts),
        Exercise::Queued => one::queued(facts),
        Exercise::Held => one::held(facts),
        Exercise::IdleInTransaction { idle_ns } => one::idle_in_transaction(facts, idle_ns),
        Exercise::Restarted => one::restarted(facts),
        Exercise::ResourceRestarted => one::resource_restarted(facts),
        Exercise::StaleRead => reads::stale_read(facts),
        Exercise::FenceThenRead => reads::fence_then_read(facts),
        Exercise::LegalGap => several::legal_gap(facts),
        Exercise::InTurn => several::in_turn(facts),
        Exercise::Swept { bytes } => one::swept(facts, bytes),
        Exercise::Between => answers::between(facts),
        Exercise::Deferred => deferred::made_later(facts),
        Exercise::LostAnswers => answers::lost(facts),
        Exercise::Replayed => relayed::replayed(facts),
        Exercise::Altered { how } => relayed::altered(facts, how),
        Exercise::Repeated => relayed::repeated(facts),
        Exercise::Closed { how } => relayed::closed(facts, how),
        Exercise::MarkHeld { idle_ns } => held_mark::client_stopped(facts, idle_ns),
        Exercise::BackendStopped => held_mark::backend_stopped(facts),
        Exercise::CommitFailed => held_mark::commit_failed(facts),
        Exercise::StoreStopped { ttl_ns } => store::stopped(facts, ttl_ns),
        Exercise::StoreGone => store::gone(facts),
        Exercise::ShortPause { ttl_ns } => control::short_pause(facts, ttl_ns),
        Exercise::KeptAlive { ttl_ns } => control::kept_alive(facts, ttl_ns),
        Exercise::Control => Ok(()),
    };
    let mut found: Vec<Violation> = seen(facts, |event| match event {
        Event::Unstopped(one) => Some(one),
        _ => None,
    })
    .iter()
    .map(unstopped)
    .collect();
    found.extend(missing.err());
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

/// A stop was tried in vain: what followed it says nothing.
fn unstopped(one: &Seen<'_, Unstopped>) -> Violation {
    let Unstopped {
        target,
        pid,
        tid,
        state,
    } = one.body;
    let why = format!("{target} could not be stopped: task {tid} of process {pid} stayed in state {state}");
    void(why, &[one.line])
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
