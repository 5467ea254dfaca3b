//! Which locks this process waits for already.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::EtcdStore;
use crate::store::Attempt;

/// How many attempts of this process, through this store and its clones, wait, by the queue that they stand in.
///
/// Whoever comes to such a lock takes a place at once. It would ask in vain whether the lock is free: to see that somebody
/// queues, every member of etcd reads the whole queue.
#[derive(Debug, Default)]
pub(super) struct Lines(Mutex<HashMap<String, usize>>);

/// An attempt that waits, for as long as this lives.
pub(super) struct InLine<'store> {
    lines: &'store Lines,
    queues: Vec<String>,
}

impl Lines {
    fn counts(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EtcdStore {
    /// Whether an attempt of this process waits for one of these locks.
    pub(super) fn waits_already(&self, attempt: &Attempt) -> bool {
        let counts = self.inner.lines.counts();
        !counts.is_empty()
            && self
                .queues(attempt)
                .iter()
                .any(|queue| counts.contains_key(queue))
    }

    /// From here on this attempt waits.
    pub(super) fn in_line(&self, attempt: &Attempt) -> InLine<'_> {
        let queues = self.queues(attempt);
        let mut counts = self.inner.lines.counts();
        for queue in &queues {
            *counts.entry(queue.clone()).or_default() += 1;
        }
        InLine {
            lines: &self.inner.lines,
            queues,
        }
    }

    fn queues(&self, attempt: &Attempt) -> Vec<String> {
        let queue = |key| self.inner.layout.lock(attempt.class(), key).queue();
        attempt.keys().iter().map(queue).collect()
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let mut counts = self.lines.counts();
        for queue in &self.queues {
            if let Some(count) = counts.get_mut(queue) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(queue);
                }
            }
        }
    }
}
