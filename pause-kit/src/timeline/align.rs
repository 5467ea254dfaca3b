//! Puts the steps of two halves side by side.

use super::step::Step;

/// One row: a step of the left half, of the right one, or of both, by index.
pub(super) type Row = (Option<usize>, Option<usize>);

/// Rows in which each half's steps keep their order, and steps with one sign share a row wherever that can be. Between two
/// shared rows the others stand in the order of their times.
pub(super) fn aligned(left: &[Step], right: &[Step]) -> Vec<Row> {
    let shared = shared(left, right);
    let mut rows = Vec::new();
    let (mut from_left, mut from_right) = (0, 0);
    for (to_left, to_right) in shared.into_iter().chain([(left.len(), right.len())]) {
        while from_left < to_left || from_right < to_right {
            let left_first =
                from_right == to_right || from_left < to_left && left[from_left].at <= right[from_right].at;
            if left_first {
                rows.push((Some(from_left), None));
                from_left += 1;
            } else {
                rows.push((None, Some(from_right)));
                from_right += 1;
            }
        }
        if to_left < left.len() && to_right < right.len() {
            rows.push((Some(to_left), Some(to_right)));
        }
        (from_left, from_right) = (to_left + 1, to_right + 1);
    }
    rows
}

/// The longest run of pairs with equal signs.
fn shared(left: &[Step], right: &[Step]) -> Vec<(usize, usize)> {
    let mut best = vec![vec![0_usize; right.len() + 1]; left.len() + 1];
    for (i, one) in left.iter().enumerate().rev() {
        for (j, other) in right.iter().enumerate().rev() {
            best[i][j] = match one.sign == other.sign {
                true => best[i + 1][j + 1] + 1,
                false => best[i + 1][j].max(best[i][j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < left.len() && j < right.len() {
        if left[i].sign == right[j].sign {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[i + 1][j] >= best[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::At;

    fn steps(signs: &[(&str, u64)]) -> Vec<Step> {
        let step = |(sign, at): &(&str, u64)| Step::new(At::from_nanos(*at), 2, *sign, "");
        signs.iter().map(step).collect()
    }

    #[test]
    fn equal_steps_share_a_row_and_the_others_stand_between_by_their_times() {
        let left = steps(&[("grant", 1), ("refused", 5), ("read", 9)]);
        let right = steps(&[("grant", 2), ("accepted", 4), ("read", 8), ("final", 10)]);
        assert_eq!(
            aligned(&left, &right),
            [
                (Some(0), Some(0)),
                (None, Some(1)),
                (Some(1), None),
                (Some(2), Some(2)),
                (None, Some(3))
            ]
        );
    }
}
