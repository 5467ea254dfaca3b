//! The cases by name, and how they went.

use std::fmt;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};

use super::bench::{Bench, BenchError, Place};
use super::cases::ALL;

/// One thing that every store must do.
#[derive(Clone, Copy)]
pub struct Case {
    name: &'static str,
    asserts: &'static str,
    play: Play,
}

pub(super) type Outcome = Result<(), Failure>;
pub(super) type Play = for<'a> fn(&'a dyn Place) -> BoxFuture<'a, Outcome>;

/// A case that did not go well.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The store broke its promise. Do not use it.
    #[error("{what}")]
    Broken {
        /// What it did.
        what: String,
    },
    /// The bench could not play the case, which counts as little as a pass. Mend the bench.
    #[error("the bench failed")]
    Bench(#[source] BenchError),
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        Failure::Bench(error)
    }
}

impl Case {
    pub(super) const fn new(name: &'static str, asserts: &'static str, play: Play) -> Case {
        Case { name, asserts, play }
    }

    /// The case's name, such as `release-own-only`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it asserts, in a sentence.
    pub fn asserts(&self) -> &'static str {
        self.asserts
    }

    /// Plays the case in a place of its own.
    ///
    /// # Errors
    ///
    /// [`Failure`] when the store broke its promise or the bench could not play.
    pub async fn play(&self, bench: &dyn Bench) -> Result<(), Failure> {
        let place = bench.place().await?;
        (self.play)(place.as_ref()).await
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Every case of the suite.
pub fn cases() -> &'static [Case] {
    ALL
}

/// How each case of the suite went on one store.
#[derive(Debug)]
#[must_use]
pub struct Report {
    outcomes: Vec<(Case, Outcome)>,
}

impl Report {
    /// Every case and how it went.
    pub fn outcomes(&self) -> &[(Case, Result<(), Failure>)] {
        &self.outcomes
    }

    /// Whether every case was played and went well.
    pub fn conforms(&self) -> bool {
        self.outcomes.iter().all(|(_, outcome)| outcome.is_ok())
    }

    /// The names of the cases in which the store broke its promise.
    pub fn broken(&self) -> Vec<&'static str> {
        self.outcomes
            .iter()
            .filter(|(_, outcome)| matches!(outcome, Err(Failure::Broken { .. })))
            .map(|(case, _)| case.name)
            .collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (case, outcome) in &self.outcomes {
            match outcome {
                Ok(()) => writeln!(f, "held    {}: {}", case.name, case.asserts)?,
                Err(Failure::Broken { what }) => writeln!(f, "broken  {}: {what}", case.name)?,
                Err(Failure::Bench(error)) => writeln!(f, "unplayed {}: {error}", case.name)?,
            }
        }
        Ok(())
    }
}

/// Plays every case, as many at the same time as the bench allows, each in a place of its own.
pub async fn run(bench: &dyn Bench) -> Report {
    let at_once = bench.at_once().clamp(1, cases().len());
    let mut outcomes: Vec<(usize, Case, Outcome)> = stream::iter(cases().iter().copied().enumerate())
        .map(|(number, case)| async move { (number, case, case.play(bench).await) })
        .buffer_unordered(at_once)
        .collect()
        .await;
    outcomes.sort_by_key(|(number, ..)| *number);
    Report {
        outcomes: outcomes
            .into_iter()
            .map(|(_, case, outcome)| (case, outcome))
            .collect(),
    }
}

/// Plays the case of this name; none when the suite has no such case.
pub async fn run_one(bench: &dyn Bench, name: &str) -> Option<Result<(), Failure>> {
    let case = cases().iter().find(|case| case.name == name)?;
    Some(case.play(bench).await)
}
