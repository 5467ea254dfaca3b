//! A witness in this process's memory, and one that fails.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use fence_core::{Epoch, TierName};
use fence_lock::{Claim, StoreMemory, Witness, WitnessError};
use futures_util::future::BoxFuture;

/// Remembers what it is told.
#[derive(Default)]
pub(crate) struct Notebook {
    pub(crate) known: Mutex<Vec<(TierName, Epoch)>>,
    pub(crate) memory: Mutex<Option<StoreMemory>>,
    /// So many registrations fail before one succeeds, after they were written down or before, in turn.
    pub(crate) failures: AtomicU64,
}

impl Notebook {
    pub(crate) fn epochs(&self) -> Vec<u16> {
        let known = self.known.lock().unwrap();
        known.iter().map(|(_, epoch)| epoch.as_u16()).collect()
    }

    fn fails(&self) -> Option<u64> {
        let one_less = |left: u64| left.checked_sub(1);
        self.failures
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
            .ok()
    }

    fn error(&self) -> WitnessError {
        WitnessError {
            witness: self.name(),
            source: "told to fail".into(),
        }
    }
}

impl Witness for Notebook {
    fn name(&self) -> String {
        "notebook".to_owned()
    }

    fn known(&self) -> BoxFuture<'_, Result<Vec<(TierName, Epoch)>, WitnessError>> {
        Box::pin(async { Ok(self.known.lock().unwrap().clone()) })
    }

    fn register<'a>(
        &'a self,
        tier: &'a TierName,
        epoch: Epoch,
    ) -> BoxFuture<'a, Result<Claim, WitnessError>> {
        Box::pin(async move {
            let fails = self.fails();
            if fails.is_some_and(|left| left % 2 == 0) {
                return Err(self.error());
            }
            {
                let mut known = self.known.lock().unwrap();
                let ours = (tier.clone(), epoch);
                if !known.contains(&ours) {
                    if known
                        .iter()
                        .any(|(other, higher)| other != tier && *higher >= epoch)
                    {
                        return Ok(Claim::Taken);
                    }
                    known.push(ours);
                }
            }
            if fails.is_some() {
                return Err(self.error());
            }
            Ok(Claim::Registered)
        })
    }

    fn memory<'a>(&'a self, _tier: &'a TierName) -> BoxFuture<'a, Result<Option<StoreMemory>, WitnessError>> {
        Box::pin(async { Ok(self.memory.lock().unwrap().clone()) })
    }

    fn remember<'a>(
        &'a self,
        _tier: &'a TierName,
        before: Option<&'a StoreMemory>,
        now: &'a StoreMemory,
    ) -> BoxFuture<'a, Result<bool, WitnessError>> {
        Box::pin(async move {
            let mut memory = self.memory.lock().unwrap();
            let unchanged = memory.as_ref() == before;
            if unchanged {
                *memory = Some(now.clone());
            }
            Ok(unchanged)
        })
    }
}
