//! A folder of evidence, judged again and drawn again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;

use sha2::{Digest, Sha256};

use super::page::Drawing;
use crate::evidence::{HistoryFile, ScenarioEvidence, Verdict};
use crate::history::History;
use crate::review::{Bundle, Doubt, DoubtKind};
use crate::run::{Judged, assemble};

impl Drawing {
    /// Judges a folder again and makes a drawing of it.
    ///
    /// # Errors
    ///
    /// [`RedrawError`] when the histories do not bear out what `evidence.json` says: a picture of it would tell a falsehood.
    pub fn of_bundle(bundle: &Bundle) -> Result<Drawing, RedrawError> {
        let evidence = bundle.evidence();
        let classes = evidence.classes.iter().map(|class| &class.name);
        let classes: BTreeSet<_> = classes
            .chain(evidence.scenarios.iter().map(|scenario| &scenario.class))
            .collect();
        let doubts = classes
            .into_iter()
            .filter_map(|class| bundle.judge_again(class))
            .flat_map(|review| review.doubts);
        // A run without the guard, or a control, has one half; that is judged below.
        let mut doubts = doubts.filter(|doubt| !matches!(doubt.kind, DoubtKind::HalfMissing { .. }));
        if let Some(doubt) = doubts.next() {
            let Doubt { file, line, kind, .. } = doubt;
            let line = line.map(|line| format!(":{line}")).unwrap_or_default();
            let place = format!("{}{line}", file.display());
            return Err(RedrawError::Doubt { place, source: kind });
        }
        let mut histories = BTreeMap::new();
        for scenario in &evidence.scenarios {
            let on = scenario.on.as_ref().map(|half| &half.history);
            let defeated = scenario.defeated.as_ref().map(|half| &half.history);
            let files: Vec<&HistoryFile> = on.into_iter().chain(defeated).collect();
            for file in &files {
                histories.insert(file.history.clone(), read(bundle, file)?);
            }
            if let [file] = files[..] {
                alone(scenario, file, histories[&file.history].clone())?;
            }
        }
        let text = std::fs::read(bundle.file()).map_err(|source| RedrawError::Read {
            file: bundle.file().display().to_string(),
            source,
        })?;
        Ok(Drawing {
            evidence: evidence.clone(),
            sha256: hex::encode(Sha256::digest(text)),
            histories,
        })
    }
}

/// A history of a folder that was reviewed.
fn read(bundle: &Bundle, file: &HistoryFile) -> Result<History, RedrawError> {
    let changed = || RedrawError::Changed {
        file: file.history.clone(),
    };
    let path = bundle.file().with_file_name(&file.history);
    let bytes = std::fs::read(path).map_err(|source| RedrawError::Read {
        file: file.history.clone(),
        source,
    })?;
    if hex::encode(Sha256::digest(&bytes)) != file.sha256 {
        return Err(changed());
    }
    History::read(BufReader::new(bytes.as_slice())).map_err(|_| changed())
}

/// Judges a scenario that has one half.
fn alone(scenario: &ScenarioEvidence, file: &HistoryFile, history: History) -> Result<(), RedrawError> {
    let again = assemble(
        scenario.id,
        &scenario.class,
        vec![(Judged::again(history), file.clone())],
    );
    // What ended a half early stands in no history.
    let verdict = again.verdict == scenario.verdict || scenario.verdict == Verdict::Inconclusive;
    match verdict && again.on == scenario.on && again.defeated == scenario.defeated {
        true => Ok(()),
        false => Err(RedrawError::Differs {
            file: file.history.clone(),
        }),
    }
}

/// A folder of evidence cannot be drawn, because it is not whole or contradicts itself. Run `fence prove` again, or take
/// the folder again from where it was made.
#[derive(Debug, thiserror::Error)]
pub enum RedrawError {
    /// The histories do not bear out what `evidence.json` says.
    #[error("{place}: the evidence contradicts itself")]
    Doubt {
        /// The file, and the line in it where there is one.
        place: String,
        /// What does not agree.
        source: DoubtKind,
    },
    /// A file cannot be read. Make it readable.
    #[error("cannot read {file}")]
    Read {
        /// The file.
        file: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A history is not the one that `evidence.json` lists.
    #[error("{file} is not the history that evidence.json lists")]
    Changed {
        /// The history.
        file: String,
    },
    /// What `evidence.json` says of a half that stands alone is not what its history shows.
    #[error("{file}: judged again, it shows something else than evidence.json says of it")]
    Differs {
        /// The history.
        file: String,
    },
}
