//! The search for one order of operations that explains every answer: Wing and Gong's, with Lowe's memory of states
//! already tried.
//!
//! It goes back and forth over one list without calling itself, so that no history is too long for the stack. What changes
//! nothing is taken at once when it fits, for it fits no better later. States already tried are remembered by fingerprints
//! of 128 bits: should two share one, an order may be missed, and none is ever invented.

use std::collections::HashSet;

use crate::history::At;

/// How many states are tried before the search gives up.
const STATES: usize = 1_000_000;
/// How many operations are looked at, each time, before the search gives up.
const LOOKS: usize = 10_000_000;

/// What an operation does to the register, and what it says about it. Ids are numbers of the caller's.
#[derive(Debug)]
pub(super) enum Effect {
    /// Admitted: the mark was no larger. Bears an id when it wrote one.
    Admit { token: i64, id: Option<usize> },
    /// Refused as stale: the mark was larger.
    Stale { token: i64 },
    /// A read that showed just these ids.
    Show { ids: Vec<usize> },
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) began: At,
    /// `None`: it may take effect at any time after its beginning.
    pub(super) ended: Option<At>,
    /// It may also have no effect. It then bears no id.
    pub(super) optional: bool,
    pub(super) effect: Effect,
}

/// Whether some order of the steps explains them all. Reads show all ids so far when `cumulative`, else the last one.
/// `None` when there are too many orders.
pub(super) fn explains(mut steps: Vec<Step>, cumulative: bool) -> Option<bool> {
    steps.sort_by_key(|step| step.began);
    Search::over(&steps, cumulative).run()
}

/// What the register holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Register {
    mark: Option<i64>,
    /// The last id, when reads show that one only.
    last: Option<usize>,
}

/// A step of which it is tried that it comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Choice {
    index: usize,
    effect: bool,
}

/// A state in which something else than the first choice may come next.
struct Branch {
    register: Register,
    /// How many steps had been taken.
    taken: usize,
    choice: Choice,
}

struct Search<'s> {
    steps: &'s [Step],
    cumulative: bool,
    /// By id, the steps that bear it.
    bearers: Vec<Vec<usize>>,
    /// What is left, in the order of beginnings: the next and the one before, with the number of steps for the end.
    next: Vec<usize>,
    before: Vec<usize>,
    done: Vec<bool>,
    /// How many of the steps that are done bear an id.
    borne: usize,
    taken: Vec<usize>,
    register: Register,
    /// Of the steps that are done.
    fingerprint: u128,
    tried: HashSet<(u128, Register)>,
    looks: usize,
}

impl<'s> Search<'s> {
    fn over(steps: &'s [Step], cumulative: bool) -> Search<'s> {
        let count = steps.len();
        let mut bearers: Vec<Vec<usize>> = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            if let Some(id) = step.id() {
                bearers.resize_with(bearers.len().max(id + 1), Vec::new);
                bearers[id].push(index);
            }
        }
        Search {
            steps,
            cumulative,
            bearers,
            next: (1..=count).chain([0]).collect(),
            before: [count].into_iter().chain(0..count).collect(),
            done: vec![false; count],
            borne: 0,
            taken: Vec::new(),
            register: Register {
                mark: None,
                last: None,
            },
            fingerprint: 0,
            tried: HashSet::new(),
            looks: 0,
        }
    }

    fn run(mut self) -> Option<bool> {
        let mut branches: Vec<Branch> = Vec::new();
        loop {
            let open = self.take_what_changes_nothing();
            if self.taken.len() == self.steps.len() {
                return Some(true);
            }
            if self.looks > LOOKS || self.tried.len() >= STATES {
                return None;
            }
            let mut choice = match open && self.tried.insert((self.fingerprint, self.register)) {
                true => self.choice_after(None),
                false => None,
            };
            // With nothing to choose here, something else is tried where there was a choice last.
            while choice.is_none() {
                let Some(last) = branches.pop() else {
                    return Some(false);
                };
                self.go_back(&last);
                choice = self.choice_after(Some(last.choice));
            }
            if let Some(choice) = choice {
                branches.push(Branch {
                    register: self.register,
                    taken: self.taken.len(),
                    choice,
                });
                self.choose(choice);
            }
        }
    }

