//! What somebody outside a store remembers of it, and what that shows later.

use std::fmt;
use std::str::FromStr;

use fence_core::Epoch;
use serde::{Deserialize, Serialize};

use crate::etcd::EpochRecord;
use crate::lineage::{Descent, Lineage};
use crate::loss::Loss;

/// What a process or a witness remembers of a store. Its text form is one line of JSON, for whoever keeps it elsewhere.
///
/// It is of use only when it does not share the fate of the store: a file on the store's own volume comes back with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreMemory {
    /// The epoch record that was in force.
    pub(crate) record: EpochRecord,
    /// The lineage, …
    pub(crate) lineage: Lineage,
    /// … and the revision at which it had been written.
    pub(crate) written_at: i64,
    /// The highest revision that was seen.
    pub(crate) revision: u64,
}

/// A text that holds no memory of a store. Keep it as it was given.
#[derive(Debug, thiserror::Error)]
#[error("not the memory of a store")]
pub struct StoreMemoryError(#[source] serde_json::Error);

impl StoreMemory {
    /// The epoch that was in force.
    pub fn epoch(&self) -> Epoch {
        self.record.epoch
    }

    /// How many links the lineage of the epoch had.
    pub fn generation(&self) -> u64 {
        self.lineage.generation
    }

    /// Compares with what the store holds now. A higher epoch begins anew: nothing earlier is asked of it.
    pub(crate) fn descent(&self, record: &EpochRecord, lineage: Option<&Lineage>) -> Descent {
        if record.epoch != self.record.epoch {
            return if record.epoch > self.record.epoch {
                Descent::Continues
            } else {
                Descent::Lost(Loss::Epoch {
                    seen: self.record.epoch,
                    found: record.epoch,
                })
            };
        }
        match lineage {
            Some(lineage) => self.lineage.descent(lineage),
            None => Descent::Lost(Loss::Lineage {
                seen: self.lineage.generation,
            }),
        }
    }
}

impl fmt::Display for StoreMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for StoreMemory {
    type Err = StoreMemoryError;

    fn from_str(text: &str) -> Result<StoreMemory, StoreMemoryError> {
        serde_json::from_str(text).map_err(StoreMemoryError)
    }
}

#[cfg(test)]
mod tests {
    use fence_core::TierName;

    use super::*;

    fn record(epoch: u16) -> EpochRecord {
        EpochRecord {
            epoch: Epoch::new(epoch).expect("an epoch"),
            cluster_id: "00000000000000aa".to_owned(),
            tier: TierName::new("entity").expect("a tier"),
            reason: "a test".to_owned(),
            classes_placed: false,
        }
    }

    fn memory(epoch: u16) -> StoreMemory {
        let record = record(epoch);
        let lineage = Lineage::begin(record.epoch, Some(5)).next(None);
        StoreMemory {
            record,
            lineage,
            written_at: 7,
            revision: 9,
        }
    }

    #[test]
    fn a_higher_epoch_begins_anew_and_a_lower_one_is_a_loss() {
        let seen = memory(3);
        assert_eq!(seen.descent(&record(4), None), Descent::Continues);
        let lost = seen.descent(&record(2), Some(&seen.lineage));
        let (two, three) = (record(2).epoch, record(3).epoch);
        assert_eq!(
            lost,
            Descent::Lost(Loss::Epoch {
                seen: three,
                found: two
            })
        );
        assert_eq!(seen.descent(&record(3), Some(&seen.lineage)), Descent::Continues);
        assert_eq!(
            seen.descent(&record(3), None),
            Descent::Lost(Loss::Lineage { seen: 2 })
        );
    }

    #[test]
    fn a_memory_survives_its_text() {
        let seen = memory(3);
        assert_eq!(
            seen.to_string().parse::<StoreMemory>().expect("it was written"),
            seen
        );
        assert!("{}".parse::<StoreMemory>().is_err());
    }
}
