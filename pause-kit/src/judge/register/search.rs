//! The register as the search asks for it: by numbers alone, which are small and lie side by side.

use hashbrown::HashMap;

use super::ranks::{Ranks, ranks_of_reads};
use super::{Effect, Step};
use crate::history::At;
use crate::linear::{Subject, bits_of};

/// What the register holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// The mark's place among all tokens, from 1; 0 before the first.
    mark: u32,
    /// How many ids were written, where reads show all of them; else the place of the last one.
    written: u32,
}

#[derive(Clone, Copy)]
enum What {
    Admit,
    Stale,
    Show,
}

/// A step.
#[derive(Clone, Copy)]
struct Move {
    what: What,
    required: bool,
    /// The place of its token among all tokens, from 1.
    mark: u32,
    /// The place of its token among those that must be admitted.
    token_rank: u32,
    read_rank: Option<u32>,
    /// The place of the id that it writes, or that it shows as the last one. Of what shows all ids, the rank says all.
    id: Option<u32>,
    kind: Option<u32>,
    lasts_until: At,
}

pub(super) struct Register {
    moves: Vec<Move>,
    cumulative: bool,
    /// Of the tokens of what must be admitted, in their order, the places among all tokens.
    marks: Vec<u32>,
    by_token: Ranks,
    /// Reads that show all ids so far, by how much they show: rank `2 n + 1`, and `2 n` for the writes that the `n`th is the
    /// first to show.
    by_read: Ranks,
    /// By id, how many reads show it as the last one and are left.
    readers: Vec<u32>,
    /// By id, how many steps bear it.
    bearers: Vec<u32>,
    /// The place that stands for no id among the ids. The next one stands for all that no read shows any more.
    nothing: u32,
}

impl Register {
    /// `None` where two reads contradict each other in any order.
    pub(super) fn over(steps: &[Step], cumulative: bool) -> Option<Register> {
        let shown = steps.iter().flat_map(|step| step.shown());
        let borne = steps.iter().filter_map(Step::id);
        let ids = shown.copied().chain(borne).max().map_or(0, |id| id + 1);
        let mut bearers = vec![0; ids + 2];
        steps.iter().filter_map(Step::id).for_each(|id| bearers[id] += 1);
        let read_ranks = match cumulative {
            true => ranks_of_reads(steps, &bearers)?,
            false => vec![None; steps.len()],
        };
        let tokens = Tokens::of(steps);
        let nothing = ids as u32;
        let moves = steps.iter().zip(&read_ranks);
        let mut moves: Vec<Move> = moves
            .map(|(step, read_rank)| tokens.of_step(step, *read_rank, nothing))
            .collect();
        let mut readers = vec![0; ids + 2];
        if !cumulative {
            if steps.iter().any(|step| step.shown().len() > 1) {
                return None;
            }
            let mut last_shown = vec![At::from_nanos(0); ids + 2];
            for (step, one) in steps.iter().zip(&moves) {
                if let (What::Show, Some(id)) = (one.what, one.id) {
                    readers[id as usize] += 1;
                    let last = &mut last_shown[id as usize];
                    *last = step.began.max(*last);
                }
            }
            for one in &mut moves {
                // Written once more, it may be shown then.
                if let (What::Admit, Some(id)) = (one.what, one.id)
                    && bearers[id as usize] == 1
                {
                    one.lasts_until = last_shown[id as usize];
                }
            }
        }
        let required = moves.iter().filter(|one| one.must_be_admitted());
        let mut register = Register {
            by_token: Ranks::of(required.map(|one| one.token_rank as usize)),
            by_read: Ranks::of(read_ranks.into_iter().flatten()),
            marks: tokens.required,
            moves,
            cumulative,
            readers,
            bearers,
            nothing,
        };
        register.sort_by_kind();
        Some(register)
    }

    fn sort_by_kind(&mut self) {
        let mut numbers = HashMap::new();
        for one in &mut self.moves {
            // What is read of it alone makes a write another than the rest.
            let is_read = |id: u32| !self.cumulative && self.readers[id as usize] > 0;
            if !one.must_be_admitted() || one.id.is_some_and(is_read) {
                continue;
            }
            let next = numbers.len() as u32;
            let kind = (one.mark, one.id.is_some(), one.read_rank);
            one.kind = Some(*numbers.entry(kind).or_insert(next));
        }
    }

    /// How many reads that show what stands there last are left.
    fn readers_of(&self, written: u32) -> u32 {
        let written = written as usize;
        // Written again, it may be read then.
        match self.bearers[written] > 1 {
            true => 0,
            false => self.readers[written],
        }
    }
}

impl Subject for Register {
    type State = State;

