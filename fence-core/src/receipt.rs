//! The evidence that a conditional write hands back.

use crate::grant::Claim;

/// What a guarded handler did with the claim that it was given.
///
/// A guard makes receipts; a handler passes them on. fence-pg makes one only after the server said that it committed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Receipt {
    claim: Claim,
    effect: Effect,
}

/// What became of the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Admission and write were committed together.
    Applied,
    /// The idempotency key was completed before; its stored answer was given again and nothing was written.
    Replayed,
    /// A job was stored in the admitting transaction; the job's own write must be admitted again.
    Deferred,
    /// Nothing was to be written, and why, such as `raised the mark`.
    NoWrite(String),
}

impl Receipt {
    /// Makes a receipt for a store whose guard is not part of this project.
    ///
    /// It is named `danger` because nothing checks it: the caller vouches that the store itself compared the token in the
    /// same atomic step as the write, and that the write is committed.
    pub fn danger_assume(claim: Claim, effect: Effect) -> Receipt {
        Receipt { claim, effect }
    }

    /// The claim that was admitted.
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// What became of the write.
    pub fn effect(&self) -> &Effect {
        &self.effect
    }
}
