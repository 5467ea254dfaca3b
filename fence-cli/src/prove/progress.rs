//! How a run goes on: a moving line for a person, plain lines without a terminal. All of it on standard error.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pause_kit::evidence::ScenarioEvidence;
use pause_kit::history::Half;
use pause_kit::plan::{Halves, Plan};
use pause_kit::run::Observer;
use pause_kit::scenario::ScenarioId;
use pause_kit::schedule::Slot;
use pause_kit::services::Services;

use super::versions;
use crate::say;

/// Shows how a run goes on.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    halves: Halves,
}

impl Progress {
    /// Says what is about to be run.
    pub(super) fn begin(plan: &Plan) -> Progress {
        let slots = plan.schedule.slots().len();
        let each = plan.schedule.slots().iter();
        let halves: usize = each.map(|slot| plan.halves.of(slot.scenario).len()).sum();
        let bar = can_move().then(|| {
            let bar = ProgressBar::with_draw_target(
                Some(u64::try_from(slots).expect("a few scenarios")),
                ProgressDrawTarget::stderr(),
            );
            let style = ProgressStyle::with_template("{spinner} {pos}/{len} {wide_msg} {elapsed}");
            bar.set_style(style.expect("the template is well formed"));
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        let progress = Progress {
            bar,
            halves: plan.halves,
        };
        progress.line(&format!(
            "seed {}: {}, {halves} {}",
            plan.schedule.seed(),
            super::summary::scenarios(slots),
            if halves == 1 { "half" } else { "halves" }
        ));
        progress.now("starting PostgreSQL and etcd");
        progress
    }

    /// Says what runs, and what is known against it.
    pub(super) fn services_run(&self, services: &Services, took: Duration) {
        let found = services.versions();
        let postgres = found.postgres.unwrap_or_default();
        let etcd = found.etcd.unwrap_or_default();
        self.line(&format!(
            "PostgreSQL {postgres} and etcd {etcd} run, after {:.1} s",
            took.as_secs_f64()
        ));
        if let Some(warning) = versions::warning(&etcd) {
            self.line(&format!("warning: {warning}"));
        }
    }

    /// Clears the moving line.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => say::remark(text),
        }
    }

    fn now(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None => say::remark(text),
        }
    }
}

impl Observer for Progress {
    fn half_begins(&self, slot: &Slot, half: Half) {
        let how = match half {
            Half::Guarded => "guarded",
            Half::Defeated if slot.scenario.defeats_the_guard() => "defeated",
            Half::Defeated => "twin",
        };
        self.now(&format!(
            "{} {} {how}: {}",
            slot.scenario,
            slot.class,
            slot.scenario.summary()
        ));
    }

    fn scenario_over(&self, scenario: ScenarioId, evidence: &ScenarioEvidence) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
        let verdict = super::summary::verdict(self.halves, evidence);
        self.line(&format!("{scenario} {}: {verdict}", evidence.class));
    }
}

/// Whether standard error is a terminal that can move its cursor.
fn can_move() -> bool {
    let term = std::env::var_os("TERM").unwrap_or_default();
    std::io::stderr().is_terminal() && !term.is_empty() && term != "dumb"
}