    /// Takes each step that fits the register and leaves it as it is. False when something is left that will never fit.
    fn take_what_changes_nothing(&mut self) -> bool {
        let mut earliest_end = None;
        let mut index = self.first();
        while let Some(step) = self.may_be_next(index, earliest_end) {
            self.looks += 1;
            let after = self.next[index];
            let mark = self.register.mark;
            let takes = match &step.effect {
                // The mark never falls.
                Effect::Admit { token, .. } if mark.is_some_and(|mark| mark > *token) => {
                    if !step.optional {
                        return false;
                    }
                    true
                }
                Effect::Admit { token, id } => id.is_none() && mark == Some(*token),
                Effect::Stale { token } => mark.is_some_and(|mark| mark > *token),
                Effect::Show { ids } => self.shows(ids),
            };
            match takes {
                true => self.take(index),
                false => earliest_end = earlier(earliest_end, step.ended),
            }
            index = after;
        }
        true
    }

    /// The next thing to try in this state, after this one.
    fn choice_after(&mut self, last: Option<Choice>) -> Option<Choice> {
        let mut earliest_end = None;
        let mut index = self.first();
        let mut tried = last.is_some();
        while let Some(step) = self.may_be_next(index, earliest_end) {
            self.looks += 1;
            match last {
                Some(last) if tried && last.index == index => {
                    tried = false;
                    if last.effect && step.optional {
                        let effect = false;
                        return Some(Choice { index, effect });
                    }
                }
                _ if !tried && matches!(step.effect, Effect::Admit { .. }) => {
                    let effect = true;
                    return Some(Choice { index, effect });
                }
                _ => {}
            }
            earliest_end = earlier(earliest_end, step.ended);
            index = self.next[index];
        }
        None
    }

    /// The step, unless it is the end, or began after something left of it had already ended.
    fn may_be_next(&self, index: usize, earliest_end: Option<At>) -> Option<&'s Step> {
        let step = self.steps.get(index)?;
        earliest_end.is_none_or(|end| step.began <= end).then_some(step)
    }

    /// The first step that is left. The end stands between the last and the first.
    fn first(&self) -> usize {
        self.next[self.steps.len()]
    }

    fn choose(&mut self, choice: Choice) {
        self.take(choice.index);
        if let Effect::Admit { token, id } = self.steps[choice.index].effect
            && choice.effect
        {
            self.register.mark = self.register.mark.max(Some(token));
            if !self.cumulative && id.is_some() {
                self.register.last = id;
            }
        }
    }

    fn take(&mut self, index: usize) {
        let (before, next) = (self.before[index], self.next[index]);
        (self.next[before], self.before[next]) = (next, before);
        self.mark_done(index, true);
        self.taken.push(index);
    }

    fn go_back(&mut self, branch: &Branch) {
        for index in self.taken.split_off(branch.taken).into_iter().rev() {
            let (before, next) = (self.before[index], self.next[index]);
            (self.next[before], self.before[next]) = (index, index);
            self.mark_done(index, false);
        }
        self.register = branch.register;
    }

    fn mark_done(&mut self, index: usize, done: bool) {
        self.done[index] = done;
        self.fingerprint ^= fingerprint_of(index);
        if self.steps[index].id().is_some() {
            self.borne = if done { self.borne + 1 } else { self.borne - 1 };
        }
    }

    fn shows(&self, ids: &[usize]) -> bool {
        if !self.cumulative {
            return ids == self.register.last.as_slice();
        }
        let bearers = || ids.iter().flat_map(|id| &self.bearers[*id]);
        bearers().count() == self.borne && bearers().all(|index| self.done[*index])
    }
}

impl Step {
    fn id(&self) -> Option<usize> {
        match self.effect {
            Effect::Admit { id, .. } => id,
            _ => None,
        }
    }
}

