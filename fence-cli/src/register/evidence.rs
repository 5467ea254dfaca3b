//! The evidence as the registers see it: each class's proof, once it was judged again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fence_core::{ClassName, Proof, ProofOutcome};
use pause_kit::evidence::{Evidence, Verdict};
use pause_kit::review::{Bundle, ClassReview, Doubt, OpenError};

use super::calendar;
use crate::exit;

/// The evidence, judged again.
pub(super) enum Seen {
    /// There is none that could be judged.
    Nothing(Nothing),
    /// There is some.
    Something(Box<Something>),
}

/// Why there is no evidence.
pub(super) struct Nothing {
    /// The file to look at.
    pub(super) file: PathBuf,
    /// The line in it.
    pub(super) line: Option<usize>,
    /// What is wrong, in words.
    pub(super) what: String,
}

/// Evidence that was judged again.
pub(super) struct Something {
    /// The folder.
    pub(super) bundle: Bundle,
    /// The proofs, by class.
    pub(super) proofs: BTreeMap<ClassName, Proof>,
    /// What does not agree, by class.
    pub(super) doubts: BTreeMap<ClassName, Vec<Doubt>>,
}

impl Seen {
    /// Reads the folder and judges every history in it that belongs to one of these classes.
    pub(super) fn judge_again<'a>(folder: &Path, classes: impl Iterator<Item = &'a ClassName>) -> Seen {
        let bundle = match Bundle::open(folder) {
            Ok(bundle) => bundle,
            Err(error) => return Seen::Nothing(Nothing::of(&error)),
        };
        let Some(made_on) = calendar::day_of_instant(&bundle.evidence().started) else {
            return Seen::Nothing(Nothing {
                file: bundle.file(),
                line: bundle.line_of("started"),
                what: format!("started is no time: {:?}", bundle.evidence().started),
            });
        };
        let mut proofs = BTreeMap::new();
        let mut doubts = BTreeMap::new();
        for class in classes {
            let Some(review) = bundle.judge_again(class) else {
                continue;
            };
            let proof = Proof {
                made_on,
                guard: guard(bundle.evidence(), class),
                scenarios: outcomes(&review),
            };
            proofs.insert(class.clone(), proof);
            doubts.insert(class.clone(), review.doubts);
        }
        Seen::Something(Box::new(Something {
            bundle,
            proofs,
            doubts,
        }))
    }
}

impl Nothing {
    fn of(error: &OpenError) -> Nothing {
        let (file, line) = error.place();
        Nothing {
            file: file.to_owned(),
            line,
            what: exit::chain(error),
        }
    }
}

/// The digest of the class's own guard; that of all guards, where the evidence does not keep each.
fn guard(evidence: &Evidence, class: &ClassName) -> String {
    let own = evidence.proven_by(class).map(|proven| proven.guard_sql.clone());
    own.unwrap_or_else(|| evidence.guard.sha256.clone())
}

fn outcomes(review: &ClassReview) -> BTreeMap<String, ProofOutcome> {
    let outcome = |verdict: &Option<Verdict>| match verdict {
        Some(Verdict::Held) => ProofOutcome::Held,
        Some(Verdict::Proven) => ProofOutcome::Proven,
        Some(Verdict::Inconclusive) => ProofOutcome::Inconclusive,
        Some(Verdict::Violated) => ProofOutcome::Violated,
        None => ProofOutcome::NotBorneOut,
    };
    let scenarios = review.scenarios.iter();
    scenarios
        .map(|(id, verdict)| (id.to_string(), outcome(verdict)))
        .collect()
}
