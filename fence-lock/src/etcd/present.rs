//! What the store says about itself, all of one moment.

use etcd_client::{KeyValue, ResponseHeader, Txn, TxnOp, TxnOpResponse};
use fence_core::Epoch;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::EtcdStore;
use super::call::revision;
use super::layout::{EpochRecord, cluster_text, decode, epoch_number};
use crate::error::StoreError;
use crate::lineage::Lineage;

/// A record, and the revision that it was last written at.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) at: i64,
}

/// The value of `sealed`: the epoch record that was in force, taken out of force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SealedRecord {
    pub(super) record: EpochRecord,
    /// What showed that history was lost.
    pub(super) why: String,
}

/// The value of `intent`: the epoch that an advance is about to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Intent {
    #[serde(with = "epoch_number")]
    pub(super) epoch: Epoch,
    pub(super) reason: String,
}

/// The records of a store besides its locks, as one linearizable read found them.
#[derive(Clone, Debug)]
pub(super) struct Present {
    /// The epoch record as it was read, for whoever adopts it.
    pub(super) raw: Option<KeyValue>,
    pub(super) header: Option<ResponseHeader>,
    pub(super) epoch: Option<At<EpochRecord>>,
    pub(super) sealed: Option<At<SealedRecord>>,
    pub(super) lineage: Option<At<Lineage>>,
    pub(super) intent: Option<At<Intent>>,
}

impl Present {
    /// The revision that an absent record is compared by.
    pub(super) fn moved<T>(record: Option<&At<T>>) -> i64 {
        record.map_or(0, |record| record.at)
    }

    /// The lineage of the epoch in force. One of another epoch, whose record was moved by hand, says nothing.
    pub(super) fn link(&self) -> Option<&At<Lineage>> {
        let epoch = self.epoch.as_ref()?.value.epoch;
        self.lineage
            .as_ref()
            .filter(|lineage| lineage.value.epoch == epoch)
    }

    pub(super) fn cluster_id(&self) -> String {
        cluster_text(self.header.as_ref().map_or(0, ResponseHeader::cluster_id))
    }

    /// The member that answered.
    pub(super) fn member(&self) -> u64 {
        self.header.as_ref().map_or(0, ResponseHeader::member_id)
    }

    pub(super) fn revision(&self) -> u64 {
        revision(self.header.as_ref())
    }
}

impl EtcdStore {
    /// Reads what the store says about itself. The age of the answer is the caller's to judge.
    pub(super) async fn present(&self) -> Result<Present, StoreError> {
        let layout = &self.inner.layout;
        let keys = [layout.epoch(), layout.sealed(), layout.lineage(), layout.intent()];
        let reads: Vec<TxnOp> = keys.map(|key| TxnOp::get(key, None)).into();
        let answer = self.txn_unchecked(Txn::new().and_then(reads)).await?;
        let mut found = answer.op_responses().into_iter().map(|response| match response {
            TxnOpResponse::Get(read) => read.kvs().first().cloned(),
            _ => None,
        });
        let mut next = || found.next().flatten();
        let raw = next();
        Ok(Present {
            epoch: read(raw.as_ref())?,
            sealed: read(next().as_ref())?,
            lineage: read(next().as_ref())?,
            intent: read(next().as_ref())?,
            raw,
            header: answer.header().cloned(),
        })
    }
}

fn read<T: DeserializeOwned>(kv: Option<&KeyValue>) -> Result<Option<At<T>>, StoreError> {
    let record = |kv: &KeyValue| {
        Ok(At {
            value: decode(kv.key(), kv.value())?,
            at: kv.mod_revision(),
        })
    };
    kv.map(record).transpose()
}
