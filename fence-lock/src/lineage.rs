//! The lineage of a store: a chain of random links, by which whoever saw one knows whether the store still has it.
//!
//! A store that was put back to an older state goes on from there, and its numbers say nothing about it. Its next link is
//! another one, though: two branches share the links up to where they parted, and no later one.

use std::collections::BTreeMap;

use fence_core::Epoch;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::etcd::epoch_number;
use crate::loss::Loss;

/// So many earlier links are kept at each distance: the last eight generations, the last eight multiples of 8, of 64, …
const KEPT: u64 = 8;

/// The first generation.
const FIRST: u64 = 1;

/// The newest link of a store's lineage, with earlier ones.
///
/// Of the earlier links the first is kept, and those that are among the last eight multiples of a power of 8. So any two states of one
/// lineage have a link in common, and mostly one not long before the older of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lineage {
    /// The epoch that it belongs to: every epoch begins a lineage of its own.
    #[serde(with = "epoch_number")]
    pub(crate) epoch: Epoch,
    /// How many links there have been.
    pub(crate) generation: u64,
    /// The link.
    pub(crate) random: String,
    /// What the raft index was ahead of the revision at least, by the time of this link or of an earlier one.
    pub(crate) slack: Option<i64>,
    /// Earlier links by their generation.
    #[serde(default)]
    pub(crate) before: BTreeMap<u64, String>,
}

/// What the comparison of two states of a lineage shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Descent {
    /// The later one comes after the earlier one.
    Continues,
    /// The links in common say nothing about the newest that was seen, though none contradicts.
    Unseen,
    /// The later one is of another history.
    Lost(Loss),
}

impl Lineage {
    /// The first link of an epoch.
    pub(crate) fn begin(epoch: Epoch, slack: Option<i64>) -> Lineage {
        Lineage {
            epoch,
            generation: FIRST,
            random: random(),
            slack,
            before: BTreeMap::new(),
        }
    }

    /// The next link. The slack never falls in one history, so the highest bound stays.
    pub(crate) fn next(&self, slack: Option<i64>) -> Lineage {
        let generation = self.generation + 1;
        let mut before = self.before.clone();
        before.insert(self.generation, self.random.clone());
        before.retain(|earlier, _| *earlier == FIRST || is_kept(*earlier, generation));
        Lineage {
            epoch: self.epoch,
            generation,
            random: random(),
            slack: self.slack.max(slack),
            before,
        }
    }

    /// The link of this generation, if it is kept.
    pub(crate) fn link(&self, generation: u64) -> Option<&str> {
        if generation == self.generation {
            return Some(&self.random);
        }
        self.before.get(&generation).map(String::as_str)
    }

    /// Whether `self`, seen earlier, is an ancestor of `now`. Both are of one epoch.
    pub(crate) fn descent(&self, now: &Lineage) -> Descent {
        if now.generation < self.generation {
            return Descent::Lost(Loss::Generation {
                seen: self.generation,
                found: now.generation,
            });
        }
        let kept = self.before.keys().copied().chain([self.generation]);
        for generation in kept {
            if let (Some(seen), Some(found)) = (self.link(generation), now.link(generation))
                && seen != found
            {
                return Descent::Lost(Loss::Link { generation });
            }
        }
        match now.link(self.generation) {
            Some(_) => Descent::Continues,
            None => Descent::Unseen,
        }
    }
}

fn is_kept(earlier: u64, newest: u64) -> bool {
    let mut step = 1_u64;
    loop {
        if earlier.is_multiple_of(step) && newest / step - earlier / step < KEPT {
            return true;
        }
        match step.checked_mul(8) {
            Some(next) if next <= newest => step = next,
            _ => return false,
        }
    }
}

/// 64 random bits in hexadecimal.
fn random() -> String {
    let (high, _) = Uuid::new_v4().as_u64_pair();
    format!("{high:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(from: &Lineage, links: u64) -> Lineage {
        (0..links).fold(from.clone(), |lineage, _| lineage.next(None))
    }

    #[test]
    fn a_lineage_that_went_on_continues_at_every_distance() {
        let start = grown(&Lineage::begin(Epoch::FIRST, None), 700);
        for further in [0, 1, 7, 8, 9, 63, 64, 65, 500, 5000] {
            let now = grown(&start, further);
            let descent = start.descent(&now);
            assert!(!matches!(descent, Descent::Lost(_)), "{further}: {descent:?}");
            assert!(
                further > 7 || descent == Descent::Continues,
                "{further}: {descent:?}"
            );
            let shared = start.before.keys().filter(|link| now.before.contains_key(*link));
            assert!(shared.count() > 0, "{further}");
        }
    }

    #[test]
    fn a_lineage_that_was_put_back_is_another_also_when_it_has_grown_past() {
        let parting = grown(&Lineage::begin(Epoch::FIRST, None), 90);
        let seen = grown(&parting, 20);
        let back = seen.descent(&parting);
        assert_eq!(back, Descent::Lost(Loss::Generation { seen: 111, found: 91 }));
        for further in [20, 21, 25, 60] {
            let now = grown(&parting, further);
            assert!(
                matches!(seen.descent(&now), Descent::Lost(Loss::Link { .. })),
                "{further}"
            );
        }
    }

    #[test]
    fn the_highest_slack_stays_and_a_long_lineage_stays_short() {
        let lineage = Lineage::begin(Epoch::FIRST, Some(7)).next(Some(3)).next(None);
        assert_eq!(lineage.slack, Some(7));
        assert_eq!(lineage.next(Some(9)).slack, Some(9));
        let long = grown(&lineage, 40_000);
        assert!(long.before.len() <= 49, "{}", long.before.len());
    }
}