    fn first(&self) -> State {
        let written = if self.cumulative { 0 } else { self.nothing };
        State { mark: 0, written }
    }

    fn after(&self, state: State, number: usize) -> Option<State> {
        let one = &self.moves[number];
        match one.what {
            What::Admit if state.mark > one.mark => None,
            What::Admit => {
                let written = match one.id {
                    None => state.written,
                    Some(_) if self.cumulative => state.written + 1,
                    Some(id) if self.readers[id as usize] > 0 => id,
                    // No read shows it.
                    Some(_) => self.nothing + 1,
                };
                let mark = one.mark;
                Some(State { mark, written })
            }
            What::Stale => (state.mark > one.mark).then_some(state),
            What::Show if self.cumulative => {
                let shows = one.read_rank == Some(self.by_read.lowest as u32);
                shows.then_some(state)
            }
            What::Show => (one.id == Some(state.written)).then_some(state),
        }
    }

    fn fingerprint(&self, state: State) -> u128 {
        // The salt keeps them apart from the numbers of operations.
        bits_of(u64::from(state.mark) << 32 | u64::from(state.written), 1 << 63)
    }

    fn note(&mut self, number: usize, done: bool) {
        let one = &self.moves[number];
        match (one.what, one.id) {
            (What::Admit, _) if one.required => self.by_token.note(one.token_rank as usize, done),
            (What::Show, Some(id)) => {
                let readers = &mut self.readers[id as usize];
                *readers = if done { *readers - 1 } else { *readers + 1 };
            }
            _ => {}
        }
        if let Some(rank) = one.read_rank {
            self.by_read.note(rank as usize, done);
        }
    }

    fn is_hopeless(&self, state: State) -> bool {
        let lowest = self.marks.get(self.by_token.lowest);
        lowest.is_some_and(|lowest| state.mark > *lowest)
    }

    fn may_come_next(&self, state: State, number: usize) -> bool {
        let one = &self.moves[number];
        let in_order = one.token_rank as usize <= self.by_token.lowest;
        let before_reads = one
            .read_rank
            .is_none_or(|rank| rank as usize == self.by_read.lowest);
        let overwrites = !self.cumulative && one.id.is_some();
        in_order && before_reads && !(overwrites && self.readers_of(state.written) > 0)
    }

    fn kind(&self, number: usize) -> Option<u32> {
        self.moves[number].kind
    }

    fn turn(&self, number: usize) -> Option<u32> {
        self.moves[number].id.filter(|_| !self.cumulative)
    }

    fn lasts_until(&self, number: usize) -> At {
        self.moves[number].lasts_until
    }
}

impl Move {
    fn must_be_admitted(&self) -> bool {
        matches!(self.what, What::Admit) && self.required
    }
}

/// All tokens in their order.
struct Tokens {
    all: Vec<i64>,
    /// The places, from 1, of those that must be admitted.
    required: Vec<u32>,
    /// By place, how many of these come before it.
    ranks: Vec<u32>,
}

impl Tokens {
    fn of(steps: &[Step]) -> Tokens {
        let mut all: Vec<i64> = steps.iter().filter_map(Step::token).collect();
        all.sort_unstable();
        all.dedup();
        let mut tokens = Tokens {
            all,
            required: Vec::new(),
            ranks: Vec::new(),
        };
        let mut is_required = vec![false; tokens.all.len() + 1];
        for step in steps.iter().filter(|step| !step.optional) {
            if let Effect::Admit { token, .. } = step.effect {
                is_required[tokens.place(token) as usize] = true;
            }
        }
        for (place, is_required) in (0..).zip(is_required) {
            tokens.ranks.push(tokens.required.len() as u32);
            tokens.required.extend(is_required.then_some(place));
        }
        tokens
    }

    fn place(&self, token: i64) -> u32 {
        1 + self.all.partition_point(|other| *other < token) as u32
    }

    fn of_step(&self, step: &Step, read_rank: Option<usize>, nothing: u32) -> Move {
        let (what, id) = match &step.effect {
            Effect::Admit { id, .. } => (What::Admit, id.map(|id| id as u32)),
            Effect::Stale { .. } => (What::Stale, None),
            Effect::Show { ids } => {
                let last = ids.first().map_or(nothing, |id| *id as u32);
                (What::Show, read_rank.is_none().then_some(last))
            }
        };
        let mark = step.token().map_or(0, |token| self.place(token));
        Move {
            what,
            required: !step.optional,
            mark,
            token_rank: self.ranks[mark as usize],
            read_rank: read_rank.map(|rank| rank as u32),
            id,
            kind: None,
            lasts_until: At::from_nanos(0),
        }
    }
}
