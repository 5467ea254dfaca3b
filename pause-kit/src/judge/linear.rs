//! Invariant 9: one order of all operations on a key, each between its beginning and its end, explains every answer, as a
//! register of mark and ids would give them.
//!
//! The search is Wing and Gong's with Lowe's memory of states already tried. It is exact, and meant for the short
//! histories of one scenario: beyond [`STATES`] states it gives up and says so.

use std::collections::{BTreeMap, HashSet};

use super::clients::is_accepted;
use super::facts::Facts;
use super::said::{Fence, Said};
use super::verdict::{Invariant, Violation};
use crate::history::{At, GuardForm};

/// How many states are tried for one key before the search gives up.
const STATES: usize = 1_000_000;

/// The finding: violations, and keys for which the search gave up.
pub(super) fn check(facts: &Facts<'_>) -> (Vec<Violation>, Vec<String>) {
    let (mut found, mut given_up) = (Vec::new(), Vec::new());
    for ((_, key), steps) in steps_by_key(facts) {
        let mut search = Search {
            steps: &steps,
            cumulative: facts.run.guard == GuardForm::Mark,
            tried: HashSet::new(),
        };
        let start = State {
            done: vec![false; steps.len()],
            mark: None,
            last_id: None,
        };
        match search.reaches_the_end(&start) {
            Some(true) => {}
            Some(false) => {
                let why = format!("no order of the operations on {key} explains their answers");
                let lines: Vec<usize> = steps.iter().map(|step| step.line).collect();
                found.push(Violation::new(Invariant::Linearizable, why, &lines));
            }
            None => given_up.push(format!(
                "the operations on {key} are too many to try all their orders"
            )),
        }
    }
    (found, given_up)
}

/// What an operation does to the register, and what it says about it.
#[derive(Debug)]
enum Effect<'h> {
    /// Admitted: the mark was no larger. Bears an id when it wrote one.
    Admit { token: i64, id: Option<&'h str> },
    /// Refused as stale: the mark was larger.
    Stale { token: i64 },
    /// A read that showed just these ids.
    Show { ids: Vec<&'h str> },
}

#[derive(Debug)]
struct Step<'h> {
    line: usize,
    began: At,
    /// `None`: it may take effect at any time after its beginning.
    ended: Option<At>,
    /// It may also have no effect.
    optional: bool,
    effect: Effect<'h>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    done: Vec<bool>,
    mark: Option<i64>,
    last_id: Option<usize>,
}

struct Search<'s, 'h> {
    steps: &'s [Step<'h>],
    cumulative: bool,
    tried: HashSet<State>,
}

impl Search<'_, '_> {
    /// Whether some order of what is left explains it. `None` when the search gave up.
    fn reaches_the_end(&mut self, state: &State) -> Option<bool> {
        let left = || (0..self.steps.len()).filter(|index| !state.done[*index]);
        if left().next().is_none() {
            return Some(true);
        }
        if self.tried.len() >= STATES {
            return None;
        }
        if !self.tried.insert(state.clone()) {
            return Some(false);
        }
        // Nothing may come next that began after something left had already ended.
        let earliest_end = left().filter_map(|index| self.steps[index].ended).min();
        let next: Vec<usize> = left()
            .filter(|index| earliest_end.is_none_or(|end| self.steps[*index].began <= end))
            .collect();
        for index in next {
            for after in self.after(state, index) {
                if self.reaches_the_end(&after)? {
                    return Some(true);
                }
            }
        }
        Some(false)
    }

    /// The register after a step: in no way when the step cannot happen in this state, in two when it may also be without
    /// effect.
    fn after(&self, state: &State, index: usize) -> impl Iterator<Item = State> + use<> {
        let mut after = state.clone();
        after.done[index] = true;
        let without_effect = self.steps[index].optional.then(|| after.clone());
        let possible = match &self.steps[index].effect {
            Effect::Admit { token, id } => {
                after.mark = state.mark.max(Some(*token));
                if id.is_some() {
                    after.last_id = Some(index);
                }
                state.mark.is_none_or(|mark| mark <= *token)
            }
            Effect::Stale { token } => state.mark.is_some_and(|mark| mark > *token),
            Effect::Show { ids } => self.shows(state, ids),
        };
        possible.then_some(after).into_iter().chain(without_effect)
    }

    fn shows(&self, state: &State, ids: &[&str]) -> bool {
        if !self.cumulative {
            let last = state.last_id.and_then(|index| self.id_of(index));
            return ids == last.as_slice();
        }
        (0..self.steps.len()).all(|index| {
            let id = self.id_of(index);
            id.is_none_or(|id| state.done[index] == ids.contains(&id))
        })
    }

    fn id_of(&self, index: usize) -> Option<&str> {
        match self.steps[index].effect {
            Effect::Admit { id, .. } => id,
            _ => None,
        }
    }
}

fn steps_by_key<'h>(facts: &Facts<'h>) -> BTreeMap<(&'h str, &'h str), Vec<Step<'h>>> {
    let mut keys: BTreeMap<(&'h str, &'h str), Vec<Step<'h>>> = BTreeMap::new();
    for op in &facts.ops {
        // What belongs to no grant is invariant 7's, and has no true token to judge by.
        let Some(token) = op.token else { continue };
        // An answer before its request is the clock's fault, not the register's.
        let ended = op.answer.map(|answer| answer.at.max(op.began));
        let id = op.request.id.as_deref();
        let (ended, optional, effect) = match op.said() {
            Said::Accepted => (ended, false, Effect::Admit { token, id }),
            Said::Fenced(Fence::Stale) => (ended, false, Effect::Stale { token }),
            // A refusal for the resource's own reasons commits its admission, if it came that far.
            Said::Declined => (ended, true, Effect::Admit { token, id: None }),
            Said::Unknown if is_accepted(facts, op) => (None, false, Effect::Admit { token, id }),
            // Without an id nothing can be read back; with one, it was read back and is not there.
            Said::Unknown if id.is_none() => (None, true, Effect::Admit { token, id }),
            _ => continue,
        };
        let steps = keys.entry((&op.request.class, &op.request.key)).or_default();
        steps.push(Step {
            line: op.line,
            began: op.began,
            ended,
            optional,
            effect,
        });
    }
    for read in &facts.reads {
        if let Some(steps) = keys.get_mut(&(read.body.class.as_str(), read.body.key.as_str())) {
            // Ids of what is not among the steps (a probe's, or one without a grant) are judged elsewhere.
            let known = |id: &&str| {
                steps
                    .iter()
                    .any(|step| matches!(step.effect, Effect::Admit { id: Some(of), .. } if of == *id))
            };
            let ids = read.body.ids.iter().map(String::as_str).filter(known).collect();
            steps.push(Step {
                line: read.line,
                began: read.body.began,
                ended: Some(read.at.max(read.body.began)),
                optional: false,
                effect: Effect::Show { ids },
            });
        }
    }
    keys
}
