//! The check: what is declared, what is accepted and what is proven, against each other.

use std::collections::BTreeMap;
use std::path::Path;

use fence_core::{ClassName, Day, Declared, Demand, Enforcement, Proof, Purpose, disorders};

use super::calendar;
use super::evidence::Seen;
use super::file::RegisterFile;
use super::finding::{Ground, findings};
use super::now::Now;
use crate::config::{Class, Manifest};
use crate::guard::GuardError;

pub(super) use super::finding::Finding;

/// What the check found.
pub(super) struct Outcome {
    /// The day that it was judged by.
    pub(super) today: Day,
    /// Every class that is declared, and how it stands.
    pub(super) classes: Vec<Standing>,
    /// What is not in order.
    pub(super) findings: Vec<Finding>,
}

/// How a class stands.
pub(super) struct Standing {
    pub(super) class: ClassName,
    pub(super) purpose: &'static str,
    pub(super) enforcement: &'static str,
    /// In words.
    pub(super) state: String,
}

/// Checks everything on this day.
pub(super) fn check(
    manifest: &Manifest,
    register: &RegisterFile,
    folder: &Path,
    today: Day,
) -> Result<Outcome, GuardError> {
    let seen = Seen::judge_again(folder, manifest.classes.keys());
    let nothing = BTreeMap::new();
    let proofs = match &seen {
        Seen::Nothing(_) => &nothing,
        Seen::Something(something) => &something.proofs,
    };
    let now = Now::of(manifest, proofs)?;
    let declared: BTreeMap<ClassName, Declared> = manifest
        .classes
        .iter()
        .map(|(name, class)| (name.clone(), declared(class, now.guard(name, &seen))))
        .collect();
    let ground = Ground {
        manifest,
        register,
        seen: &seen,
        now: &now,
        today,
    };
    let disorders = disorders(&declared, proofs, &register.register, today);
    let findings = findings(&ground, disorders);
    let standing = |(name, class): (&ClassName, &Class)| Standing {
        class: name.clone(),
        purpose: match class.purpose {
            Purpose::Correctness => "correctness",
            Purpose::Efficiency => "efficiency",
        },
        enforcement: match class.enforcement {
            Enforcement::Fenced => "fenced",
            Enforcement::Advisory => "advisory",
        },
        state: match findings.iter().filter(|finding| finding.class == *name).count() {
            0 => state(class, proofs.get(name), register, name, today),
            1 => "not in order: 1 finding".to_owned(),
            count => format!("not in order: {count} findings"),
        },
    };
    let classes = manifest.classes.iter().map(standing).collect();
    Ok(Outcome {
        today,
        classes,
        findings,
    })
}

fn declared(class: &Class, guard: &str) -> Declared {
    let demand = class.proof.as_ref().map(|proof| Demand {
        guard: guard.to_owned(),
        scenarios: proof.scenarios.iter().map(ToString::to_string).collect(),
        max_age: class.proof_max_age(),
    });
    Declared {
        purpose: class.purpose,
        enforcement: class.enforcement,
        demand,
    }
}

/// How a class stands with which everything is in order.
fn state(
    class: &Class,
    proof: Option<&Proof>,
    register: &RegisterFile,
    name: &ClassName,
    today: Day,
) -> String {
    if let (Enforcement::Fenced, Some(proof)) = (class.enforcement, proof) {
        let until = calendar::written(proof.made_on.plus(class.proof_max_age()));
        let scenarios: Vec<&str> = proof.scenarios.keys().map(String::as_str).collect();
        let made_on = calendar::written(proof.made_on);
        return format!(
            "proven on {made_on} by {}; good until {until}",
            scenarios.join(", ")
        );
    }
    match register.register.of(name) {
        Some(risk) => {
            let parts = risk.parts();
            let left = parts.review_by.days_after(today);
            let left = left.map_or("overdue".to_owned(), |left| format!("{left} left"));
            let review_by = calendar::written(parts.review_by);
            format!("accepted by {}, review by {review_by}, {left}", parts.owner)
        }
        None => "a double holder only wastes work".to_owned(),
    }
}
