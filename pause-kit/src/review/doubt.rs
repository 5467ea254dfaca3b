//! What does not agree.

use std::io;
use std::path::PathBuf;

use crate::evidence::Verdict;
use crate::history::ReadError;
use crate::scenario::ScenarioId;

/// A place at which the evidence is not what its histories bear out.
#[derive(Debug)]
pub struct Doubt {
    /// The scenario, where it is about one.
    pub scenario: Option<ScenarioId>,
    /// The file to look at.
    pub file: PathBuf,
    /// The line in it, from 1, where there is one.
    pub line: Option<usize>,
    /// What does not agree.
    pub kind: DoubtKind,
}

/// What does not agree. Whatever it is, the scenario must be run again before anybody relies on it.
#[derive(Debug, thiserror::Error)]
pub enum DoubtKind {
    /// A half was not run, or is not listed. A run with the guard off alone is no proof.
    #[error("the {half} half is missing")]
    HalfMissing {
        /// `guarded` or `defeated`.
        half: &'static str,
    },
    /// A control lists a half without its guard, and has none.
    #[error("a control has no half without its guard")]
    TwinOfControl,
    /// A history is named by something else than a file's bare name.
    #[error("{name:?} is not the name of a file in the folder")]
    NoFileName {
        /// What stands there.
        name: String,
    },
    /// A history is missing or cannot be read.
    #[error("the history cannot be read")]
    Read(#[source] io::Error),
    /// A history is no whole history.
    #[error("the history is not whole")]
    Malformed(#[source] ReadError),
    /// A history is not the file whose digest was listed.
    #[error("the history's SHA-256 is {found}; listed is {listed}")]
    Digest {
        /// What `evidence.json` lists.
        listed: String,
        /// What the file has.
        found: String,
    },
    /// A value is not what the histories show.
    #[error("{field} is said to be {claimed}; the history shows {found}")]
    Differs {
        /// What is compared.
        field: String,
        /// What is said.
        claimed: String,
        /// What the history shows.
        found: String,
    },
    /// A history's header is not that of its scenario.
    #[error("{field} must be {demanded}; the header says {found}")]
    Header {
        /// What is compared.
        field: &'static str,
        /// What the scenario demands, or the rest of the history shows.
        demanded: String,
        /// What the header says.
        found: String,
    },
    /// The verdict is not what the two histories show.
    #[error("it is said to be {claimed}; judged again it is {found}{}", because(.why))]
    Verdict {
        /// What is said.
        claimed: Verdict,
        /// What the judge says now.
        found: Verdict,
        /// Why, where it is not proven.
        why: Option<String>,
    },
    /// One scenario is listed twice for the class.
    #[error("the scenario is listed twice")]
    ScenarioTwice,
    /// The class has scenarios and no verdict, or more than one.
    #[error("the class is not listed exactly once")]
    ClassNotOnce,
}

impl DoubtKind {
    pub(super) fn differs(
        field: impl Into<String>,
        claimed: impl Into<String>,
        found: impl Into<String>,
    ) -> DoubtKind {
        DoubtKind::Differs {
            field: field.into(),
            claimed: claimed.into(),
            found: found.into(),
        }
    }
}

fn because(why: &Option<String>) -> String {
    why.iter().map(|why| format!(", because {why}")).collect()
}
