//! `fence prove`.

mod commit;
mod etcd;
mod junit;
mod programs;
mod progress;
mod select;
mod selection;
mod summary;
mod versions;
mod wrap;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use fence_core::ClassName;
use pause_kit::evidence::{Place, Verdict};
use pause_kit::plan::{Halves, Plan};
use pause_kit::reaper::ReaperCommand;
use pause_kit::run::{Report, run as play};
use pause_kit::scenario::{ScenarioId, UnknownScenario};
use pause_kit::services::{Services, ServicesConfig};
use pause_kit::stopper::StopWith;
use pause_kit::target::{Http, Proxy};
use pause_kit::timeline;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::REAPER;
use crate::config::Manifest;
use crate::exit::{Ending, Failure};
use crate::say;
use progress::Progress;
use select::Selection;
use summary::Kept;

/// At the end of `fence prove --help`.
const HELP: &str = "\
PostgreSQL and etcd are started for the run alone, on loopback and in temporary folders. Their programs are those that
FENCE_PG_BIN (a folder) and FENCE_ETCD (a file) name, or else those in PATH and in /usr/lib/postgresql.

Example: one class, two scenarios, and the evidence kept:
  fence prove --class paydb.account --scenario S01 --scenario S07 --out evidence
`fence register check` judges the evidence of a whole run again.";

/// What to prove, and where to put the evidence.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ProveArguments {
    /// The file that declares classes and targets [default: fence.toml, here or above]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Prove this class only; repeat it for more
    #[arg(long, value_name = "CLASS")]
    class: Vec<ClassName>,
    /// Run this scenario only, such as S02; repeat it for more
    #[arg(long, value_name = "ID", value_parser = scenario)]
    scenario: Vec<ScenarioId>,
    /// Have holders and the kit speak this to resources with a front, http1 or http2 [default: http1]; runs only the classes
    /// that have one
    #[arg(long, value_name = "HTTP")]
    transport: Option<Http>,
    /// Send the requests through this proxy, which is started for the run: nginx; runs only the classes that have a front
    #[arg(long, value_name = "PROXY")]
    through: Option<Proxy>,
    /// Run only what this expression means, of id(ID), tag(TAG), not, and, or: --select 'tag(revoke) and not id(S17)'; tags
    /// are control, pair, ttl, revoke, mark, front, waits
    #[arg(long, value_name = "EXPR")]
    select: Option<Selection>,
    /// Stop processes by this: signal, freezer (of cgroup v2, which has to be delegated to this user), or auto: the freezer where
    /// it is delegated, else signals. The evidence names it for each stop
    #[arg(long, value_name = "MEANS", default_value = "signal")]
    stop_with: StopWith,
    /// Draw the schedule from this number [default: a random one, which is printed]
    #[arg(long, value_name = "N", value_parser = seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Put the evidence into this folder, which is replaced whole [default: fence-evidence beside fence.toml; nowhere
    /// when only a part is run]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write what came out into this file, as the JUnit report that CI systems read
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Run the defeated halves alone and watch them corrupt, in services that are private to the run; controls have none
    #[arg(long)]
    danger_unfenced: bool,
    /// Run the guarded halves alone, to look for false alarms. Proves nothing: 0 when every half held, 1 when something was
    /// violated, 3 when something was void or inconclusive
    #[arg(long, conflicts_with = "danger_unfenced")]
    only_guarded: bool,
}

/// Proves.
pub(crate) fn run(arguments: &ProveArguments) -> Result<Ending, Failure> {
    let manifest = Manifest::load(arguments.config.as_deref()).map_err(Failure::usage)?;
    let plan = selection::plan(arguments, &manifest).map_err(Failure::usage)?;
    let place = place(arguments, &manifest)?;
    programs::find(&plan, &manifest).map_err(Failure::usage)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Failure::service)?;
    let report = runtime.block_on(async {
        // Dropping the run ends everything that it started, before this returns.
        tokio::select! {
            biased;
            number = interrupted() => Ok(Err(number?)),
            report = whole(&plan, &manifest, arguments.stop_with) => report.map(Ok),
        }
    })?;
    let report = match report {
        Ok(report) => report,
        Err(number) => {
            say::remark("interrupted: everything that was started is gone, and no evidence was written");
            return Ok(Ending::Signal(number));
        }
    };
    let (kept, ending) = match place.map(|place| keep(&place, &report)) {
        Some(Ok(folder)) => (Kept::In(folder), Ok(ending(&plan, &report))),
        Some(Err(error)) => (Kept::Failed, Err(Failure::usage(error))),
        None => (Kept::NotAsked, Ok(ending(&plan, &report))),
    };
    say::show(&summary::text(&plan, &report, &kept, wrap::columns()));
    if let Some(file) = &arguments.junit {
        junit::write(file, &plan, &report.evidence).map_err(Failure::usage)?;
    }
    ending
}

