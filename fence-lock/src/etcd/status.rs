//! What an operator sees of a store's epochs.

use etcd_client::GetOptions;
use fence_core::{ClassName, Epoch};

use super::EtcdStore;
use super::layout::EpochRecord;
use crate::error::{AcquireError, StoreError};

/// A store's epochs, as an operator sees them.
#[derive(Debug)]
pub struct EpochStatus {
    /// The record in force; when the store is sealed, the one that was.
    pub record: Option<EpochRecord>,
    /// Why the store grants nothing, if it does not.
    pub closed: Option<AcquireError>,
    /// The epoch that an advance has begun to begin, and its reason.
    pub intent: Option<(Epoch, String)>,
    /// How many links the lineage of the epoch has.
    pub generation: Option<u64>,
    /// What the raft index was ahead of the revision at least.
    pub slack: Option<i64>,
    /// The classes that are placed in the tier.
    pub classes: Vec<ClassName>,
    /// The cluster that answered: etcd's id in 16 hexadecimal digits.
    pub cluster_id: String,
    /// Its revision.
    pub revision: u64,
}

impl EtcdStore {
    /// Looks at the store, as before a grant, and says how its epochs stand. A store that lost history is sealed by this.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store does not answer or a record cannot be read.
    pub async fn epoch_status(&self) -> Result<EpochStatus, StoreError> {
        self.inner.doubt.raise();
        let closed = match self.look_again().await {
            Ok(()) => None,
            Err(AcquireError::Store(error)) => return Err(error),
            Err(error) => Some(error),
        };
        let present = self.present().await?;
        let placed = GetOptions::new().with_prefix();
        let classes = self
            .get_unchecked(self.inner.layout.classes(), Some(placed))
            .await?;
        let class = |kv: &etcd_client::KeyValue| {
            let name = kv.key_str().ok()?.rsplit('/').next()?;
            let ours = kv.value() == self.inner.tier.as_str().as_bytes();
            ClassName::new(name).ok().filter(|_| ours)
        };
        let cluster_id = present.cluster_id();
        let revision = present.revision();
        let sealed = present.sealed.map(|sealed| sealed.value.record);
        let lineage = present.lineage.map(|lineage| lineage.value);
        Ok(EpochStatus {
            record: present.epoch.map(|epoch| epoch.value).or(sealed),
            closed,
            intent: present
                .intent
                .map(|intent| (intent.value.epoch, intent.value.reason)),
            generation: lineage.as_ref().map(|lineage| lineage.generation),
            slack: lineage.and_then(|lineage| lineage.slack),
            classes: classes.kvs().iter().filter_map(class).collect(),
            cluster_id,
            revision,
        })
    }
}
