//! From arguments and `fence.toml` to what is run.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use fence_core::ClassName;
use pause_kit::plan::{ClassPlan, Halves, Plan};
use pause_kit::scenario::ScenarioId;
use pause_kit::schedule::Schedule;
use pause_kit::services::{NotFound, locate};
use pause_kit::stopper::StopWith;
use pause_kit::target::{Defeat, Http, Proxy, Transport};

use super::{ProveArguments, commit};
use crate::config::Manifest;
use crate::guard::{self, GuardError};
use crate::proven_by;

/// The arguments ask for something that `fence.toml` does not declare. Ask for one of those listed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SelectionError {
    #[error("class \"{class}\" is not declared with a proof; there are {declared}")]
    NoClass { class: ClassName, declared: String },
    #[error(
        "scenario {scenario} is a control: it has no half without its guard; leave out --danger-unfenced"
    )]
    Control { scenario: ScenarioId },
    #[error("scenario {scenario} is not declared for any class asked for; there are {declared}")]
    NoScenario { scenario: ScenarioId, declared: String },
    #[error("no scenario is meant by --select '{text}'; there are {declared}")]
    NothingMeant { text: String, declared: String },
    #[error(
        "no class in fence.toml has a proof; a class that is fenced is proven by its [classes.NAME.proof]"
    )]
    Nothing,
    #[error(
        "no class asked for has a front, through which alone requests travel as --transport and --through say"
    )]
    NoFront,
    #[error(
        "the holder of class \"{class}\" is not said to speak HTTP/2: its with has no \"http2\"; give the arguments that make \
         it do so, such as with.http2 = [\"--http2\"]"
    )]
    NoHttp2 { class: ClassName },
    #[error(
        "the target of class \"{class}\" is defeated by a fresher Fencing-Token, which cannot be put into the compressed fields of \
         HTTP/2; give the target a defeat_sql"
    )]
    Compressed { class: ClassName },
    #[error("the requests cannot go through nginx")]
    NoProxy(#[source] NotFound),
    #[error(transparent)]
    Guard(GuardError),
    #[error("the running executable is not known")]
    Executable(#[source] std::io::Error),
}

/// What is run.
pub(super) fn plan(arguments: &ProveArguments, manifest: &Manifest) -> Result<Plan, SelectionError> {
    let none = |scenario: &&ScenarioId| halves(arguments).of(**scenario).is_empty();
    if let Some(scenario) = arguments.scenario.iter().find(none) {
        return Err(SelectionError::Control { scenario: *scenario });
    }
    let transport = Transport {
        http: arguments.transport.unwrap_or_default(),
        through: arguments.through,
    };
    let classes = classes(arguments, manifest)?;
    reach(transport, &classes)?;
    let scenarios = scenarios(arguments, &classes)?;
    let seed = arguments.seed.unwrap_or_else(random_seed);
    Ok(Plan {
        fence: std::env::current_exe().map_err(SelectionError::Executable)?,
        started: jiff::Timestamp::now().to_string(),
        again: again(arguments, seed),
        guard_sha256: guard::sha256(classes.iter().map(|class| class.target.guard_sql.as_path()))
            .map_err(SelectionError::Guard)?,
        versions: versions(manifest),
        schedule: Schedule::draw(seed, &scenarios),
        halves: halves(arguments),
        transport,
        classes,
    })
}

/// Whether requests can travel so.
fn reach(transport: Transport, classes: &[ClassPlan]) -> Result<(), SelectionError> {
    if let Some(Proxy::Nginx) = transport.through {
        locate::nginx().map_err(SelectionError::NoProxy)?;
    }
    if transport.http == Http::One {
        return Ok(());
    }
    for class in classes {
        let name = class.name.clone();
        if class.proof.holder.with.http2.is_none() {
            return Err(SelectionError::NoHttp2 { class: name });
        }
        if class.target.defeat == Some(Defeat::FresherToken) {
            return Err(SelectionError::Compressed { class: name });
        }
    }
    Ok(())
}

fn versions(manifest: &Manifest) -> BTreeMap<String, String> {
    let fence = ("fence".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let commit = commit::of(&manifest.folder).map(|commit| ("commit".to_owned(), commit));
    [fence].into_iter().chain(commit).collect()
}

/// The command that runs the same again, from the folder of `fence.toml`.
fn again(arguments: &ProveArguments, seed: u64) -> String {
    let mut words = vec![format!("fence prove --seed {seed}")];
    words.extend(arguments.class.iter().map(|class| format!("--class {class}")));
    let scenarios = arguments.scenario.iter();
    words.extend(scenarios.map(|scenario| format!("--scenario {scenario}")));
    if let Some(http) = arguments.transport {
        words.push(format!("--transport {}", http.as_str()));
    }
    if let Some(proxy) = arguments.through {
        words.push(format!("--through {}", proxy.as_str()));
    }
    if arguments.stop_with != StopWith::Signal {
        words.push(format!("--stop-with {}", arguments.stop_with.as_str()));
    }
    let select = arguments.select.iter();
    words.extend(select.map(|select| format!("--select '{}'", select.text())));
    if arguments.danger_unfenced {
        words.push("--danger-unfenced".to_owned());
    }
    if arguments.only_guarded {
        words.push("--only-guarded".to_owned());
    }
    words.join(" ")
}

fn halves(arguments: &ProveArguments) -> Halves {
    match (arguments.danger_unfenced, arguments.only_guarded) {
        (true, _) => Halves::DefeatedOnly,
        (false, true) => Halves::GuardedOnly,
        (false, false) => Halves::Pair,
    }
}

fn classes(arguments: &ProveArguments, manifest: &Manifest) -> Result<Vec<ClassPlan>, SelectionError> {
    let targets: BTreeMap<&String, Arc<_>> = manifest
        .targets
        .iter()
        .map(|(name, target)| (name, Arc::new(target.clone())))
        .collect();
    let mut proven = Vec::new();
    for (name, class) in &manifest.classes {
        let target = class.proof.as_ref().and_then(|proof| targets.get(&proof.target));
        let (Some(proof), Some(guard), Some(target)) = (&class.proof, class.guard, target) else {
            continue;
        };
        let Some(proven_by) = proven_by::now(manifest, name).map_err(SelectionError::Guard)? else {
            continue;
        };
        proven.push(ClassPlan {
            name: name.clone(),
            tier: class.tier.clone(),
            ttl: class.ttl,
            guard,
            target: Arc::clone(target),
            proof: proof.clone(),
            proven_by,
        });
    }
    if proven.is_empty() {
        return Err(SelectionError::Nothing);
    }
    for class in &arguments.class {
        if !proven.iter().any(|proven| proven.name == *class) {
            let declared = joined(proven.iter().map(|class| &class.name));
            return Err(SelectionError::NoClass {
                class: class.clone(),
                declared,
            });
        }
    }
    let travels = arguments.transport.is_some() || arguments.through.is_some();
    let asked = |class: &ClassPlan| {
        (arguments.class.is_empty() || arguments.class.contains(&class.name))
            && (class.proof.front.is_some() || !travels)
    };
    let mut classes: Vec<ClassPlan> = proven.into_iter().filter(asked).collect();
    if classes.is_empty() {
        return Err(SelectionError::NoFront);
    }
    let declared = joined(classes.iter().flat_map(|class| &class.proof.scenarios));
    for scenario in &arguments.scenario {
        if !classes
            .iter()
            .any(|class| class.proof.scenarios.contains(scenario))
        {
            return Err(SelectionError::NoScenario {
                scenario: *scenario,
                declared,
            });
        }
    }
    // A class that only others are asked of has no part in the run.
    let halves = halves(arguments);
    let is_run = |scenario: &ScenarioId| asks_for(arguments, *scenario) && !halves.of(*scenario).is_empty();
    let part = !arguments.scenario.is_empty() || arguments.select.is_some();
    classes.retain(|class| !part || class.proof.scenarios.iter().any(is_run));
    match (&arguments.select, classes.is_empty()) {
        (Some(select), true) => Err(SelectionError::NothingMeant {
            text: select.text().to_owned(),
            declared,
        }),
        _ => Ok(classes),
    }
}

/// Whether the arguments mean this scenario, where a class declares it.
fn asks_for(arguments: &ProveArguments, scenario: ScenarioId) -> bool {
    let named = arguments.scenario.is_empty() || arguments.scenario.contains(&scenario);
    named
        && arguments
            .select
            .as_ref()
            .is_none_or(|select| select.means(scenario))
}

fn scenarios(
    arguments: &ProveArguments,
    classes: &[ClassPlan],
) -> Result<Vec<(ClassName, ScenarioId)>, SelectionError> {
    let halves = halves(arguments);
    Ok(classes
        .iter()
        .flat_map(|class| {
            class
                .proof
                .scenarios
                .iter()
                .map(|scenario| (class.name.clone(), *scenario))
        })
        .filter(|(_, scenario)| asks_for(arguments, *scenario) && !halves.of(*scenario).is_empty())
        .collect())
}

/// Small enough to be typed again, and to pass through any JSON reader unrounded.
fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 32
}

fn joined<T: ToString>(names: impl Iterator<Item = T>) -> String {
    names.map(|name| name.to_string()).collect::<Vec<_>>().join(", ")
}
