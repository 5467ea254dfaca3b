//! The register that a guarded key is: its mark, and the ids that were written to it.
//!
//! What the search may leave out follows from three things that no order can change. The mark never falls: all that was
//! admitted with one token comes before anything with a larger one. Reads that show all ids so far show more and more: what
//! the first of them shows comes before it, and everything else after. And where reads show the last id alone, nothing is
//! written between a write and the reads that show it.

use std::collections::HashMap;

use crate::history::At;
use crate::linear::{self, Answer, Span, Subject, bits_of};

/// What an operation does to the register, and what it says about it. Ids are numbers of the caller's.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    /// Admitted: the mark was no larger. Bears an id when it wrote one.
    Admit { token: i64, id: Option<usize> },
    /// Refused as stale: the mark was larger.
    Stale { token: i64 },
    /// A read that showed just these ids.
    Show { ids: Vec<usize> },
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Its line in the history.
    pub(super) line: usize,
    pub(super) began: At,
    /// `None`: it may take effect at any time after its beginning.
    pub(super) ended: Option<At>,
    /// It may also have had no effect. It then bears no id.
    pub(super) optional: bool,
    pub(super) effect: Effect,
}

/// Whether some order of the steps, which stand in the order of their beginnings, explains them all. Reads show all ids so
/// far when `cumulative`, else the last one.
pub(super) fn explain(steps: &[Step], cumulative: bool) -> Answer {
    let spans: Vec<Span> = steps
        .iter()
        .map(|step| Span {
            began: step.began,
            ended: step.ended,
            optional: step.optional,
        })
        .collect();
    match Register::over(steps, cumulative) {
        Some(mut register) => linear::explain(&mut register, &spans),
        None => Answer::Unexplained,
    }
}

/// What the register holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    mark: Option<i64>,
    written: Written,
}

/// What was written, as far as reads show it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Written {
    Nothing,
    /// So many ids, where reads show all of them.
    Ids(u32),
    // Where reads show the last id alone:
    /// An id that no read shows.
    Unseen,
    Id(u32),
}

/// What has to be done in a fixed order, one rank after the other.
struct Ranks {
    /// How much of each rank is left.
    left: Vec<u32>,
    /// The lowest rank of which anything is left.
    lowest: usize,
}

impl Ranks {
    fn note(&mut self, rank: usize, done: bool) {
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

    fn of(ranks: impl Iterator<Item = usize>) -> Ranks {
        let mut left = Vec::new();
        for rank in ranks {
            left.resize(left.len().max(rank + 1), 0);
            left[rank] += 1;
        }
        let lowest = left.iter().position(|left| *left > 0).unwrap_or(left.len());
        Ranks { left, lowest }
    }
}

struct Register<'s> {
    steps: &'s [Step],
    cumulative: bool,
    /// The tokens of what must have been admitted, in their order.
    tokens: Vec<i64>,
    by_token: Ranks,
    /// By step, the place of its token among these.
    token_rank: Vec<usize>,
    /// Reads that show all ids so far, by how much they show: rank `2 n + 1`, and `2 n` for the writes that the `n`th is the
    /// first to show.
    by_read: Ranks,
    read_rank: Vec<Option<usize>>,
    /// By id, how many reads show it as the last one and are left; for none, at the end.
    readers: Vec<u32>,
    /// By id, how many steps bear it.
    bearers: Vec<u32>,
    kinds: Vec<Option<u64>>,
}

impl<'s> Register<'s> {
    /// `None` where two reads contradict each other in any order.
    fn over(steps: &'s [Step], cumulative: bool) -> Option<Register<'s>> {
        let shown = steps.iter().flat_map(|step| match &step.effect {
            Effect::Show { ids } => ids.as_slice(),
            _ => &[],
        });
        let borne = steps.iter().filter_map(Step::id);
        let ids = shown.copied().chain(borne).max().map_or(0, |id| id + 1);
        let mut bearers = vec![0; ids];
        steps.iter().filter_map(Step::id).for_each(|id| bearers[id] += 1);
        let read_rank = match cumulative {
            true => ranks_of_reads(steps, &bearers)?,
            false => vec![None; steps.len()],
        };
        let mut readers = vec![0; ids + 1];
        if !cumulative {
            for step in steps {
                match step.effect {
                    Effect::Show { ref ids } if ids.len() > 1 => return None,
                    Effect::Show { ids: ref shown } => readers[shown.first().copied().unwrap_or(ids)] += 1,
                    _ => {}
                }
            }
        }
        let required = |step: &Step| match step.effect {
            Effect::Admit { token, .. } if !step.optional => Some(token),
            _ => None,
        };
        let mut tokens: Vec<i64> = steps.iter().filter_map(required).collect();
        tokens.sort_unstable();
        tokens.dedup();
        let rank = |step: &Step| tokens.partition_point(|token| Some(*token) < step.token());
        let token_rank: Vec<usize> = steps.iter().map(rank).collect();
        let admitted = steps.iter().zip(&token_rank);
        let admitted = admitted.filter_map(|(step, rank)| required(step).map(|_| *rank));
        let mut register = Register {
            by_token: Ranks::of(admitted),
            by_read: Ranks::of(read_rank.iter().flatten().copied()),
            kinds: Vec::new(),
            steps,
            cumulative,
            tokens,
            token_rank,
            read_rank,
            readers,
            bearers,
        };
        register.kinds = register.kinds();
        Some(register)
    }

    fn kinds(&self) -> Vec<Option<u64>> {
        let mut numbers = HashMap::new();
        let steps = self.steps.iter().enumerate();
        let kinds = steps.map(|(number, step)| match step.effect {
            _ if step.optional => None,
            // What is read of it alone makes a write another than the rest.
            Effect::Admit { id: Some(id), .. } if !self.cumulative && self.readers[id] > 0 => None,
            Effect::Admit { token, id } => {
                let next = numbers.len() as u64;
                let kind = (token, id.is_some(), self.read_rank[number]);
                Some(*numbers.entry(kind).or_insert(next))
            }
            _ => None,
        });
        kinds.collect()
    }

    /// The place of a read among [`Register::readers`].
    fn shown_last(&self, ids: &[usize]) -> usize {
        ids.first().copied().unwrap_or(self.readers.len() - 1)
    }

    /// How many reads that show what stands there last are left.
    fn readers_of(&self, written: Written) -> u32 {
        match written {
            Written::Nothing => self.readers[self.readers.len() - 1],
            Written::Ids(_) | Written::Unseen => 0,
            // Written again, it may be read then.
            Written::Id(id) if self.bearers[id as usize] > 1 => 0,
            Written::Id(id) => self.readers[id as usize],
        }
    }
}

impl Subject for Register<'_> {
    type State = State;

