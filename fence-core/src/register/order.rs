//! Whether the registers are in order on a day.

use std::collections::BTreeMap;

use super::day::{Day, Days};
use super::risk::RiskRegister;
use crate::class::{Enforcement, Purpose};
use crate::name::ClassName;

/// A class, as far as the registers ask about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// What a double holder does.
    pub purpose: Purpose,
    /// What is claimed to refuse a stale holder.
    pub enforcement: Enforcement,
    /// What its proof must be. `None` when nothing says how it is proven.
    pub demand: Option<Demand>,
}

/// What the proof of a fenced class must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The digest of the guard as it is now.
    pub guard: String,
    /// The scenarios that it is proven by.
    pub scenarios: Vec<String>,
    /// How old it may be.
    pub max_age: Days,
}

/// A proof, once its histories were judged again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The day on which it was run.
    pub made_on: Day,
    /// The digest of the guard that was proven.
    pub guard: String,
    /// What came out, by scenario.
    pub scenarios: BTreeMap<String, ProofOutcome>,
}

/// What one scenario shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProofOutcome {
    /// Proven, and its histories say so.
    Proven,
    /// A control, which must hold and proves nothing by itself.
    Held,
    /// Nothing was shown either way.
    Inconclusive,
    /// A stale write was let in.
    Violated,
    /// What is claimed is not what its histories show.
    NotBorneOut,
}

/// What is not in order with a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disorder {
    /// It is called fenced, and nothing says how that is proven. Declare the proof, or call it advisory.
    NoDemand,
    /// It is called fenced, and there is no proof of it. Run one.
    NoProof,
    /// Its proof is dated later than today. Look at the clock of the machine that ran it, then run it again.
    FromTheFuture {
        /// The day of the proof.
        made_on: Day,
    },
    /// Its proof is too old. Run it again.
    Stale {
        /// How old it is.
        age: Days,
        /// How old it may be.
        max_age: Days,
    },
    /// The guard is another one than the proven one. Run the proof again, or put the proven guard back.
    OtherGuard {
        /// The digest that was proven.
        proven: String,
        /// The digest now.
        now: String,
    },
    /// A scenario was not run. Run the whole proof.
    ScenarioMissing {
        /// The scenario.
        scenario: String,
    },
    /// Only controls were run, which prove nothing by themselves. Declare and run a scenario that has a twin.
    OnlyControls,
    /// A scenario does not show that the class is fenced. Look at its evidence.
    NotProven {
        /// The scenario.
        scenario: String,
        /// What it shows; neither [`ProofOutcome::Proven`] nor [`ProofOutcome::Held`].
        outcome: ProofOutcome,
    },
    /// A double holder corrupts, nothing refuses it, and nobody has accepted that. Fence it, or accept the risk.
    NotOnRegister,
    /// The review of the accepted risk is overdue. Review it, and set the next day.
    ReviewPassed {
        /// The day by which it was due.
        review_by: Day,
    },
    /// The risk is said to have been accepted on a day that has not come yet. Correct the day.
    AcceptedInTheFuture {
        /// That day.
        accepted_on: Day,
    },
    /// It is on the register and declared nowhere. Correct the name, or take it off.
    Unknown,
    /// It is on the register and called fenced. Take it off, or call it advisory.
    RegisteredThoughFenced,
    /// It is on the register, and a double holder of it only wastes work. Take it off.
    RegisteredThoughEfficiency,
}

/// All that is not in order on this day, by class. Nothing, when everything is.
#[must_use]
pub fn disorders(
    declared: &BTreeMap<ClassName, Declared>,
    proofs: &BTreeMap<ClassName, Proof>,
    register: &RiskRegister,
    today: Day,
) -> Vec<(ClassName, Disorder)> {
    let mut found = Vec::new();
    for (name, class) in declared {
        let of_class = match (class.enforcement, class.purpose) {
            (Enforcement::Fenced, _) => fenced(class, proofs.get(name), today),
            (Enforcement::Advisory, Purpose::Correctness) if register.of(name).is_none() => {
                vec![Disorder::NotOnRegister]
            }
            (Enforcement::Advisory, _) => Vec::new(),
        };
        found.extend(of_class.into_iter().map(|disorder| (name.clone(), disorder)));
    }
    for risk in register.risks() {
        let misplaced = match declared.get(risk.class()) {
            None => Some(Disorder::Unknown),
            Some(class) if class.enforcement == Enforcement::Fenced => Some(Disorder::RegisteredThoughFenced),
            Some(class) if class.purpose == Purpose::Efficiency => Some(Disorder::RegisteredThoughEfficiency),
            Some(_) => None,
        };
        let parts = risk.parts();
        let passed = (parts.review_by < today).then_some(Disorder::ReviewPassed {
            review_by: parts.review_by,
        });
        let early = (parts.accepted_on > today).then_some(Disorder::AcceptedInTheFuture {
            accepted_on: parts.accepted_on,
        });
        let of_risk = misplaced.into_iter().chain(passed).chain(early);
        found.extend(of_risk.map(|disorder| (risk.class().clone(), disorder)));
    }
    found
}

fn fenced(class: &Declared, proof: Option<&Proof>, today: Day) -> Vec<Disorder> {
    let Some(demand) = &class.demand else {
        return vec![Disorder::NoDemand];
    };
    let Some(proof) = proof else {
        return vec![Disorder::NoProof];
    };
    let mut found = Vec::new();
    match today.days_after(proof.made_on) {
        None => found.push(Disorder::FromTheFuture {
            made_on: proof.made_on,
        }),
        Some(age) if age > demand.max_age => found.push(Disorder::Stale {
            age,
            max_age: demand.max_age,
        }),
        Some(_) => {}
    }
    if proof.guard != demand.guard {
        found.push(Disorder::OtherGuard {
            proven: proof.guard.clone(),
            now: demand.guard.clone(),
        });
    }
    let missing = demand
        .scenarios
        .iter()
        .filter(|scenario| !proof.scenarios.contains_key(*scenario));
    found.extend(missing.map(|scenario| Disorder::ScenarioMissing {
        scenario: scenario.clone(),
    }));
    // Also of a scenario that is no longer asked for: what was seen to be violated was seen.
    let unproven = proof
        .scenarios
        .iter()
        .filter(|(_, outcome)| !matches!(outcome, ProofOutcome::Proven | ProofOutcome::Held));
    found.extend(unproven.map(|(scenario, outcome)| Disorder::NotProven {
        scenario: scenario.clone(),
        outcome: *outcome,
    }));
    let mut outcomes = proof.scenarios.values();
    if !proof.scenarios.is_empty() && outcomes.all(|outcome| *outcome == ProofOutcome::Held) {
        found.push(Disorder::OnlyControls);
    }
    found
}
