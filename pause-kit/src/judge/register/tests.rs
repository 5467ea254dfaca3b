//! The register against every order there is, and at lengths at which all orders are too many.

use proptest::prelude::*;

use super::super::shrink::shrunk;
use super::*;

fn step(began: u64, ended: u64, effect: Effect) -> Step {
    Step {
        line: 0,
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

fn explains(mut steps: Vec<Step>, cumulative: bool) -> Answer {
    steps.sort_by_key(|step| step.began);
    explain(&steps, cumulative)
}

const YES: Answer = Answer::Explained;
const NO: Answer = Answer::Unexplained;

fn answer(explained: bool) -> Answer {
    if explained { YES } else { NO }
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
        assert_eq!(explains(steps(&[0]), true), YES, "at once: {at_once}");
        assert_eq!(explains(steps(&[]), true), NO, "at once: {at_once}");
    }
}

#[test]
fn fifty_thousand_writes_one_after_the_other_are_judged() {
    let steps = (0..50_000).map(|at| write(2 * at, 2 * at + 1, 5, at as usize));
    assert_eq!(explains(steps.collect(), true), YES);
}

#[test]
fn writes_that_nothing_tells_apart_are_not_tried_in_every_order() {
    for (count, cumulative) in [(40, true), (2_000, true), (40, false), (2_000, false)] {
        let mut steps: Vec<Step> = (0..count).map(|id| write(0, 1, 5, id)).collect();
        assert_eq!(explains(steps.clone(), cumulative), YES, "{count} writes");
        steps.push(step(2, 3, Effect::Stale { token: 5 }));
        assert_eq!(explains(steps, cumulative), NO, "{count} writes");
    }
}

#[test]
fn a_history_that_would_take_too_much_is_unknown_and_not_guessed() {
    // Each may or may not have raised the mark, and only all of them together would tell.
    let raise = |number: i64| Step {
        optional: true,
        ..step(
            0,
            1_000,
            Effect::Admit {
                token: 10 + number,
                id: None,
            },
        )
    };
    let mut steps: Vec<Step> = (0..1_000).map(raise).collect();
    steps.push(step(0, 1_000, Effect::Stale { token: 9_000 }));
    assert_eq!(explains(steps, true), Answer::Unknown);
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
        assert_eq!(with(&[]), YES);
        assert_eq!(with(&[0]), YES);
        assert_eq!(with(&[1]), YES);
        assert_eq!(with(&[1, 0]), answer(cumulative));
        let mut both = writes();
        both.extend([read(0, 9, &[0]), read(0, 9, &[1])]);
        assert_eq!(explains(both, cumulative), answer(!cumulative));
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
    assert_eq!(with(true, stale(6)), YES, "it took effect");
    assert_eq!(with(true, write(4, 5, 6, 1)), YES, "it did not");
    assert_eq!(with(false, write(4, 5, 6, 1)), NO, "it must have");
    let below = explains(vec![write(0, 1, 5, 0), raise(4, true), stale(4)], true);
    assert_eq!(below, YES, "it cannot have");
}

#[test]
fn a_long_history_shrinks_to_the_few_lines_that_matter() {
    for cumulative in [true, false] {
        let mut steps: Vec<Step> = (0..2_000)
            .map(|at| write(10 * at, 10 * at + 12, 5 + (at / 100) as i64, at as usize))
            .collect();
        // Somebody with the first token is let in at the end.
        steps.push(write(15_005, 15_006, 5, 5_000));
        steps.sort_by_key(|step| step.began);
        for (line, step) in (2..).zip(&mut steps) {
            step.line = line;
        }
        assert_eq!(explain(&steps, cumulative), NO);
        let lines = shrunk(steps.clone(), cumulative);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.contains(&(steps.iter().position(|step| step.id() == Some(5_000)).unwrap() + 2)));
    }
}

