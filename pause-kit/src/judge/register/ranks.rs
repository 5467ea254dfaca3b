//! What has to be done in a fixed order.

use super::{Effect, Step};

/// What has to be done in a fixed order, one rank after the other.
pub(super) struct Ranks {
    /// How much of each rank is left.
    left: Vec<u32>,
    /// The lowest rank of which anything is left.
    pub(super) lowest: usize,
}

impl Ranks {
    pub(super) fn note(&mut self, rank: usize, done: bool) {
        if done {
            self.left[rank] -= 1;
            while self.left.get(self.lowest) == Some(&0) {
                self.lowest += 1;
            }
        } else {
            self.left[rank] += 1;
            self.lowest = self.lowest.min(rank);
        }
    }

    pub(super) fn of(ranks: impl Iterator<Item = usize>) -> Ranks {
        let mut left = Vec::new();
        for rank in ranks {
            left.resize(left.len().max(rank + 1), 0);
            left[rank] += 1;
        }
        let lowest = left.iter().position(|left| *left > 0).unwrap_or(left.len());
        Ranks { left, lowest }
    }
}

/// The ranks of reads that show all ids so far, and of the writes that they show. `None` where one of two shows what the
/// other does not, and the other too, or something that nothing wrote.
pub(super) fn ranks_of_reads(steps: &[Step], bearers: &[u32]) -> Option<Vec<Option<usize>>> {
    let mut reads: Vec<(u64, usize)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        if let Effect::Show { ids } = &step.effect {
            if ids.iter().any(|id| bearers[*id] == 0) {
                return None;
            }
            let shown = ids.iter().map(|id| u64::from(bearers[*id])).sum();
            reads.push((shown, number));
        }
    }
    reads.sort_unstable();
    let mut ranks = vec![None; steps.len()];
    // By id, the read that was the last to show it.
    let mut shown_by = vec![usize::MAX; bearers.len()];
    // By id, the first rank that shows it.
    let mut first = vec![usize::MAX; bearers.len()];
    let (mut rank, mut before) = (0, 0);
    for (shown, number) in reads {
        let Effect::Show { ids } = &steps[number].effect else {
            continue;
        };
        if shown > before {
            rank += 1;
        }
        let mut news = 0;
        for id in ids {
            if std::mem::replace(&mut shown_by[*id], number) == number {
                return None;
            }
            if first[*id] == usize::MAX {
                first[*id] = rank;
                news += u64::from(bearers[*id]);
            }
        }
        // What it shows and those before it did not must be all that it has more.
        if before + news != shown {
            return None;
        }
        before = shown;
        ranks[number] = Some(2 * rank + 1);
    }
    for (number, step) in steps.iter().enumerate() {
        if let Some(id) = step.id() {
            let rank = if first[id] == usize::MAX {
                rank + 1
            } else {
                first[id]
            };
            ranks[number] = Some(2 * rank);
        }
    }
    Some(ranks)
}
