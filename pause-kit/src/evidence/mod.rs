//! What a run leaves behind, for a stranger to judge again.
//!
//! A folder with `evidence.json` and one history of JSON lines for each half; each history's SHA-256 stands in
//! `evidence.json`. The folder is replaced whole or not at all: see [`Publication`].

mod model;
mod publish;

pub use model::{
    ClassEvidence, DefeatedHalf, Evidence, GuardDigest, GuardedHalf, HistoryFile, InvariantBroken, ProvenBy,
    RefusalSeen, SCHEMA, ScenarioEvidence, StopEvidence, Verdict,
};
pub use publish::{Place, Publication, PublishError};
