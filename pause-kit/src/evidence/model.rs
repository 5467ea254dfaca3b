//! `evidence.json`.

use std::collections::BTreeMap;
use std::fmt;

use fence_core::{ClassName, Token};
use serde::{Deserialize, Serialize};

use crate::scenario::ScenarioId;
use crate::stopper::StoppedBy;
use crate::target::{Guard, Transport};

/// The form of `evidence.json`; another number is another form.
pub const SCHEMA: u32 = 2;

/// What a run did and found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The seed from which everything left to chance was drawn.
    pub seed: u64,
    /// SHA-256 of what was drawn.
    pub schedule: String,
    /// When the run began: RFC 3339, UTC, by the wall clock. Nothing is judged by it.
    pub started: String,
    /// The command that runs the same again. Nothing in evidence that was written before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// Versions of `fence`, `postgres`, `etcd` and `kernel`, of `nginx` where requests went through it, and the project's `commit`
    /// where it has one, `-dirty` where the files that were proven are not just those.
    pub versions: BTreeMap<String, String>,
    /// How requests travelled to the resources that have a front: in HTTP/1.1, through nothing else, where it is left out.
    #[serde(default)]
    pub transport: Transport,
    /// What guard was proven.
    pub guard: GuardDigest,
    /// The classes, with the verdict over all scenarios of each.
    pub classes: Vec<ClassEvidence>,
    /// The scenarios, in order of class and name.
    pub scenarios: Vec<ScenarioEvidence>,
}

impl Evidence {
    /// The text of `evidence.json`.
    pub fn to_text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("evidence has string keys only");
        text.push(b'\n');
        text
    }

    /// What this class was proven by, where that was kept.
    pub fn proven_by(&self, class: &ClassName) -> Option<&ProvenBy> {
        let mut listed = self.classes.iter().filter(|listed| listed.name == *class);
        listed.next()?.proven_by.as_ref()
    }

    /// The names of the histories beside it, in the order of the scenarios.
    pub fn histories(&self) -> Vec<&str> {
        self.files().map(|file| file.history.as_str()).collect()
    }

    /// The histories beside it with their digests, in the order of the scenarios.
    pub fn files(&self) -> impl Iterator<Item = &HistoryFile> {
        self.scenarios.iter().flat_map(|scenario| {
            let on = scenario.on.as_ref().map(|half| &half.history);
            let defeated = scenario.defeated.as_ref().map(|half| &half.history);
            on.into_iter().chain(defeated)
        })
    }
}

/// A digest of the guard's SQL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardDigest {
    /// SHA-256 over the names and contents of the guard's SQL files, in name order.
    pub sha256: String,
}

/// One class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassEvidence {
    /// The class.
    pub name: ClassName,
    /// Its guard's form.
    pub guard: Guard,
    /// The worst verdict among its scenarios; a class of which only controls were run is held and not proven.
    pub verdict: Verdict,
    /// How it was proven. Nothing in evidence that was written before this was kept: that tells no change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proven_by: Option<ProvenBy>,
}

/// What a class was proven by, as digests: SHA-256 in hexadecimal. Another digest is another proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenBy {
    /// Over what the declaration says of it: its proof, its time to live, its tier, its guard's form, and its target.
    /// Comments, layout and the order of keys have no part in it.
    pub declared: String,
    /// Over the names and contents of its own guard's SQL files, in name order.
    pub guard_sql: String,
    /// Over the bytes of the SQL that defeats its guard, where it is defeated by SQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defeat_sql: Option<String>,
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A control, or a guarded half that was run alone: everything held. That proves nothing by itself.
    Held,
    /// Every attempt was answered as it must be, and the same schedule without the guard, or without what the scenario leaves
    /// out, went wrong.
    Proven,
    /// Void, blind, unknown or not finished: nothing was shown either way.
    Inconclusive,
    /// An invariant was broken.
    Violated,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Held => "held",
            Verdict::Proven => "proven",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Violated => "violated",
        })
    }
}

/// One scenario, both halves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioEvidence {
    /// The scenario.
    pub id: ScenarioId,
    /// The class.
    pub class: ClassName,
    /// The verdict over both halves.
    pub verdict: Verdict,
    /// Why, where the verdict is not proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The guarded half; left out when only the defeated one was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<GuardedHalf>,
    /// The defeated half, or, where the scenario leaves out something else than the guard, the half without that. A control
    /// has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defeated: Option<DefeatedHalf>,
    /// Each process that was stopped, in both halves.
    pub stops: Vec<StopEvidence>,
}

/// The half with the guard as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardedHalf {
    /// What became of each attempt, in their order: `REF`, `LEG`, `BLK`, `UNK`, `CLO` or `CON`, or `?` where it cannot be
    /// told; joined by `; `, such as `LEG; REF; LEG`. Nothing when it can be told of none.
    pub outcome: Option<String>,
    /// The invariants that broke; left out when none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violated: Option<Vec<InvariantBroken>>,
    /// Its history.
    #[serde(flatten)]
    pub history: HistoryFile,
    /// How the last attempt that was refused was refused. Every refusal is judged; this one is shown.
    pub refusal: Option<RefusalSeen>,
}

/// The half without its guard, or without what else the scenario leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefeatedHalf {
    /// The invariants that broke; nothing when the half stayed clean.
    pub violated: Option<Vec<InvariantBroken>>,
    /// The corruption in plain words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corruption: Option<String>,
    /// Its history.
    #[serde(flatten)]
    pub history: HistoryFile,
}

/// An invariant that was broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvariantBroken {
    /// Its number, 1 to 16. Nothing for the agreement of the judge's two checks and for lost updates.
    pub invariant: Option<u8>,
    /// Its name.
    pub name: String,
    /// What happened, in plain words.
    pub why: String,
    /// The lines of the history that show it; the header is line 1.
    pub lines: Vec<usize>,
}

/// A history beside `evidence.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryFile {
    /// The file's name.
    pub history: String,
    /// The file's SHA-256 in hexadecimal.
    pub sha256: String,
}

/// A refusal, as it went over the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalSeen {
    /// The token presented, from the refusal's DETAIL.
    pub presented: Option<Token>,
    /// The mark it met, from the refusal's DETAIL.
    pub seen: Option<Token>,
    /// The SQLSTATE that the database answered.
    pub sqlstate: Option<String>,
    /// The HTTP status that the resource answered, where there is one between holder and database.
    pub status: Option<u16>,
}

/// One confirmed stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StopEvidence {
    /// `on` or `defeated`.
    pub half: String,
    /// Who was stopped, such as `H1` or `R`.
    pub target: String,
    /// The process at the root of what was stopped.
    pub pid: u32,
    /// How many tasks were seen stopped, in the whole tree.
    pub tasks: usize,
    /// Milliseconds from the signal until every task was seen stopped.
    pub confirmed_ms: f64,
    /// CPU time of the tree when it was confirmed, in nanoseconds.
    pub cpu_before: u64,
    /// CPU time of the same tasks just before they were resumed; equal to `cpu_before` when nothing ran.
    pub cpu_after: u64,
    /// Milliseconds from the confirmed stop until the store ended the holder's lease.
    pub lease_ended_ms: Option<f64>,
    /// Milliseconds from the confirmed stop until it was resumed.
    pub resumed_ms: f64,
    /// By which means it was stopped. Where nothing is said, by signals.
    #[serde(default, skip_serializing_if = "StoppedBy::is_signal")]
    pub by: StoppedBy,
}
