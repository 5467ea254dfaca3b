//! The register that a guarded key is: its mark, and the ids that were written to it.
//!
//! What the search may leave out follows from three things that no order can change. The mark never falls: all that was
//! admitted with one token comes before anything with a larger one. Reads that show all ids so far show more and more: what
//! the first of them shows comes before it, and everything else after. And where reads show the last id alone, nothing is
//! written between a write and the reads that show it.

mod ranks;
mod search;

use crate::history::At;
use crate::linear::{self, Answer, Span};
use search::Register;

/// What an operation does to the register, and what it says about it. Ids are numbers of the caller's.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    /// Admitted: the mark was no larger. Bears an id when it wrote one.
    Admit { token: i64, id: Option<usize> },
    /// Refused as stale: the mark was larger.
    Stale { token: i64 },
    /// A read that showed just these ids.
    Show { ids: Vec<usize> },
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Its line in the history.
    pub(super) line: usize,
    pub(super) began: At,
    /// `None`: it may take effect at any time after its beginning.
    pub(super) ended: Option<At>,
    /// It may also have had no effect. It then bears no id.
    pub(super) optional: bool,
    pub(super) effect: Effect,
}

/// Whether some order of the steps, which stand in the order of their beginnings, explains them all. Reads show all ids so
/// far when `cumulative`, else the last one.
pub(super) fn explain(steps: &[Step], cumulative: bool) -> Answer {
    let spans: Vec<Span> = steps
        .iter()
        .map(|step| Span {
            began: step.began,
            ended: step.ended,
            optional: step.optional,
        })
        .collect();
    match Register::over(steps, cumulative) {
        Some(register) => linear::explain(register, &spans),
        None => Answer::Unexplained,
    }
}

impl Step {
    pub(super) fn id(&self) -> Option<usize> {
        match self.effect {
            Effect::Admit { id, .. } => id,
            _ => None,
        }
    }

    fn token(&self) -> Option<i64> {
        match self.effect {
            Effect::Admit { token, .. } | Effect::Stale { token } => Some(token),
            Effect::Show { .. } => None,
        }
    }

    fn shown(&self) -> &[usize] {
        match &self.effect {
            Effect::Show { ids } => ids,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests;