fn earlier(one: Option<At>, other: Option<At>) -> Option<At> {
    one.into_iter().chain(other).min()
}

/// 128 bits that look like chance, of a step's number.
fn fingerprint_of(index: usize) -> u128 {
    // SplitMix64.
    let half = |salt: u64| {
        let mut bits = (index as u64)
            .wrapping_add(salt)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    };
    u128::from(half(1)) << 64 | u128::from(half(1 << 40))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(began: u64, ended: u64, effect: Effect) -> Step {
        Step {
            began: At::from_nanos(began),
            ended: Some(At::from_nanos(ended)),
            optional: false,
            effect,
        }
    }

    fn write(began: u64, ended: u64, token: i64, id: usize) -> Step {
        let id = Some(id);
        step(began, ended, Effect::Admit { token, id })
    }

    fn read(began: u64, ended: u64, ids: &[usize]) -> Step {
        let ids = ids.to_vec();
        step(began, ended, Effect::Show { ids })
    }

    #[test]
    fn fifty_thousand_reads_are_judged_whether_at_once_or_one_after_the_other() {
        for at_once in [true, false] {
            let steps = |wrong: &[usize]| {
                let mut steps = vec![write(0, 1, 5, 0)];
                let began = |at: u64| if at_once { 10 } else { 10 + at };
                steps.extend((0..50_000).map(|at| read(began(at), began(at), &[0])));
                steps.push(read(70_000, 70_001, wrong));
                steps
            };
            assert_eq!(explains(steps(&[0]), true), Some(true), "at once: {at_once}");
            assert_eq!(explains(steps(&[]), true), Some(false), "at once: {at_once}");
        }
    }

    #[test]
    fn fifty_thousand_writes_one_after_the_other_are_judged() {
        let steps = (0..50_000).map(|at| write(2 * at, 2 * at + 1, 5, at as usize));
        assert_eq!(explains(steps.collect(), true), Some(true));
    }

    #[test]
    fn too_many_orders_are_given_up_in_a_history_of_any_length() {
        for count in [40, 20_000] {
            let mut steps: Vec<Step> = (0..count).map(|id| write(0, 1, 5, id)).collect();
            // Both cannot be: whichever of two writes came first, it was seen without the other.
            steps.extend([read(0, 1, &[0]), read(0, 1, &[1])]);
            assert_eq!(explains(steps, true), None, "{count} writes");
        }
    }

    #[test]
    fn a_read_that_fits_only_between_two_writes_is_placed_there() {
        for cumulative in [true, false] {
            let writes = || vec![write(0, 9, 5, 1), write(0, 9, 5, 0)];
            let with = |ids: &[usize]| {
                let mut steps = writes();
                steps.push(read(0, 9, ids));
                explains(steps, cumulative)
            };
            assert_eq!(with(&[]), Some(true));
            assert_eq!(with(&[0]), Some(true));
            assert_eq!(with(&[1]), Some(true));
            assert_eq!(with(&[1, 0]), Some(cumulative));
            let mut both = writes();
            both.extend([read(0, 9, &[0]), read(0, 9, &[1])]);
            assert_eq!(explains(both, cumulative), Some(!cumulative));
        }
    }

    #[test]
    fn what_may_have_had_no_effect_is_tried_both_ways() {
        let raise = |token, optional| Step {
            optional,
            ..step(2, 3, Effect::Admit { token, id: None })
        };
        let stale = |token| step(4, 5, Effect::Stale { token });
        let with = |optional, last: Step| explains(vec![write(0, 1, 5, 0), raise(7, optional), last], true);
        assert_eq!(with(true, stale(6)), Some(true), "it took effect");
        assert_eq!(with(true, write(4, 5, 6, 1)), Some(true), "it did not");
        assert_eq!(with(false, write(4, 5, 6, 1)), Some(false), "it must have");
        let below = explains(vec![write(0, 1, 5, 0), raise(4, true), stale(4)], true);
        assert_eq!(below, Some(true), "it cannot have");
    }
}
