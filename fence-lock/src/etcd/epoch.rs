//! The epoch record: made once, by an operator; read before anything is granted.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use etcd_client::{Compare, CompareOp, KeyValue, ResponseHeader, Txn, TxnOp, TxnOpResponse};
use fence_core::{ClassName, Epoch};

use super::EtcdStore;
use super::call::revision;
use super::layout::{EpochRecord, cluster_text, decode, encode};
use super::present::SealedRecord;
use crate::error::{AcquireError, SealReason, StoreError};
use crate::lineage::Lineage;
use crate::loss::Loss;

/// The store was not initialised.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// There is an epoch record, and it was left as it is. If its epoch is the one that was asked for, an earlier `init`
    /// was there first; a higher epoch is begun by an advance, not by `init`.
    #[error("the lock store is initialised already, with epoch {}", found.epoch)]
    Exists {
        /// The record found.
        found: EpochRecord,
    },
    /// The store is sealed. A higher epoch is begun by an advance.
    #[error("the lock store is sealed in epoch {epoch}: {reason}")]
    Sealed {
        /// The epoch that was in force.
        epoch: Epoch,
        /// What showed that it lost history.
        reason: String,
    },
    /// The reason is empty or longer than 1000 characters. Say why the epoch begins.
    #[error("an epoch begins for a reason of 1 to 1000 characters, got {characters}")]
    Reason {
        /// How long the reason was.
        characters: usize,
    },
    /// The store did not answer. Running `init` again shows whether it landed.
    #[error("the lock store was not initialised")]
    Store(#[from] StoreError),
}

/// The epoch in force, as a grant compares it.
#[derive(Clone, Debug)]
pub(super) struct InForce {
    pub(super) record: EpochRecord,
    /// The record's mod revision: the grant's transaction compares it, so that no token is minted from an old record.
    pub(super) moved_at: i64,
}

impl EtcdStore {
    /// Writes the epoch record of a store that has none. It is done once, by an operator: a missing record is never taken
    /// for a new store without being told so.
    ///
    /// The epoch must be above every epoch that any store of this system ever granted in. Registering it with the resources
    /// is a step of its own.
    ///
    /// # Errors
    ///
    /// [`InitError::Exists`] when there is a record, also one written meanwhile: of any number of concurrent calls, one
    /// writes. Nothing is overwritten.
    pub async fn init(&self, epoch: Epoch, reason: &str) -> Result<EpochRecord, InitError> {
        self.init_with(epoch, reason, &[]).await
    }

    /// [`EtcdStore::init`] of a store that grants these classes and no other, 100 at most; with none of them it grants any class. Further classes
    /// are placed by an [`EtcdStore::advance`].
    ///
    /// # Errors
    ///
    /// As of [`EtcdStore::init`].
    pub async fn init_with(
        &self,
        epoch: Epoch,
        reason: &str,
        classes: &[ClassName],
    ) -> Result<EpochRecord, InitError> {
        let layout = &self.inner.layout;
        let characters = reason.chars().count();
        if !(1..=1000).contains(&characters) {
            return Err(InitError::Reason { characters });
        }
        let key = layout.epoch();
        let (present, slack) = self.present_with_slack().await?;
        let record = EpochRecord {
            epoch,
            cluster_id: present.cluster_id(),
            tier: self.inner.tier.clone(),
            reason: reason.to_owned(),
            classes_placed: !classes.is_empty(),
        };
        let (sealed, lineage) = (layout.sealed(), layout.lineage());
        let mut begin = vec![
            TxnOp::put(key.clone(), encode(&record), None),
            TxnOp::put(lineage, encode(&Lineage::begin(epoch, slack)), None),
        ];
        for class in classes {
            begin.push(TxnOp::put(layout.class(class), self.inner.tier.as_str(), None));
        }
        let put = Txn::new()
            .when([
                Compare::create_revision(key.clone(), CompareOp::Equal, 0),
                Compare::create_revision(sealed.clone(), CompareOp::Equal, 0),
            ])
            .and_then(begin)
            .or_else([TxnOp::get(key, None), TxnOp::get(sealed, None)]);
        let answer = self.txn(put).await?;
        if answer.succeeded() {
            self.inner.doubt.raise();
            return Ok(record);
        }
        let found = answer
            .op_responses()
            .into_iter()
            .find_map(|response| match response {
                TxnOpResponse::Get(read) => read.kvs().first().cloned(),
                _ => None,
            });
        match found {
            Some(kv) if kv.key() == layout.epoch().as_bytes() => Err(InitError::Exists {
                found: decode(kv.key(), kv.value())?,
            }),
            Some(kv) => {
                let sealed: SealedRecord = decode(kv.key(), kv.value())?;
                Err(InitError::Sealed {
                    epoch: sealed.record.epoch,
                    reason: sealed.why,
                })
            }
            None => unreachable!("one of the two exists in the same transaction"),
        }
    }

