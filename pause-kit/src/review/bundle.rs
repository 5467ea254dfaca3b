//! A folder of evidence, and what it shows of one class.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fence_core::ClassName;

use super::doubt::{Doubt, DoubtKind};
use super::lines::Lines;
use super::scenario;
use crate::evidence::{Evidence, SCHEMA, ScenarioEvidence, Verdict};
use crate::scenario::ScenarioId;

/// A folder of evidence whose `evidence.json` could be read.
#[derive(Clone, Debug)]
pub struct Bundle {
    pub(super) folder: PathBuf,
    pub(super) lines: Lines,
    pub(super) evidence: Evidence,
}

/// What a folder of evidence shows of one class.
#[derive(Debug)]
pub struct ClassReview {
    /// The verdict over each scenario, as the histories bear it out. `None` where they do not: a doubt says why.
    pub scenarios: BTreeMap<ScenarioId, Option<Verdict>>,
    /// Everything that does not agree.
    pub doubts: Vec<Doubt>,
}

impl Bundle {
    /// Reads the folder's `evidence.json`. The histories are read when a class is judged.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when there is none, or none that this version understands.
    pub fn open(folder: &Path) -> Result<Bundle, OpenError> {
        let file = folder.join("evidence.json");
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::NotThere { file });
            }
            Err(source) => return Err(OpenError::Read { file, source }),
        };
        let evidence: Evidence = match serde_json::from_str(&text) {
            Ok(evidence) => evidence,
            Err(source) => {
                let line = source.line();
                return Err(OpenError::Malformed { file, line, source });
            }
        };
        let lines = Lines::new(text);
        if evidence.schema != SCHEMA {
            let (line, schema) = (lines.of(&["\"schema\""]), evidence.schema);
            return Err(OpenError::Schema { file, line, schema });
        }
        Ok(Bundle {
            folder: folder.to_owned(),
            lines,
            evidence,
        })
    }

    /// What `evidence.json` says. Believe of it what [`judge_again`](Bundle::judge_again) does not doubt.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// `evidence.json` itself.
    pub fn file(&self) -> PathBuf {
        self.folder.join("evidence.json")
    }

    /// The line of `evidence.json` on which the member `name` at its top stands, from 1.
    pub fn line_of(&self, name: &str) -> Option<usize> {
        self.lines.of(&[&format!("\"{name}\":")])
    }

    /// The line of `evidence.json` on which one of its scenarios begins, from 1.
    pub fn line_of_scenario(&self, scenario: &ScenarioEvidence) -> Option<usize> {
        self.lines.of_scenario(scenario)
    }

    /// Judges every history of the class again. Nothing when the folder does not speak of it.
    pub fn judge_again(&self, class: &ClassName) -> Option<ClassReview> {
        let listed: Vec<_> = self
            .evidence
            .classes
            .iter()
            .filter(|listed| listed.name == *class)
            .collect();
        let of_class = self.evidence.scenarios.iter();
        let of_class: Vec<_> = of_class.filter(|scenario| scenario.class == *class).collect();
        if listed.is_empty() && of_class.is_empty() {
            return None;
        }
        let mut review = ClassReview {
            scenarios: BTreeMap::new(),
            doubts: Vec::new(),
        };
        for scenario in &of_class {
            let (verdict, doubts) = scenario::judge_again(self, scenario);
            if review.scenarios.insert(scenario.id, verdict).is_some() {
                review.scenarios.insert(scenario.id, None);
                let twice = DoubtKind::ScenarioTwice;
                let line = self.lines.of_scenario(scenario);
                review.doubts.push(self.doubt(Some(scenario.id), line, twice));
            }
            review.doubts.extend(doubts);
        }
        let worst = of_class.iter().map(|scenario| scenario.verdict).max();
        let [one] = listed[..] else {
            let line = self.line_of("classes");
            review
                .doubts
                .push(self.doubt(None, line, DoubtKind::ClassNotOnce));
            return Some(review);
        };
        if worst != Some(one.verdict) {
            let line = self
                .lines
                .of(&[&format!("\"name\": \"{class}\""), "\"verdict\":"]);
            let claimed = one.verdict.to_string();
            let found = worst.map_or("nothing".to_owned(), |worst| worst.to_string());
            let kind = DoubtKind::differs("the class's verdict", claimed, found);
            review.doubts.push(self.doubt(None, line, kind));
        }
        Some(review)
    }

    /// A doubt about what stands in `evidence.json`.
    pub(super) fn doubt(&self, scenario: Option<ScenarioId>, line: Option<usize>, kind: DoubtKind) -> Doubt {
        Doubt {
            scenario,
            file: self.file(),
            line,
            kind,
        }
    }
}

/// There is no evidence that could be judged. Run `fence prove`, or name the folder that holds it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none.
    #[error("there is no {}", file.display())]
    NotThere {
        /// What was looked for.
        file: PathBuf,
    },
    /// It cannot be read. Make it readable.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is no evidence, or only a part of one.
    #[error("it is no whole evidence")]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        source: serde_json::Error,
    },
    /// It is of a form that this version does not know. Judge it with the version that wrote it.
    #[error("it says schema {schema}, which is not known here")]
    Schema {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: Option<usize>,
        /// The form that it claims.
        schema: u32,
    },
}

impl OpenError {
    /// The file at fault, and the line in it where there is one.
    pub fn place(&self) -> (&Path, Option<usize>) {
        match self {
            OpenError::NotThere { file } | OpenError::Read { file, .. } => (file, None),
            OpenError::Malformed { file, line, .. } => (file, Some(*line)),
            OpenError::Schema { file, line, .. } => (file, *line),
        }
    }
}