/// Where the evidence goes: a run of a part says nothing about the whole, so it never takes the whole's place.
fn place(arguments: &ProveArguments, manifest: &Manifest) -> Result<Option<Place>, Failure> {
    let part = arguments.danger_unfenced
        || arguments.only_guarded
        || arguments.transport.is_some()
        || arguments.through.is_some()
        || !arguments.class.is_empty()
        || !arguments.scenario.is_empty()
        || arguments.select.is_some();
    let folder = match (&arguments.out, part) {
        (Some(folder), _) => folder.clone(),
        (None, false) => manifest.folder.join("fence-evidence"),
        (None, true) => return Ok(None),
    };
    Place::check(&folder).map(Some).map_err(Failure::usage)
}

async fn whole(plan: &Plan, manifest: &Manifest, stop_with: StopWith) -> Result<Report, Failure> {
    let progress = Progress::begin(plan);
    let started = Instant::now();
    let services = Services::start(ServicesConfig {
        reaper: ReaperCommand {
            program: plan.fence.clone(),
            args: vec![REAPER.into()],
        },
        postgres: true,
        etcd: manifest.tiers.keys().map(ToString::to_string).collect(),
    });
    let services = services.await.map_err(Failure::service)?;
    services.stop_with(stop_with).await.map_err(Failure::service)?;
    progress.services_run(&services, started.elapsed());
    let report = play(plan, &services, &etcd::EtcdStores, &progress).await;
    progress.end();
    report.map_err(|error| match (error.place(), error.is_in_configuration()) {
        (Some(place), _) => Failure::usage(manifest.fault_at(place, &error)),
        (None, true) => Failure::usage(error),
        (None, false) => Failure::service(error),
    })
}

/// Waits for the first signal that asks the command to end, and gives its number.
async fn interrupted() -> Result<u8, Failure> {
    let listen = |kind| signal(kind).map_err(Failure::service);
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    Ok(tokio::select! {
        _ = interrupt.recv() => 2,
        _ = terminate.recv() => 15,
        _ = hangup.recv() => 1,
    })
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "a seed is a number, 0 to 18446744073709551615".to_owned())
}

fn scenario(text: &str) -> Result<ScenarioId, UnknownScenario> {
    text.parse()
}

fn keep(place: &Place, report: &Report) -> Result<PathBuf, pause_kit::evidence::PublishError> {
    let publication = place.prepare()?;
    for history in &report.histories {
        publication.write(&history.name, &history.text)?;
    }
    publication.write(timeline::FILE, report.drawing().page().as_bytes())?;
    publication.commit(&report.evidence)
}

fn ending(plan: &Plan, report: &Report) -> Ending {
    let worst = report.evidence.scenarios.iter().map(|scenario| scenario.verdict);
    match (plan.halves, worst.clone().min(), worst.max()) {
        // Every twin must have corrupted: the mildest verdict counts.
        (Halves::DefeatedOnly, Some(Verdict::Violated), _) => Ending::Violated,
        (Halves::DefeatedOnly, _, _) => Ending::Inconclusive,
        (Halves::Pair | Halves::GuardedOnly, _, Some(Verdict::Violated)) => Ending::Violated,
        (Halves::Pair | Halves::GuardedOnly, _, Some(Verdict::Proven | Verdict::Held)) => Ending::Done,
        (Halves::Pair | Halves::GuardedOnly, _, _) => Ending::Inconclusive,
    }
}
