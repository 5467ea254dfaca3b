//! The grants: who held what, in which order, and what was acknowledged of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What is locked: an account of the mark guard, or a batch of the column guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Resource(pub(crate) usize);

/// Accounts, and as many batches.
const EACH: usize = 8;

impl Resource {
    pub(crate) const ALL: usize = 2 * EACH;

    /// Whether its guard is a column of its row.
    pub(crate) fn is_column(self) -> bool {
        self.0 >= EACH
    }

    /// Its number among those of its guard.
    pub(crate) fn number(self) -> usize {
        self.0 % EACH
    }

    pub(crate) fn all() -> impl Iterator<Item = Resource> {
        (0..Self::ALL).map(Resource)
    }
}

/// One successful acquisition.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) resource: Resource,
    /// Its place among all grants, from 1: the store's own word for which of two is newer.
    pub(crate) place: u64,
}

impl Grant {
    /// Its token: one of epoch 1.
    pub(crate) fn token(&self) -> u64 {
        token(self.place)
    }

    pub(crate) fn id(&self) -> String {
        format!("g{}", self.place)
    }
}

/// The token of the grant at this place.
pub(crate) fn token(place: u64) -> u64 {
    (1 << 48) + place
}

/// A lock store that hands a lock on while its holder still believes in it, as every one does after a pause.
#[derive(Debug)]
pub(crate) struct Store {
    granted: AtomicU64,
    locks: Vec<Lock>,
}

#[derive(Debug, Default)]
struct Lock {
    grants: Mutex<Vec<Grant>>,
    /// The newest grant of which a write was acknowledged.
    wrote: AtomicU64,
}

impl Store {
    pub(crate) fn new() -> Self {
        Store {
            granted: AtomicU64::new(0),
            locks: Resource::all().map(|_| Lock::default()).collect(),
        }
    }

    /// Grants the lock to whoever asks; its holder is not told.
    pub(crate) fn take(&self, resource: Resource) -> Grant {
        let mut grants = self.grants(resource);
        let place = self.granted.fetch_add(1, Ordering::SeqCst) + 1;
        let grant = Grant { resource, place };
        grants.push(grant.clone());
        grant
    }

    pub(crate) fn is_newest(&self, grant: &Grant) -> bool {
        let grants = self.grants(grant.resource);
        grants.last().is_some_and(|newest| newest.place == grant.place)
    }

    /// Somebody was told that a write under this grant is committed.
    pub(crate) fn acknowledged(&self, grant: &Grant) {
        let wrote = &self.locks[grant.resource.0].wrote;
        wrote.fetch_max(grant.place, Ordering::SeqCst);
    }

    /// The grants older than the newest one of which a write was acknowledged, newest first, a few at most.
    pub(crate) fn outdated(&self, resource: Resource) -> Vec<Grant> {
        let wrote = self.locks[resource.0].wrote.load(Ordering::SeqCst);
        let grants = self.grants(resource);
        let older = grants.iter().rev().filter(|grant| grant.place < wrote);
        older.take(4).cloned().collect()
    }

    /// The newest grant, and the one before it.
    pub(crate) fn last_two(&self, resource: Resource) -> Vec<Grant> {
        self.grants(resource).iter().rev().take(2).cloned().collect()
    }

    pub(crate) fn takeovers(&self) -> u64 {
        self.granted.load(Ordering::SeqCst)
    }

    fn grants(&self, resource: Resource) -> std::sync::MutexGuard<'_, Vec<Grant>> {
        let grants = self.locks[resource.0].grants.lock();
        grants.unwrap_or_else(PoisonError::into_inner)
    }
}
