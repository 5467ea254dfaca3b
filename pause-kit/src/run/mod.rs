//! A run: every scenario of a plan, guarded and defeated, judged and paired.

mod error;
mod pair;
mod report;

pub use error::RunError;
pub use report::{HistoryText, Report};

pub(crate) use pair::Judged;
pub(crate) use report::assemble;

use std::sync::{Mutex, PoisonError};

use futures_util::future::{try_join, try_join_all};

use crate::history::Half as HalfKind;
use crate::plan::{Halves, Plan};
use crate::scenario::{self, Assignment, Ground, ScenarioId};
use crate::schedule::Slot;
use crate::services::Services;
use crate::store::Stores;

/// Is told how a run goes on.
pub trait Observer {
    /// A half begins.
    fn half_begins(&self, slot: &Slot, half: HalfKind);

    /// A scenario is over, with this in the report.
    fn scenario_over(&self, scenario: ScenarioId, evidence: &crate::evidence::ScenarioEvidence);
}

/// Plays every scenario of the plan and judges it. `services` must hold PostgreSQL and an etcd for every tier.
///
/// Dropping the future gives the run up; dropping `services` then ends everything that it started.
///
/// # Errors
///
/// [`RunError`] when a file, a command or a service is at fault. What was shown by then is lost: a report is whole.
pub async fn run(
    plan: &Plan,
    services: &Services,
    stores: &dyn Stores,
    observer: &dyn Observer,
) -> Result<Report, RunError> {
    let ground = Ground {
        services,
        stores,
        fence: &plan.fence,
        transport: plan.transport,
    };
    let report = Mutex::new(Report::begin(plan, services));
    let over = |slot: &Slot, judged| {
        let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
        observer.scenario_over(slot.scenario, report.add(slot, judged));
    };
    let all = async |slots: Vec<&Slot>| {
        for slot in slots {
            over(slot, pair(plan, ground, slot, observer).await?);
        }
        Ok::<_, RunError>(())
    };
    // Those that mostly wait do so beside the others, with which they share nothing but the servers.
    let slots = plan.schedule.slots().iter();
    let (waiting, busy) = slots.partition(|slot| slot.scenario.mostly_waits());
    try_join(all(waiting), all(busy)).await?;
    let report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(report.end(plan))
}

/// Plays the halves of one scenario and judges them.
async fn pair(
    plan: &Plan,
    ground: Ground<'_>,
    slot: &Slot,
    observer: &dyn Observer,
) -> Result<Vec<Judged>, RunError> {
    let class = plan
        .classes
        .iter()
        .find(|class| class.name == slot.class)
        .expect("a schedule is drawn for the plan's own classes");
    let begin = |half| {
        observer.half_begins(slot, half);
        let seed = plan.schedule.seed();
        scenario::play(
            ground,
            Assignment {
                class,
                slot,
                kind: half,
                seed,
            },
        )
    };
    let halves = halves(plan.halves, slot);
    let finished = if slot.scenario.mostly_waits() {
        try_join_all(halves.iter().map(|half| begin(*half))).await?
    } else {
        let mut finished = Vec::new();
        for half in &halves {
            finished.push(begin(*half).await?);
        }
        finished
    };
    let judged = halves.into_iter().zip(finished);
    Ok(judged
        .map(|(half, finished)| Judged::of(half, finished))
        .collect())
}

fn halves(halves: Halves, slot: &Slot) -> Vec<HalfKind> {
    let mut halves = halves.of(slot.scenario).to_vec();
    if slot.defeated_first {
        halves.reverse();
    }
    halves
}

/// An error and its sources in one line, outermost first.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}
