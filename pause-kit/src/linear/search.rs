//! The search through one part of a history: Wing and Gong's, with Lowe's memory of what was tried.
//!
//! It goes back and forth over one list without calling itself, so that no history is too long for the stack. What leaves the
//! state as it is, and fits, is taken at once, for it fits no better later, unless something optional has to come before it
//! or not at all. Of operations that are as good as each other the
//! one that ends first is tried, and no other: wherever the others stand, the two can change places.

use std::collections::HashSet;
use std::hash::Hash;
use std::ops::Range;

use super::left::Left;
use super::memory::{DoneSet, Memory, bits_of};
use crate::history::At;

/// When an operation took place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) began: At,
    /// `None`: it may take effect at any time after its beginning.
    pub(crate) ended: Option<At>,
    /// It may also have had no effect.
    pub(crate) optional: bool,
}

/// What the operations are done to, known by their numbers in the order of their beginnings.
pub(crate) trait Subject {
    type State: Copy + Eq + Hash;

    fn first(&self) -> Self::State;

    /// What the operation makes of this state. `None` when its answer does not fit.
    fn after(&self, state: Self::State, number: usize) -> Option<Self::State>;

    /// 128 bits of a state, which must not be those of another.
    fn fingerprint(&self, state: Self::State) -> u128;

    /// Learns that an operation is done, or is not done any more.
    fn note(&mut self, _number: usize, _done: bool) {}

    /// Whether something that is left can never fit any more.
    fn is_hopeless(&self, _state: Self::State) -> bool {
        false
    }

    /// Whether, with this operation next, all that is left might still fit.
    fn may_come_next(&self, _state: Self::State, _number: usize) -> bool {
        true
    }

    /// Operations of one kind make the same of every state, as far as anything else can tell.
    fn kind(&self, _number: usize) -> Option<u64> {
        None
    }
}

/// How much may be tried.
#[derive(Clone, Copy)]
pub(super) struct Budget {
    pub(super) bytes: usize,
    /// How often an operation is looked at.
    pub(super) looks: usize,
}

/// A state in which something else than the last choice may come next.
struct Branch<S> {
    state: S,
    /// How many operations had been taken.
    taken: usize,
    latest: At,
    done_to: usize,
    /// Where its choices begin among all that are open.
    choices: usize,
}

pub(super) struct Search<'s, S: Subject, M> {
    subject: &'s mut S,
    spans: &'s [Span],
    /// The first number of the part.
    from: usize,
    left: Left,
    /// How many operations are left that are not optional.
    required: usize,
    state: S::State,
    taken: Vec<usize>,
    /// The latest beginning among those that took effect.
    latest: At,
    done_to: usize,
    /// Of the operations that are done.
    fingerprint: u128,
    branches: Vec<Branch<S::State>>,
    /// What is still to be tried in each branch, the first one last, and whether it may be tried for others of its kind.
    choices: Vec<(usize, bool)>,
    tried: M,
    looks: usize,
}

impl<'s, S: Subject, M: Memory<S::State>> Search<'s, S, M> {
    pub(super) fn new(subject: &'s mut S, spans: &'s [Span], part: Range<usize>) -> Self {
        let required = spans[part.clone()].iter().filter(|span| !span.optional);
        Search {
            state: subject.first(),
            subject,
            spans,
            required: required.count(),
            taken: Vec::new(),
            latest: At::from_nanos(0),
            from: part.start,
            done_to: part.start,
            left: Left::new(part.start, part.end),
            fingerprint: 0,
            branches: Vec::new(),
            choices: Vec::new(),
            tried: M::default(),
            looks: 0,
        }
    }

    /// The states in which the part can end when it begins in one of `starts`: all, or the first that is found. `None` when
    /// the budget does not suffice.
    pub(super) fn ends(mut self, starts: &[S::State], all: bool, budget: Budget) -> Option<Vec<S::State>> {
        let mut ends = Vec::new();
        let mut known = HashSet::new();
        for start in starts {
            self.state = *start;
            loop {
                let hopeful = self.settle();
                if hopeful && self.required == 0 {
                    if known.insert(self.state) {
                        ends.push(self.state);
                    }
                    if !all {
                        self.go_back(0);
                        return Some(ends);
                    }
                }
                if self.tried.bytes() > budget.bytes || self.looks > budget.looks {
                    self.go_back(0);
                    return None;
                }
                if hopeful && self.is_new() {
                    self.branch();
                }
                if !self.next_choice() {
                    break;
                }
            }
            self.go_back(0);
            (self.latest, self.done_to) = (At::from_nanos(0), self.from);
        }
        Some(ends)
    }

