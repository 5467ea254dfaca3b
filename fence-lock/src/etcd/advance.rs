//! The advance of the epoch: an intent, its registration with every witness, and one transaction that puts it in force.

use etcd_client::{Compare, CompareOp, ResponseHeader, Txn, TxnOp};
use fence_core::{ClassName, Epoch, EpochRangeError};

use super::EtcdStore;
use super::layout::{EpochRecord, cluster_text, encode};
use super::present::{At, Intent, Present};
use crate::error::StoreError;
use crate::lineage::Lineage;
use crate::witness::{Claim, Witness, WitnessError};

/// So often an advance begins again because others changed the records meanwhile.
const TRIES: usize = 50;

/// What an operator asks of an advance.
#[derive(Clone, Debug)]
pub struct Advance {
    reason: String,
    at_least: Option<Epoch>,
    place: Vec<ClassName>,
    remove: Vec<ClassName>,
}

/// What an advance did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advanced {
    /// The record that is in force now.
    pub record: EpochRecord,
    /// Whether another advance, at the same time, put it in force; its reason stands in the record.
    pub joined: bool,
}

/// The epoch was not advanced. Unless said otherwise nothing is in force that was not before, and the next advance goes on
/// with the same number.
#[derive(Debug, thiserror::Error)]
pub enum AdvanceError {
    /// The reason is empty or longer than 1000 characters. Say why the epoch begins.
    #[error("an epoch begins for a reason of 1 to 1000 characters, got {characters}")]
    Reason {
        /// How long the reason was.
        characters: usize,
    },
    /// No witness was named, and no number: nothing but the store, which may have lost history, would say what is high
    /// enough. Name every witness, or a number above every epoch of every tier.
    #[error(
        "without a witness an advance needs --at-least, a number above every epoch that any tier was ever in"
    )]
    NoWitness,
    /// There is no higher epoch. Tokens of this system are used up; begin with new resources.
    #[error("the epochs are used up")]
    Exhausted(#[source] EpochRangeError),
    /// A witness did not answer, or could not be relied on.
    #[error("the epoch was not registered everywhere")]
    Witness(#[from] WitnessError),
    /// Others changed the records again and again. Advance again.
    #[error("the lock store's epoch records kept changing under the advance")]
    Busy,
    /// The store is of another tier. Correct the configuration.
    #[error("the lock store is of tier {recorded}")]
    OtherTier {
        /// The tier in its record.
        recorded: fence_core::TierName,
    },
    /// The store did not answer. The epoch may be in force; `fence epoch show` shows it.
    #[error("the lock store did not advance")]
    Store(#[from] StoreError),
}

impl Advance {
    /// An advance for a reason: 1 to 1000 characters, for those who read the record later.
    pub fn new(reason: impl Into<String>) -> Advance {
        Advance {
            reason: reason.into(),
            at_least: None,
            place: Vec::new(),
            remove: Vec::new(),
        }
    }

    /// Takes this epoch, or a higher one.
    #[must_use]
    pub fn at_least(mut self, epoch: Epoch) -> Advance {
        self.at_least = Some(epoch);
        self
    }

    /// Places classes in the store's tier, new ones or such that move here; 50 at most. From then on the store grants placed
    /// classes only.
    #[must_use]
    pub fn place(mut self, classes: impl IntoIterator<Item = ClassName>) -> Advance {
        self.place.extend(classes);
        self
    }

    /// Takes classes out of the store's tier: such that move elsewhere; 50 at most.
    #[must_use]
    pub fn remove(mut self, classes: impl IntoIterator<Item = ClassName>) -> Advance {
        self.remove.extend(classes);
        self
    }
}

impl EtcdStore {
    /// Begins a higher epoch, in the store as it is now, and opens it if it was sealed. Whatever was granted before is
    /// below whatever is granted from now on, also when the store has lost history.
    ///
    /// The number is one above the highest that the record or any witness knows, of whatever tier. It is written down in
    /// the store first, registered with every witness, and then put in force; an advance that was interrupted has used a
    /// number, which the next one uses. Of advances at one time, one puts its epoch in force and the others join it.
    ///
    /// # Errors
    ///
    /// [`AdvanceError`].
    pub async fn advance(
        &self,
        asked: &Advance,
        witnesses: &[&dyn Witness],
    ) -> Result<Advanced, AdvanceError> {
        let characters = asked.reason.chars().count();
        if !(1..=1000).contains(&characters) {
            return Err(AdvanceError::Reason { characters });
        }
        if witnesses.is_empty() && asked.at_least.is_none() {
            return Err(AdvanceError::NoWitness);
        }
        let (began, mut slack) = self.present_with_slack().await?;
        let mut present = began.clone();
        for _ in 0..TRIES {
            self.require_tier(&present)?;
            if let Some(record) = joined(&began, &present, asked) {
                return Ok(Advanced { record, joined: true });
            }
            let wanted = self.wanted(asked, &present, witnesses).await?;
            match &present.intent {
                Some(intent) if intent.value.epoch == wanted => {
                    let intent = intent.clone();
                    if !self.register(wanted, witnesses).await? {
                        // Another tier was faster: a higher number, next time round.
                    } else if let Some(record) = self.put_in_force(asked, &present, &intent, slack).await? {
                        return Ok(Advanced {
                            record,
                            joined: false,
                        });
                    }
                }
                _ => self.write_intent(asked, &present, wanted).await?,
            }
            (present, slack) = self.present_with_slack().await?;
        }
        Err(AdvanceError::Busy)
    }

    fn require_tier(&self, present: &Present) -> Result<(), AdvanceError> {
        match in_force_last(present) {
            Some(record) if record.tier != self.inner.tier => Err(AdvanceError::OtherTier {
                recorded: record.tier.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// The number to take: that of the intent, if nothing else has come to know it or a higher one.
    async fn wanted(
        &self,
        asked: &Advance,
        present: &Present,
        witnesses: &[&dyn Witness],
    ) -> Result<Epoch, AdvanceError> {
        let intended = present.intent.as_ref().map(|intent| intent.value.epoch);
        let mut known: Vec<Epoch> = in_force_last(present)
            .map(|record| record.epoch)
            .into_iter()
            .collect();
        for witness in witnesses {
            for (tier, epoch) in witness.known().await? {
                if tier != self.inner.tier || Some(epoch) != intended {
                    known.push(epoch);
                }
            }
        }
        let highest = known.into_iter().max();
        let next = match highest {
            Some(highest) => highest.next().map_err(AdvanceError::Exhausted)?,
            None => Epoch::FIRST,
        };
        let next = asked.at_least.map_or(next, |at_least| next.max(at_least));
        Ok(intended.filter(|intended| *intended >= next).unwrap_or(next))
    }

    /// Writes down what is about to begin. Where others were faster, theirs is looked at next.
    async fn write_intent(
        &self,
        asked: &Advance,
        present: &Present,
        epoch: Epoch,
    ) -> Result<(), AdvanceError> {
        let intent = Intent {
            epoch,
            reason: asked.reason.clone(),
        };
        let put = TxnOp::put(self.inner.layout.intent(), encode(&intent), None);
        let write = Txn::new().when(self.unmoved(present)).and_then([put]);
        self.txn_unchecked(write).await?;
        Ok(())
    }

    /// Registers the epoch with each witness; `false` where another tier has taken it.
    async fn register(&self, epoch: Epoch, witnesses: &[&dyn Witness]) -> Result<bool, AdvanceError> {
        for witness in witnesses {
            if witness.register(&self.inner.tier, epoch).await? == Claim::Taken {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Puts the intended epoch in force, unless the records have moved.
    async fn put_in_force(
        &self,
        asked: &Advance,
        present: &Present,
        intent: &At<Intent>,
        slack: Option<i64>,
    ) -> Result<Option<EpochRecord>, AdvanceError> {
        let layout = &self.inner.layout;
        let placed = in_force_last(present).is_some_and(|record| record.classes_placed);
        let record = EpochRecord {
            epoch: intent.value.epoch,
            cluster_id: present.cluster_id(),
            tier: self.inner.tier.clone(),
            reason: asked.reason.clone(),
            classes_placed: placed || !asked.place.is_empty(),
        };
        let lineage = Lineage::begin(record.epoch, slack);
        let mut begin = vec![
            TxnOp::put(layout.epoch(), encode(&record), None),
            TxnOp::put(layout.lineage(), encode(&lineage), None),
            TxnOp::delete(layout.sealed(), None),
            TxnOp::delete(layout.intent(), None),
        ];
        for class in &asked.remove {
            begin.push(TxnOp::delete(layout.class(class), None));
        }
        for class in asked.place.iter().filter(|class| !asked.remove.contains(class)) {
            begin.push(TxnOp::put(layout.class(class), self.inner.tier.as_str(), None));
        }
        let commit = Txn::new().when(self.unmoved(present)).and_then(begin);
        let answer = self.txn_unchecked(commit).await?;
        // The history may have changed since this process looked at it, and is what it is from now on.
        self.inner.doubt.raise();
        let cluster = cluster_text(answer.header().map_or(0, ResponseHeader::cluster_id));
        Ok(Some(record).filter(|record| answer.succeeded() && record.cluster_id == cluster))
    }

    /// The records of epochs are still those that were read.
    fn unmoved(&self, present: &Present) -> Vec<Compare> {
        let layout = &self.inner.layout;
        [
            (layout.epoch(), Present::moved(present.epoch.as_ref())),
            (layout.sealed(), Present::moved(present.sealed.as_ref())),
            (layout.intent(), Present::moved(present.intent.as_ref())),
        ]
        .map(|(key, at)| Compare::mod_revision(key, CompareOp::Equal, at))
        .into()
    }
}

/// The record that is in force, or was when the store was sealed.
fn in_force_last(present: &Present) -> Option<&EpochRecord> {
    let sealed = present.sealed.as_ref().map(|sealed| &sealed.value.record);
    present.epoch.as_ref().map(|epoch| &epoch.value).or(sealed)
}

/// The record that another advance has put in force since this one began, if it does for what was asked.
fn joined(began: &Present, present: &Present, asked: &Advance) -> Option<EpochRecord> {
    let record = &present.epoch.as_ref()?.value;
    let before = in_force_last(began).map(|record| record.epoch);
    let higher = before.is_none_or(|before| record.epoch > before);
    let enough = asked.at_least.is_none_or(|at_least| record.epoch >= at_least);
    let all = asked.place.is_empty() && asked.remove.is_empty();
    let moved = Present::moved(began.epoch.as_ref()) != Present::moved(present.epoch.as_ref());
    (moved && higher && enough && all).then(|| record.clone())
}