    fn first(&self) -> State {
        State {
            mark: None,
            written: Written::Nothing,
        }
    }

    fn after(&self, state: State, number: usize) -> Option<State> {
        match &self.steps[number].effect {
            Effect::Admit { token, .. } if state.mark.is_some_and(|mark| mark > *token) => None,
            Effect::Admit { token, id } => {
                let written = match (id, state.written) {
                    (None, before) => before,
                    (Some(_), Written::Ids(count)) => Written::Ids(count + 1),
                    (Some(_), _) if self.cumulative => Written::Ids(1),
                    (Some(id), _) if self.readers[*id] > 0 => Written::Id(*id as u32),
                    (Some(_), _) => Written::Unseen,
                };
                let mark = Some(*token);
                Some(State { mark, written })
            }
            Effect::Stale { token } => state.mark.is_some_and(|mark| mark > *token).then_some(state),
            Effect::Show { ids } => {
                let shows = match self.cumulative {
                    true => self.read_rank[number] == Some(self.by_read.lowest),
                    false => match (ids.as_slice(), state.written) {
                        ([], Written::Nothing) => true,
                        ([id], Written::Id(last)) => *id == last as usize,
                        _ => false,
                    },
                };
                shows.then_some(state)
            }
        }
    }

    fn fingerprint(&self, state: State) -> u128 {
        let mark = state.mark.map_or(0, |mark| bits_of(mark as u64, 1));
        let written = match state.written {
            Written::Nothing => 0,
            Written::Ids(count) => bits_of(count.into(), 3),
            Written::Unseen => bits_of(u64::MAX, 2),
            Written::Id(id) => bits_of(id.into(), 2),
        };
        mark ^ written
    }

    fn note(&mut self, number: usize, done: bool) {
        let step = &self.steps[number];
        match &step.effect {
            Effect::Admit { .. } if !step.optional => self.by_token.note(self.token_rank[number], done),
            Effect::Show { ids } if !self.cumulative => {
                let place = self.shown_last(ids);
                self.readers[place] = match done {
                    true => self.readers[place] - 1,
                    false => self.readers[place] + 1,
                };
            }
            _ => {}
        }
        if let Some(rank) = self.read_rank[number] {
            self.by_read.note(rank, done);
        }
    }

    fn is_hopeless(&self, state: State) -> bool {
        let lowest = self.tokens.get(self.by_token.lowest);
        lowest.is_some_and(|lowest| state.mark.is_some_and(|mark| mark > *lowest))
    }

    fn may_come_next(&self, state: State, number: usize) -> bool {
        let step = &self.steps[number];
        let in_order = self.token_rank[number] <= self.by_token.lowest;
        let before_reads = self.read_rank[number].is_none_or(|rank| rank == self.by_read.lowest);
        let overwrites = !self.cumulative && step.id().is_some();
        in_order && before_reads && !(overwrites && self.readers_of(state.written) > 0)
    }

    fn kind(&self, number: usize) -> Option<u64> {
        self.kinds[number]
    }
}

impl Step {
    pub(super) fn id(&self) -> Option<usize> {
        match self.effect {
            Effect::Admit { id, .. } => id,
            _ => None,
        }
    }

    fn token(&self) -> Option<i64> {
        match self.effect {
            Effect::Admit { token, .. } => Some(token),
            _ => None,
        }
    }
}

/// The ranks of reads that show all ids so far, and of the writes that they show. `None` where one of two shows what the
/// other does not, and the other too, or something that nothing wrote.
fn ranks_of_reads(steps: &[Step], bearers: &[u32]) -> Option<Vec<Option<usize>>> {
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

#[cfg(test)]
mod tests;
