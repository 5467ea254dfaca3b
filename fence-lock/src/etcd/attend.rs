//! A store beside what a witness remembers of it.

use super::EtcdStore;
use crate::error::AcquireError;
use crate::memory::StoreMemory;
use crate::witness::{Witness, WitnessError};

/// So often a memory that others write too is compared again.
const TRIES: usize = 5;

/// What a witness knows of a store after it was attended to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attended {
    /// What it remembers now.
    pub memory: StoreMemory,
    /// Whether it remembered nothing before: what was lost until then it cannot see.
    pub first: bool,
}

/// A store was not found sound, or the witness could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum AttendError {
    /// The store grants nothing: it is sealed, by now if it was not before, or not initialised. Or it did not answer.
    #[error("the lock store was not found sound")]
    Store(#[from] AcquireError),
    /// The witness did not answer.
    #[error("the witness was not brought up to date")]
    Witness(#[from] WitnessError),
}

impl EtcdStore {
    /// Compares the store with what a witness remembers of it, seals it when it has lost history since, and otherwise has the
    /// witness remember it as it is now, with a new link of its lineage unless there is one since the last look.
    ///
    /// Done every 10 s by somebody who has nothing to do with the holders, this sees what no holder lives to see.
    ///
    /// # Errors
    ///
    /// [`AttendError`]; the witness remembers what it did before.
    pub async fn attend(&self, witness: &dyn Witness) -> Result<Attended, AttendError> {
        for _ in 0..TRIES {
            let before = witness.memory(&self.inner.tier).await?;
            if let Some(before) = &before {
                self.judge_by(before).await?;
            }
            let memory = self.renew_lineage().await?;
            if let Some(before) = &before {
                // What was renewed comes after what was judged.
                self.judge_by(before).await?;
            }
            let remembered = witness.remember(&self.inner.tier, before.as_ref(), &memory);
            if remembered.await? {
                let first = before.is_none();
                return Ok(Attended { memory, first });
            }
        }
        Err(WitnessError {
            witness: witness.name(),
            source: "its memory kept changing".into(),
        }
        .into())
    }
}
