//! The median of paired ratios, and how sure it is.

use std::fmt;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Resamples of a bootstrap.
const RESAMPLES: usize = 10_000;
/// A wider interval resolves nothing.
const WIDEST: f64 = 0.05;

/// The median of ratios, and its bootstrap interval of 95 %.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    low: f64,
    high: f64,
    pairs: usize,
}

/// What an estimate says about a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Reached,
    Short,
    /// The interval is too wide, or the bar lies inside it.
    NotResolved,
}

impl Estimate {
    pub(crate) fn of(ratios: &[f64], seed: u64) -> Estimate {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let drawn: Vec<f64> = (0..ratios.len())
                    .map(|_| ratios[rng.random_range(0..ratios.len())])
                    .collect();
                median(drawn)
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        Estimate {
            median: median(ratios.to_vec()),
            low: medians[RESAMPLES / 40],
            high: medians[RESAMPLES - 1 - RESAMPLES / 40],
            pairs: ratios.len(),
        }
    }

    /// The lower end of the interval.
    pub(crate) fn least(&self) -> f64 {
        self.low
    }

    /// The upper end of the interval.
    pub(crate) fn most(&self) -> f64 {
        self.high
    }

    /// Whether the interval is narrow enough to resolve anything.
    pub(crate) fn is_narrow(&self) -> bool {
        self.high - self.low <= WIDEST
    }

    /// Whether the whole interval lies at or above the bar.
    pub(crate) fn against(&self, bar: f64) -> Answer {
        if !self.is_narrow() {
            Answer::NotResolved
        } else if self.low >= bar {
            Answer::Reached
        } else if self.high < bar {
            Answer::Short
        } else {
            Answer::NotResolved
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.3} [{:.3}, {:.3}] over {} pairs",
            self.median, self.low, self.high, self.pairs
        )
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Answer::Reached => "reached",
            Answer::Short => "short",
            Answer::NotResolved => "not resolved",
        })
    }
}

/// The middle value, or the mean of the two middle ones.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_reached_by_the_whole_interval_and_one_inside_it_is_not_resolved() {
        let ratios: Vec<f64> = (0..30).map(|n| 0.80 + 0.001 * f64::from(n)).collect();
        let estimate = Estimate::of(&ratios, 1);
        assert!((estimate.median - 0.8145).abs() < 1e-9, "{estimate}");
        assert_eq!(estimate.against(0.79), Answer::Reached);
        assert_eq!(estimate.against(0.84), Answer::Short);
        assert_eq!(estimate.against(0.8145), Answer::NotResolved);
    }

    #[test]
    fn an_interval_wider_than_a_twentieth_resolves_nothing() {
        let ratios: Vec<f64> = (0..30).map(|n| f64::from(n % 2)).collect();
        assert_eq!(Estimate::of(&ratios, 1).against(-1.0), Answer::NotResolved);
    }
}
