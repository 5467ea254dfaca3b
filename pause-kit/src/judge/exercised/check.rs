//! Whether the run went through what its scenario is about: invariant 15.

use super::pause::void;
use super::{answers, control, deferred, one, reads, relayed, several};
use crate::history::{Exercise, Stop};
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
        Exercise::ShortPause { ttl_ns } => control::short_pause(facts, ttl_ns),
        Exercise::KeptAlive { ttl_ns } => control::kept_alive(facts, ttl_ns),
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