    /// Takes each operation that fits and leaves the state as it is, and leaves out those that came too late to have an
    /// effect. False when something is left that will never fit.
    fn settle(&mut self) -> bool {
        if self.subject.is_hopeless(self.state) {
            return false;
        }
        let (mut earliest_end, mut optional_end) = (None, None);
        let mut at = self.left.first();
        while let Some((number, span)) = self.in_reach(at, earliest_end) {
            self.looks += 1;
            at = self.left.after(number);
            if span.optional {
                match span.ended {
                    Some(end) if end < self.latest => self.take(number),
                    end => optional_end = earlier(optional_end, end),
                }
            } else if self.subject.after(self.state, number) == Some(self.state)
                && begins_by(span, optional_end)
            {
                self.latest = self.latest.max(span.began);
                self.take(number);
            } else {
                earliest_end = earlier(earliest_end, span.ended);
            }
        }
        true
    }

    /// Opens a branch with everything that may come next.
    fn branch(&mut self) {
        let choices = self.choices.len();
        self.branches.push(Branch {
            state: self.state,
            taken: self.taken.len(),
            latest: self.latest,
            done_to: self.done_to,
            choices,
        });
        let (mut earliest_end, mut optional_end) = (None, None);
        let mut at = self.left.first();
        while let Some((number, span)) = self.in_reach(at, earliest_end) {
            self.looks += 1;
            at = self.left.after(number);
            // One that came too late to have an effect was left out before.
            match span.optional {
                true => optional_end = earlier(optional_end, span.ended),
                false => earliest_end = earlier(earliest_end, span.ended),
            }
            let fits = match self.subject.after(self.state, number) {
                None => false,
                // It was not taken at once: with it, something optional has no effect.
                Some(after) if after == self.state => !span.optional,
                Some(_) => self.subject.may_come_next(self.state, number),
            };
            if fits {
                let stands_for_its_kind = begins_by(span, optional_end);
                self.choices.push((number, stands_for_its_kind));
            }
        }
        let open = &mut self.choices[choices..];
        open.sort_by_key(|(number, _)| {
            let end = self.spans[*number].ended;
            (end.is_none(), end, *number)
        });
        let mut kinds = Vec::new();
        let mut kept = choices;
        for index in choices..self.choices.len() {
            let (number, stands_for_its_kind) = self.choices[index];
            let kind = self.subject.kind(number);
            if kind.is_none_or(|kind| !kinds.contains(&kind)) {
                kinds.extend(kind.filter(|_| stands_for_its_kind));
                self.choices[kept] = self.choices[index];
                kept += 1;
            }
        }
        self.choices.truncate(kept);
        self.choices[choices..].reverse();
    }

    /// Goes on with the next choice of the innermost branch that has one. False when there is none.
    fn next_choice(&mut self) -> bool {
        while let Some(branch) = self.branches.last() {
            let (state, taken, choices) = (branch.state, branch.taken, branch.choices);
            let (latest, done_to) = (branch.latest, branch.done_to);
            self.go_back(taken);
            (self.state, self.latest, self.done_to) = (state, latest, done_to);
            if self.choices.len() == choices {
                self.branches.pop();
                continue;
            }
            let (number, _) = self
                .choices
                .pop()
                .expect("more are open than there were before the branch");
            let after = self.subject.after(self.state, number);
            self.state = after.expect("what does not fit is no choice");
            self.latest = self.latest.max(self.spans[number].began);
            self.take(number);
            return true;
        }
        false
    }

    /// The operation, unless it began after something required that is left had already ended.
    fn in_reach(&self, number: Option<usize>, earliest_end: Option<At>) -> Option<(usize, Span)> {
        let number = number?;
        let span = self.spans[number];
        earliest_end
            .is_none_or(|end| span.began <= end)
            .then_some((number, span))
    }

    fn is_new(&mut self) -> bool {
        let fingerprint = self.fingerprint ^ self.subject.fingerprint(self.state);
        let (left, done_to, state) = (&self.left, self.done_to, self.state);
        self.tried.insert(fingerprint, || {
            let mut without = Vec::new();
            let mut at = left.first();
            while let Some(number) = at.filter(|number| *number < done_to) {
                without.push(number as u32);
                at = left.after(number);
            }
            let without = without.into_boxed_slice();
            let to = done_to as u32;
            (DoneSet { to, without }, state)
        })
    }

    fn take(&mut self, number: usize) {
        self.left.take(number);
        self.taken.push(number);
        self.done_to = self.done_to.max(number + 1);
        self.note(number, true);
    }

    fn go_back(&mut self, taken: usize) {
        while self.taken.len() > taken {
            let number = self.taken.pop().expect("more are taken than that");
            self.left.put_back(number);
            self.note(number, false);
        }
    }

    fn note(&mut self, number: usize, done: bool) {
        self.fingerprint ^= bits_of(number as u64, 0);
        if !self.spans[number].optional {
            self.required = if done {
                self.required - 1
            } else {
                self.required + 1
            };
        }
        self.subject.note(number, done);
    }
}

/// Whether it began before everything optional had ended, so that nothing optional must come before it.
fn begins_by(span: Span, optional_end: Option<At>) -> bool {
    optional_end.is_none_or(|end| span.began <= end)
}

fn earlier(one: Option<At>, other: Option<At>) -> Option<At> {
    one.into_iter().chain(other).min()
}
