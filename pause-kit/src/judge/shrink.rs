//! The fewest operations that no order explains.
//!
//! Only what cannot make an explained history unexplained is left out: a read or a refusal at any time; a write with the
//! reads that show it, where they show it alone; and an admission only with the refusals that may have rested on it. So what
//! remains is unexplained only if the whole is.

use std::collections::BTreeSet;

use super::register::{Effect, Step, explain};
use crate::linear::Answer;

/// How many operations are looked at in all, so that a long history is not looked at for ever.
const LOOKS: usize = 3_000_000;

/// The lines of a part of these steps that no order explains either, in their order.
pub(super) fn shrunk(mut steps: Vec<Step>, cumulative: bool) -> Vec<usize> {
    let mut looks = 0;
    let mut unexplained = |steps: &[Step]| {
        looks += steps.len() + 1;
        (looks < LOOKS).then(|| explain(steps, cumulative) == Answer::Unexplained)
    };
    let mut size = steps.len().div_ceil(2);
    let mut from = 0;
    while size > 0 {
        if from >= steps.len() {
            // Once more in the same size only where it is the last.
            (from, size) = (0, size / 2);
            continue;
        }
        let out = from..(from + size).min(steps.len());
        let fewer = without(&steps, out, cumulative);
        match unexplained(&fewer) {
            None => break,
            Some(true) => {
                steps = fewer;
                // What had to stay may be left out now.
                if size == 1 {
                    from = 0;
                }
            }
            Some(false) => from += size,
        }
    }
    let mut lines: Vec<usize> = steps.iter().map(|step| step.line).collect();
    lines.sort_unstable();
    lines
}

/// The steps without these, and without what cannot stay without them.
fn without(steps: &[Step], out: std::ops::Range<usize>, cumulative: bool) -> Vec<Step> {
    let gone = &steps[out.clone()];
    let ids: BTreeSet<usize> = gone.iter().filter_map(Step::id).collect();
    let kept = steps
        .iter()
        .enumerate()
        .filter(|(number, _)| !out.contains(number));
    // Whatever bears an id goes with the rest that bears it.
    let bears_one = |step: &Step| step.id().is_some_and(|id| ids.contains(&id));
    let admitted = steps
        .iter()
        .enumerate()
        .filter_map(|(number, step)| match step.effect {
            Effect::Admit { token, .. } if out.contains(&number) || bears_one(step) => {
                Some((token, step.began))
            }
            _ => None,
        });
    let admitted: Vec<_> = admitted.collect();
    let stays = |step: &Step| match &step.effect {
        Effect::Admit { .. } => !bears_one(step),
        Effect::Stale { token } => admitted.iter().all(|(newer, began)| {
            let had_ended = step.ended.is_some_and(|end| end < *began);
            newer <= token || had_ended
        }),
        Effect::Show { ids: shown } => cumulative || shown.iter().all(|id| !ids.contains(id)),
    };
    let mut kept: Vec<Step> = kept
        .map(|(_, step)| step)
        .filter(|step| stays(step))
        .cloned()
        .collect();
    for step in &mut kept {
        if let Effect::Show { ids: shown } = &mut step.effect {
            shown.retain(|id| !ids.contains(id));
        }
    }
    kept
}