    /// The epoch record, if there is one.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store does not answer or the record cannot be read.
    pub async fn epoch(&self) -> Result<Option<EpochRecord>, StoreError> {
        let key = self.inner.layout.epoch();
        let read = self.get_unchecked(key, None).await?;
        read.kvs()
            .first()
            .map(|kv| decode(kv.key(), kv.value()))
            .transpose()
    }

    /// The epoch in force, from memory or from the store.
    pub(super) async fn in_force(&self) -> Result<InForce, AcquireError> {
        if self.inner.doubt.is_raised() {
            self.look_again().await?;
        }
        let known = self
            .inner
            .in_force
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match known {
            Some(known) => Ok(known),
            None => self.read_in_force().await,
        }
    }

    /// Whether an answer is of another cluster than the record in force.
    pub(super) fn is_of_another_cluster(&self, header: Option<&ResponseHeader>) -> bool {
        let known = self.inner.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cluster_text(header.map_or(0, ResponseHeader::cluster_id));
        known
            .as_ref()
            .is_some_and(|known| known.record.cluster_id != found)
    }

    /// The highest revision seen in an epoch, 0 unless it is the one in force.
    pub(super) fn seen_in(&self, epoch: Epoch) -> u64 {
        let known = self.inner.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let in_force = known.as_ref().is_some_and(|known| known.record.epoch == epoch);
        if in_force {
            self.inner.seen.load(Ordering::SeqCst)
        } else {
            0
        }
    }

    pub(super) async fn read_in_force(&self) -> Result<InForce, AcquireError> {
        let seen = self.inner.seen.load(Ordering::SeqCst);
        let read = self.get_unchecked(self.inner.layout.epoch(), None).await?;
        self.adopt(seen, read.kvs().first(), read.header())
    }

    /// Takes an epoch record that was just read, if it may be granted under.
    pub(super) fn adopt(
        &self,
        seen: u64,
        kv: Option<&KeyValue>,
        header: Option<&ResponseHeader>,
    ) -> Result<InForce, AcquireError> {
        let mut known = self.inner.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(kv) = kv else {
            return Err(AcquireError::NotInitialised {
                tier: self.inner.tier.clone(),
            });
        };
        let record: EpochRecord = decode(kv.key(), kv.value())?;
        self.check_seal(&record, header)?;
        match known.as_ref().map(|before| &before.record) {
            Some(before) if before.epoch >= record.epoch && before.cluster_id != record.cluster_id => {
                self.inner.doubt.raise();
                return Err(AcquireError::Sealed(SealReason::Stranger {
                    epoch: before.epoch,
                    seen: before.cluster_id.clone(),
                    found: record.cluster_id,
                }));
            }
            Some(before) if before.epoch > record.epoch => {
                self.inner.doubt.raise();
                let (seen, found) = (before.epoch, record.epoch);
                let loss = Loss::Epoch { seen, found };
                return Err(AcquireError::Sealed(SealReason::Lost { loss }));
            }
            Some(before) if before.epoch == record.epoch => self.not_below(seen, revision(header))?,
            // A higher epoch starts over: its revisions may be lower, its tokens are not. And before the first, another
            // cluster may have answered.
            _ => self.inner.seen.store(revision(header), Ordering::SeqCst),
        }
        let now = InForce {
            record,
            moved_at: kv.mod_revision(),
        };
        *known = Some(now.clone());
        Ok(now)
    }

    /// Whether an answer comes from the store that the record was made for.
    pub(super) fn check_seal(
        &self,
        record: &EpochRecord,
        header: Option<&ResponseHeader>,
    ) -> Result<(), AcquireError> {
        let found = cluster_text(header.map_or(0, ResponseHeader::cluster_id));
        if record.cluster_id != found {
            let recorded = record.cluster_id.clone();
            return Err(AcquireError::Sealed(SealReason::OtherCluster { recorded, found }));
        }
        if record.tier != self.inner.tier {
            let (recorded, asked) = (record.tier.clone(), self.inner.tier.clone());
            return Err(AcquireError::Sealed(SealReason::OtherTier { recorded, asked }));
        }
        Ok(())
    }
}
