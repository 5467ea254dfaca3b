//! Invariant 9: one order of all operations on a key, each between its beginning and its end, explains every answer, as a
//! register of mark and ids would give them.
//!
//! Whether there is such an order is the search's to find; beyond its limits it gives up, and that is said. Where there is
//! none, the fewest operations that show it are looked for.

use hashbrown::HashMap;

use super::clients::is_accepted;
use super::facts::Facts;
use super::register::{Effect, Step, explain};
use super::said::{Fence, Said};
use super::shrink::shrunk;
use super::verdict::{Invariant, Violation};
use crate::history::{Exercise, GuardForm};
use crate::linear::Answer;

/// The finding: violations, and keys for which the search gave up.
pub(super) fn check(facts: &Facts<'_>) -> (Vec<Violation>, Vec<String>) {
    let (mut found, mut given_up) = (Vec::new(), Vec::new());
    let cumulative = facts.run.guard == GuardForm::Mark;
    for mut on_key in on_keys(facts) {
        on_key.steps.sort_by_key(|step| step.began);
        let key = on_key.name.1;
        match explain(&on_key.steps, cumulative) {
            Answer::Explained => {}
            Answer::Unexplained => {
                let why = format!("no order of the operations on {key} explains their answers");
                let lines = shrunk(on_key.steps, cumulative);
                found.push(Violation::new(Invariant::Linearizable, why, &lines));
            }
            Answer::Unknown => given_up.push(format!(
                "the operations on {key} are too many to try all their orders"
            )),
        }
    }
    (found, given_up)
}

/// The operations on one key.
#[derive(Default)]
struct OnKey<'h> {
    name: (&'h str, &'h str),
    steps: Vec<Step>,
    /// By the numbers of the ids that were written, their numbers among them.
    ids: HashMap<u32, usize>,
}

/// In the order of the keys' names.
fn on_keys<'h>(facts: &Facts<'h>) -> Vec<OnKey<'h>> {
    let mut keys: Vec<OnKey<'_>> = Vec::new();
    for op in &facts.ops {
        // What belongs to no grant is invariant 7's, and has no true token to judge by.
        let (Some(token), Some(on)) = (op.token, op.on) else {
            continue;
        };
        // An answer before its request is the clock's fault, not the register's.
        let ended = op.answer.map(|answer| answer.at.max(op.sent()));
        let id = op.bears;
        let (ended, optional, id) = match op.said() {
            Said::Accepted => (ended, false, Some(id)),
            Said::Fenced(Fence::Stale) => (ended, false, None),
            // A refusal for the resource's own reasons commits its admission, if it came that far.
            Said::Declined => (ended, true, Some(None)),
            Said::Unknown | Said::Deferred if is_accepted(facts, op) => (None, false, Some(id)),
            // Its admission may have been committed, and its write is another operation's.
            Said::Deferred => (ended, true, Some(None)),
            // Without an id nothing can be read back; with one, it was read back and is not there.
            Said::Unknown if id.is_none() => (None, true, Some(None)),
            _ => continue,
        };
        if keys.len() <= on as usize {
            keys.resize_with(on as usize + 1, OnKey::default);
        }
        let on_key = &mut keys[on as usize];
        if on_key.steps.is_empty() {
            on_key.name = (&op.request.class, &op.request.key);
        }
        let effect = match id {
            Some(id) => {
                let next = on_key.ids.len();
                let id = id.map(|id| *on_key.ids.entry(id).or_insert(next));
                Effect::Admit { token, id }
            }
            None => Effect::Stale { token },
        };
        // Of hundreds of writes under way at once no search would find an end. What was held takes effect with its last byte,
        // or breaks rule 3.
        let began = match facts.run.exercise {
            Exercise::Swept { .. } => op.sent(),
            _ => op.began,
        };
        on_key.steps.push(Step {
            line: op.line,
            began,
            ended,
            optional,
            effect,
        });
    }
    add_reads(facts, &mut keys);
    keys.retain(|on_key| !on_key.steps.is_empty());
    keys.sort_by_key(|on_key| on_key.name);
    keys
}

fn add_reads(facts: &Facts<'_>, keys: &mut [OnKey<'_>]) {
    let mut reads: Vec<_> = facts.reads.iter().zip(&facts.shown).collect();
    // In the order of their beginnings, so that little is left to sort among them and the operations.
    reads.sort_by_cached_key(|(read, _)| read.body.began);
    for (read, shown) in reads {
        let Some(on_key) = keys
            .get_mut(shown.on as usize)
            .filter(|on_key| !on_key.steps.is_empty())
        else {
            continue;
        };
        // Ids of what is not among the steps (a probe's, or one without a grant) are judged elsewhere.
        let ids = facts.shown_ids[shown.ids.clone()].iter();
        let ids = ids.filter_map(|id| on_key.ids.get(id).copied()).collect();
        on_key.steps.push(Step {
            line: read.line,
            began: read.body.began,
            ended: Some(read.at.max(read.body.began)),
            optional: false,
            effect: Effect::Show { ids },
        });
    }
}