/// Whether any order at all explains the steps, by trying them all.
fn by_force(steps: &[Step], cumulative: bool) -> bool {
    fn go(steps: &[Step], left: u32, mark: Option<i64>, ids: &mut Vec<usize>, cumulative: bool) -> bool {
        let is_left = |number: usize| left >> number & 1 == 1;
        let mut required = (0..steps.len()).filter(|number| is_left(*number) && !steps[*number].optional);
        if required.next().is_none() {
            return true;
        }
        for number in (0..steps.len()).filter(|number| is_left(*number)) {
            let step = &steps[number];
            let waits = (0..steps.len()).any(|other| {
                let before = steps[other].ended.is_some_and(|end| end < step.began);
                is_left(other) && other != number && before && !steps[other].optional
            });
            if waits {
                continue;
            }
            // What may have had no effect has none once something came before it that began after its end.
            let mut without = left & !(1 << number);
            for (other, step_of_other) in steps.iter().enumerate() {
                let before = step_of_other.ended.is_some_and(|end| end < step.began);
                if step_of_other.optional && before {
                    without &= !(1 << other);
                }
            }
            let fits = match &step.effect {
                Effect::Admit { token, .. } => mark.is_none_or(|mark| mark <= *token),
                Effect::Stale { token } => mark.is_some_and(|mark| mark > *token),
                Effect::Show { ids: shown } if cumulative => {
                    let mut all = ids.clone();
                    let mut shown = shown.clone();
                    all.sort_unstable();
                    shown.sort_unstable();
                    all == shown
                }
                Effect::Show { ids: shown } => {
                    shown.as_slice() == ids.last().as_slice().iter().copied().copied().collect::<Vec<_>>()
                }
            };
            if !fits {
                continue;
            }
            let (mark, id) = match step.effect {
                Effect::Admit { token, id } => (Some(token), id),
                _ => (mark, None),
            };
            ids.extend(id);
            let found = go(steps, without, mark, ids, cumulative);
            if id.is_some() {
                ids.pop();
            }
            if found {
                return true;
            }
        }
        false
    }
    go(steps, (1 << steps.len()) - 1, None, &mut Vec::new(), cumulative)
}

/// Steps of which many are explained and many are not: a register is played, and some answers are changed.
fn histories() -> impl Strategy<Value = (Vec<Step>, bool)> {
    let one = (
        0..4_u8,
        0..3_i64,
        0..12_u64,
        0..8_u64,
        prop::bool::weighted(0.15),
        prop::bool::weighted(0.1),
        0..6_usize,
    );
    (prop::collection::vec(one, 1..8), prop::bool::ANY, prop::bool::ANY).prop_map(
        |(drawn, cumulative, guarded)| {
            let mut order: Vec<usize> = (0..drawn.len()).collect();
            order.sort_by_key(|number| drawn[*number].2 + drawn[*number].3 / 2);
            let (mut mark, mut ids) = (None, Vec::new());
            let mut steps = Vec::new();
            for number in order {
                let (kind, token, began, length, optional, no_end, wrong) = drawn[number];
                let refused = mark.is_some_and(|mark| mark > token) && guarded;
                let mut shown = if cumulative {
                    ids.clone()
                } else {
                    ids.last().copied().into_iter().collect()
                };
                let effect = match kind {
                    0 | 1 if refused => Effect::Stale { token },
                    0 => Effect::Admit {
                        token,
                        id: Some(number),
                    },
                    1 => Effect::Admit { token, id: None },
                    2 => Effect::Show { ids: shown },
                    // An answer that may be wrong.
                    _ => {
                        shown.retain(|id| *id != wrong);
                        if wrong % 2 == 0 {
                            Effect::Show { ids: shown }
                        } else {
                            Effect::Stale { token }
                        }
                    }
                };
                if let Effect::Admit { token, id } = effect {
                    mark = mark.max(Some(token));
                    ids.extend(id);
                }
                let optional = optional && matches!(effect, Effect::Admit { id: None, .. });
                let admits = matches!(effect, Effect::Admit { .. });
                steps.push(Step {
                    line: number + 2,
                    began: At::from_nanos(began),
                    ended: (!(no_end && admits)).then(|| At::from_nanos(began + length)),
                    optional,
                    effect,
                });
            }
            steps.sort_by_key(|step| step.began);
            (steps, cumulative)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn the_search_says_what_trying_every_order_says((steps, cumulative) in histories()) {
        prop_assert_eq!(explain(&steps, cumulative), answer(by_force(&steps, cumulative)), "{:#?}", steps);
    }

    #[test]
    fn what_is_left_of_an_unexplained_history_is_unexplained_by_itself((steps, cumulative) in histories()) {
        if !by_force(&steps, cumulative) {
            let lines = shrunk(steps.clone(), cumulative);
            prop_assert!(!lines.is_empty());
            // What it was shrunk to may show less than the lines do, so that only a subset of it is played again.
            let kept: Vec<Step> = steps.iter().filter(|step| lines.contains(&step.line)).cloned().collect();
            let ids: Vec<usize> = kept.iter().filter_map(Step::id).collect();
            let kept: Vec<Step> = kept.into_iter().map(|mut step| {
                if let Effect::Show { ids: shown } = &mut step.effect {
                    let bearers = steps.iter().filter_map(Step::id).collect::<Vec<_>>();
                    shown.retain(|id| ids.contains(id) || !bearers.contains(id));
                }
                step
            }).collect();
            prop_assert!(!by_force(&kept, cumulative), "{kept:#?}");
        }
    }
}
