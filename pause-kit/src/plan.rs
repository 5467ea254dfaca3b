//! What a run is asked to do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use fence_core::{ClassName, TierName, Ttl};

use crate::evidence::ProvenBy;
use crate::history::Half;
use crate::scenario::ScenarioId;
use crate::schedule::Schedule;
use crate::target::{ClassProof, Guard, Target, Transport};

/// Everything that a run needs to know beforehand.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `fence` executable: `{fence}` in commands, and its folder is `{bin}`.
    pub fence: PathBuf,
    /// When the run began: RFC 3339, UTC.
    pub started: String,
    /// The command that runs the same again.
    pub again: String,
    /// SHA-256 of the guard's SQL.
    pub guard_sha256: String,
    /// Versions that the kit cannot find out for itself, such as that of `fence`.
    pub versions: BTreeMap<String, String>,
    /// The classes under proof.
    pub classes: Vec<ClassPlan>,
    /// What is drawn from the seed; each of its slots names one of `classes`.
    pub schedule: Schedule,
    /// Which halves are run.
    pub halves: Halves,
    /// How requests travel to the resources that have a front.
    pub transport: Transport,
}

/// One class under proof.
#[derive(Clone, Debug)]
pub struct ClassPlan {
    /// The class.
    pub name: ClassName,
    /// The tier whose lock store grants it.
    pub tier: TierName,
    /// Its time to live.
    pub ttl: Ttl,
    /// Its guard's form.
    pub guard: Guard,
    /// How it is proven.
    pub proof: ClassProof,
    /// The digests of that, which the evidence keeps.
    pub proven_by: ProvenBy,
    /// The resource and its set-up; its paths are absolute.
    pub target: Arc<Target>,
}

/// Which halves of each scenario are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halves {
    /// Both, and of a control the one that it has: a proof.
    Pair,
    /// The guarded one alone: whether the guard raises false alarms.
    GuardedOnly,
    /// The defeated one alone: what happens without the guard. A control has none.
    DefeatedOnly,
}

impl Halves {
    /// The halves of this scenario that are run.
    pub fn of(self, scenario: ScenarioId) -> &'static [Half] {
        match (self, scenario.is_control()) {
            (Halves::Pair, false) => &[Half::Guarded, Half::Defeated],
            (Halves::Pair | Halves::GuardedOnly, _) => &[Half::Guarded],
            (Halves::DefeatedOnly, false) => &[Half::Defeated],
            (Halves::DefeatedOnly, true) => &[],
        }
    }
}
