//! The search through one part of a history: Wing and Gong's, with Lowe's memory of what was tried.
//!
//! It goes back and forth over one list without calling itself, so that no history is too long for the stack. What leaves the
//! state as it is, and fits, is taken at once, for it fits no better later, unless something optional has to come before it
//! or not at all. Of operations that are as good as each other the
//! one that ends first is tried, and no other: wherever the others stand, the two can change places.

use std::collections::HashSet;
use std::ops::Range;

use super::left::Left;
use super::memory::{DoneSet, Memory, bits_of};
use super::subject::{Span, Subject};
use super::turns::Turns;
use crate::history::At;

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
    latest: At,
    /// How many operations had been taken.
    taken: u32,
    done_to: u32,
    /// Where its choices begin among all that are open.
    choices: u32,
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
    taken: Vec<u32>,
    /// The latest beginning among those that took effect.
    latest: At,
    done_to: usize,
    /// Of the operations that are done.
    fingerprint: u128,
    branches: Vec<Branch<S::State>>,
    /// What is still to be tried in each branch, the first one last, and whether it may be tried for others of its kind.
    choices: Vec<(u32, bool)>,
    /// What was left when the state was settled, as far as it may come next.
    reach: Vec<u32>,
    /// What every choice was tried in.
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
            taken: Vec::with_capacity(part.len()),
            latest: At::from_nanos(0),
            from: part.start,
            done_to: part.start,
            left: Left::new(part.start, part.end),
            fingerprint: 0,
            branches: Vec::new(),
            choices: Vec::new(),
            reach: Vec::new(),
            tried: M::default(),
            looks: 0,
        }
    }

    /// The states in which the part can end when it begins in one of `starts`: all, or the first that is found, as which the
    /// subject is left then. `None` when the budget does not suffice.
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
                        return Some(ends);
                    }
                }
                if self.tried.bytes() > budget.bytes || self.looks > budget.looks {
                    self.go_back(0);
                    return None;
                }
                if hopeful && !self.is_tried() {
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
        self.reach.clear();
        let (mut earliest_end, mut optional_end) = (None, None);
        let mut at = self.left.first();
        while let Some(number) = at {
            let span = self.spans[number];
            // Nothing comes before something required that is left and had already ended when it began.
            if !begins_by(span, earliest_end) {
                break;
            }
            self.looks += 1;
            at = self.left.after(number);
            if span.optional {
                match span.ended {
                    Some(end) if end < self.latest => {
                        self.take(number);
                        continue;
                    }
                    end => optional_end = earlier(optional_end, end),
                }
            } else if self.subject.after(self.state, number) == Some(self.state)
                && begins_by(span, optional_end)
            {
                self.latest = self.latest.max(span.began);
                self.take(number);
                continue;
            } else {
                earliest_end = earlier(earliest_end, span.ended);
            }
            self.reach.push(number as u32);
        }
        true
    }

    /// Opens a branch with everything that may come next.
    fn branch(&mut self) {
        let choices = self.choices.len();
        self.branches.push(Branch {
            state: self.state,
            latest: self.latest,
            taken: self.taken.len() as u32,
            done_to: self.done_to as u32,
            choices: choices as u32,
        });
        let turns = self.turns();
        let mut optional_end = None;
        for number in &self.reach {
            let (span, at) = (self.spans[*number as usize], *number as usize);
            if span.optional {
                optional_end = earlier(optional_end, span.ended);
            }
            let fits = match self.subject.after(self.state, at) {
                None => false,
                // It was not taken at once: with it, something optional has no effect.
                Some(after) if after == self.state => !span.optional,
                Some(_) => {
                    let turn = self.subject.turn(at);
                    let lasts = |turn| turns.other_than(turn) >= self.subject.lasts_until(at);
                    turn.is_none_or(lasts) && self.subject.may_come_next(self.state, at)
                }
            };
            if fits {
                self.choices.push((*number, begins_by(span, optional_end)));
            }
        }
        if self.choices.len() - choices > 1 {
            self.sort_choices(choices);
        }
    }

    /// What ends first comes first, and of one kind only what stands for it.
    fn sort_choices(&mut self, from: usize) {
        let spans = self.spans;
        self.choices[from..].sort_unstable_by_key(|(number, _)| (end(spans[*number as usize]), *number));
        let mut kept = from;
        for index in from..self.choices.len() {
            let (number, stands_for_its_kind) = self.choices[index];
            let kind = self.subject.kind(number as usize);
            let stood_for =
                |(other, stands): &(u32, bool)| *stands && self.subject.kind(*other as usize) == kind;
            if kind.is_none() || !self.choices[from..kept].iter().any(stood_for) {
                self.choices[kept] = (number, stands_for_its_kind);
                kept += 1;
            }
        }
        self.choices.truncate(kept);
        self.choices[from..].reverse();
    }

    /// When, at the latest, the turns end that have to come.
    fn turns(&self) -> Turns {
        let mut turns = Turns::none();
        for number in &self.reach {
            let span = self.spans[*number as usize];
            if let Some(turn) = self.subject.turn(*number as usize).filter(|_| !span.optional) {
                turns.note(turn, end(span));
            }
        }
        turns
    }

    /// Goes on with the next choice of the innermost branch that has one. False when there is none.
    fn next_choice(&mut self) -> bool {
        while let Some(branch) = self.branches.last() {
            let (taken, choices) = (branch.taken as usize, branch.choices as usize);
            (self.state, self.latest, self.done_to) = (branch.state, branch.latest, branch.done_to as usize);
            self.go_back(taken);
            if self.choices.len() == choices {
                self.branches.pop();
                self.remember();
                continue;
            }
            let (number, _) = self
                .choices
                .pop()
                .expect("more are open than there were before the branch");
            let number = number as usize;
            let after = self.subject.after(self.state, number);
            self.state = after.expect("what does not fit is no choice");
            self.latest = self.latest.max(self.spans[number].began);
            self.take(number);
            return true;
        }
        false
    }

    /// Whether every choice was tried in this state before, after the same operations. Sets only grow on the way, so that none
    /// is met again before it was tried to its end.
    fn is_tried(&self) -> bool {
        !self.tried.is_empty()
            && self
                .tried
                .contains(self.of_all(), || (done(&self.left, self.done_to), self.state))
    }

    fn remember(&mut self) {
        let fingerprint = self.of_all();
        let (left, done_to, state) = (&self.left, self.done_to, self.state);
        self.tried.insert(fingerprint, || (done(left, done_to), state));
    }

    /// The fingerprint of what is done and the state.
    fn of_all(&self) -> u128 {
        self.fingerprint ^ self.subject.fingerprint(self.state)
    }

    fn take(&mut self, number: usize) {
        self.left.take(number);
        self.taken.push(number as u32);
        self.done_to = self.done_to.max(number + 1);
        self.note(number, true);
    }

    fn go_back(&mut self, taken: usize) {
        while self.taken.len() > taken {
            let number = self.taken.pop().expect("more are taken than that") as usize;
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

/// The operations that are done: all before `to`, without those that are left.
fn done(left: &Left, to: usize) -> DoneSet {
    let mut without = Vec::new();
    let mut at = left.first();
    while let Some(number) = at.filter(|number| *number < to) {
        without.push(number as u32);
        at = left.after(number);
    }
    DoneSet {
        to: to as u32,
        without: without.into_boxed_slice(),
    }
}

/// Whether it began before all of that had ended, so that none of it must come before.
fn begins_by(span: Span, end: Option<At>) -> bool {
    end.is_none_or(|end| span.began <= end)
}

fn end(span: Span) -> At {
    span.ended.unwrap_or(At::from_nanos(u64::MAX))
}

fn earlier(one: Option<At>, other: Option<At>) -> Option<At> {
    one.into_iter().chain(other).min()
}
