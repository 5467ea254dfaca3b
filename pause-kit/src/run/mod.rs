//! A run: every scenario of a plan, guarded and defeated, judged and paired.

mod error;
mod pair;
mod report;
mod turns;

pub use error::RunError;
pub use report::{HistoryText, Report};

pub(crate) use pair::Judged;
pub(crate) use report::assemble;
pub(crate) use turns::Turn;

use std::sync::{Mutex, PoisonError};

use futures_util::future::{try_join, try_join_all};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::sync::OnceCell;

use crate::history::Half as HalfKind;
use crate::plan::{Halves, Plan};
use crate::scenario::{self, Assignment, Ground, ScenarioId};
use crate::schedule::Slot;
use crate::services::{Postgres, Services, locate};
use crate::store::Stores;
use turns::{AT_WORK, Turns};

/// Is told how a run goes on.
pub trait Observer {
    /// A half begins.
    fn half_begins(&self, slot: &Slot, half: HalfKind);

    /// A scenario is over, with this in the report.
    fn scenario_over(&self, scenario: ScenarioId, evidence: &crate::evidence::ScenarioEvidence);
}

/// Plays every scenario of the plan and judges it. `services` must hold PostgreSQL and an etcd for every tier.
///
/// Scenarios share nothing but the servers, so that several are under way at a time; those that mostly wait all wait together.
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
    let under_way = UnderWay {
        plan,
        services,
        stores,
        observer,
        report: Mutex::new(Report::begin(plan, services)),
        turns: Turns::new(),
        apart: OnceCell::new(),
    };
    let slots = plan.schedule.slots().iter();
    let (waiting, busy): (Vec<_>, Vec<_>) = slots.partition(|slot| slot.scenario.mostly_waits());
    // Those that wait come first, so that their time runs while the others work.
    let waiting = try_join_all(waiting.into_iter().map(|slot| under_way.play(slot)));
    let busy = stream::iter(busy).map(|slot| under_way.play(slot));
    try_join(waiting, busy.buffer_unordered(AT_WORK).try_collect::<()>()).await?;
    let report = under_way.report.into_inner();
    Ok(report.unwrap_or_else(PoisonError::into_inner).end(plan))
}

/// What all scenarios of a run share.
struct UnderWay<'a> {
    plan: &'a Plan,
    services: &'a Services,
    stores: &'a dyn Stores,
    observer: &'a dyn Observer,
    report: Mutex<Report>,
    turns: Turns,
    /// A server for those that keep transactions open. Whoever begins to read the order of commits waits until every
    /// transaction on its server is over.
    apart: OnceCell<Postgres>,
}

impl UnderWay<'_> {
    async fn play(&self, slot: &Slot) -> Result<(), RunError> {
        let judged = self.pair(slot).await?;
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        self.observer
            .scenario_over(slot.scenario, report.add(slot, judged));
        Ok(())
    }

    /// Plays the halves of one scenario and judges them.
    async fn pair(&self, slot: &Slot) -> Result<Vec<Judged>, RunError> {
        let halves = halves(self.plan.halves, slot);
        if slot.scenario.mostly_waits() {
            return try_join_all(halves.into_iter().map(|half| self.half(slot, half))).await;
        }
        let mut judged = Vec::new();
        for half in halves {
            judged.push(self.half(slot, half).await?);
        }
        Ok(judged)
    }

    async fn half(&self, slot: &Slot, half: HalfKind) -> Result<Judged, RunError> {
        let turn = self.turns.take().await;
        self.observer.half_begins(slot, half);
        let mut classes = self.plan.classes.iter();
        let class = classes
            .find(|class| class.name == slot.class)
            .expect("a schedule is drawn for the plan's own classes");
        let ground = Ground {
            services: self.services,
            postgres: self.postgres(slot.scenario).await?,
            stores: self.stores,
            fence: &self.plan.fence,
            transport: self.plan.transport,
        };
        let task = Assignment {
            class,
            slot,
            kind: half,
            seed: self.plan.schedule.seed(),
        };
        let finished = scenario::play(ground, task, turn).await?;
        // A long history takes the judge a while, in which others would be kept from what they wait for.
        let judged = tokio::task::spawn_blocking(move || Judged::of(half, finished)).await;
        judged.map_err(RunError::lost("the judge did not come to its end"))
    }

    /// The server that a scenario's databases are on.
    async fn postgres(&self, scenario: ScenarioId) -> Result<&Postgres, RunError> {
        let mut slots = self.plan.schedule.slots().iter();
        let alone = slots.all(|slot| slot.scenario.keeps_transactions_open());
        if alone || !scenario.keeps_transactions_open() {
            return Ok(self.services.postgres().expect("every run asks for PostgreSQL"));
        }
        let started = self.apart.get_or_try_init(|| async {
            let programs = locate::postgres()?;
            self.services.start_postgres(&programs).await
        });
        started
            .await
            .map_err(RunError::lost("a second PostgreSQL could not be started"))
    }
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
