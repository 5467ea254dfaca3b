//! Sealing: the epoch record is taken out of force, so that nobody grants, in whatever language.

use etcd_client::{Compare, CompareOp, Txn, TxnOp};

use super::EtcdStore;
use super::layout::encode;
use super::present::{Present, SealedRecord};
use crate::error::StoreError;
use crate::loss::Loss;

/// A loss that was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) loss: Loss,
    /// Whether it was read in the lineage, which must then still be the one that was read. Otherwise it was seen through
    /// the log.
    pub(super) in_lineage: bool,
}

impl EtcdStore {
    /// Seals the store on this evidence, if its records are still those that were judged; `false` when they are not, and
    /// must be judged again. This goes through the store's log: an answer from an old state cannot seal.
    pub(super) async fn seal(&self, judged: &Present, found: &Found) -> Result<bool, StoreError> {
        let Some(epoch) = &judged.epoch else {
            return Ok(false);
        };
        let layout = &self.inner.layout;
        let sealed = SealedRecord {
            record: epoch.value.clone(),
            why: found.loss.to_string(),
        };
        let mut when = vec![Compare::mod_revision(layout.epoch(), CompareOp::Equal, epoch.at)];
        if let Found { in_lineage: true, .. } = found {
            let lineage = Present::moved(judged.lineage.as_ref());
            when.push(Compare::mod_revision(layout.lineage(), CompareOp::Equal, lineage));
        }
        let seal = Txn::new().when(when).and_then([
            TxnOp::put(layout.sealed(), encode(&sealed), None),
            TxnOp::delete(layout.epoch(), None),
        ]);
        Ok(self.txn_unchecked(seal).await?.succeeded())
    }
}
