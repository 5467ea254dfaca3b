//! What a layer has refused, and what it would have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::problem::ProblemKind;

/// The counts of one layer, shared by all its services and by every copy of this handle.
#[derive(Clone, Debug, Default)]
pub struct Counts(Arc<Mutex<HashMap<Counted, u64>>>);

/// What is counted apart. Routes are patterns, so that no client makes their number grow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counted {
    /// The pattern of the rule; nothing where no rule covers the request.
    pub route: Option<String>,
    /// Why.
    pub kind: ProblemKind,
    /// Whether it was let through, because the rule or the layer only observes.
    pub observed: bool,
}

impl Counts {
    /// The counts as they are now, in the order of their routes.
    pub fn snapshot(&self) -> Vec<(Counted, u64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counts: Vec<_> = counts
            .iter()
            .map(|(counted, count)| (counted.clone(), *count))
            .collect();
        counts.sort();
        counts
    }

    pub(super) fn add(&self, counted: Counted) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(counted).or_default() += 1;
    }
}
