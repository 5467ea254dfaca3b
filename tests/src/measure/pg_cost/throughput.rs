//! Writes per second of each form, in rounds, and the ratios that the bars are about.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::bed::{ACCOUNTS, Bed, Length};
use super::estimate::{Answer, Estimate, median};
use super::forms::Form;
use super::relay::Relay;
use crate::measure::Failure;

const CLIENTS: u16 = 8;
const SECONDS: u32 = 1;
/// Half of a round trip over the slow relay.
const HALF_TRIP: Duration = Duration::from_micros(500);

/// Writes per second, round by round; the second list of a bare form is its other half of an A/A pair.
pub(crate) struct Rounds {
    rates: BTreeMap<(Form, bool), Vec<f64>>,
    seed: u64,
}

impl Rounds {
    /// Runs every form once in each round, in an order that each round draws anew.
    pub(crate) async fn run(bed: &Bed, rounds: u32, seed: u64, slow: bool) -> Result<Rounds, Failure> {
        let port = if slow {
            Relay::start(bed.postgres.port(), HALF_TRIP)?.port
        } else {
            bed.postgres.port()
        };
        let mut legs: Vec<(Form, bool)> = Form::ALL.map(|form| (form, false)).to_vec();
        legs.extend([(Form::One, true), (Form::Transaction, true)]);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut rates: BTreeMap<(Form, bool), Vec<f64>> = BTreeMap::new();
        for _ in 0..rounds {
            for last in (1..legs.len()).rev() {
                legs.swap(last, rng.random_range(0..=last));
            }
            for leg in &legs {
                let script = leg.0.script(ACCOUNTS);
                let rate = bed
                    .pgbench(port, &script, CLIENTS, Length::Seconds(SECONDS))
                    .await?;
                rates.entry(*leg).or_default().push(rate);
            }
            // Each round begins with as few dead rows as the one before.
            bed.vacuum("").await?;
        }
        Ok(Rounds { rates, seed })
    }

    pub(crate) fn rate(&self, form: Form) -> f64 {
        self.rates
            .get(&(form, false))
            .map_or(0.0, |rates| median(rates.clone()))
    }

    /// The peer with the highest rate.
    pub(crate) fn best_peer(&self) -> Form {
        let mut peers = Form::PEERS;
        peers.sort_by(|a, b| self.rate(*b).total_cmp(&self.rate(*a)));
        peers[0]
    }

    /// How many times as fast one form is as another, pair by pair.
    pub(crate) fn ratio(&self, form: Form, base: Form) -> Result<Estimate, Failure> {
        self.estimate((form, false), (base, false))
    }

    /// A form against itself: what the machine alone makes of a ratio.
    pub(crate) fn same(&self, form: Form) -> Result<Estimate, Failure> {
        self.estimate((form, true), (form, false))
    }

    fn estimate(&self, form: (Form, bool), base: (Form, bool)) -> Result<Estimate, Failure> {
        let (Some(of), Some(by)) = (self.rates.get(&form), self.rates.get(&base)) else {
            return Err("a form was not run".into());
        };
        let ratios: Vec<f64> = of.iter().zip(by).map(|(of, by)| of / by).collect();
        Ok(Estimate::of(&ratios, self.seed))
    }

    /// Prints every form's rate and every ratio, and returns how many bars there are and how many are reached.
    pub(crate) fn report(&self, what: &str, bars: &[(Form, Form, f64)]) -> Result<(usize, usize), Failure> {
        for form in Form::ALL {
            println!("{what}: {:>8.0} writes/s  {}", self.rate(form), form.name());
        }
        for form in [Form::One, Form::Transaction] {
            println!("{what}: A/A {}: {}", form.name(), self.same(form)?);
        }
        let mut reached = 0;
        for (form, base, bar) in bars {
            let ratio = self.ratio(*form, *base)?;
            let answer = ratio.against(*bar);
            println!(
                "{what}: {} / {}: {ratio}, bar {bar}: {answer}",
                form.name(),
                base.name()
            );
            reached += usize::from(answer == Answer::Reached);
        }
        for (form, base) in [
            (Form::SecondRow, Form::Transaction),
            (Form::Mark, Form::SecondRow),
            (Form::Mark, Form::One),
            (Form::Enforced, Form::One),
            (Form::Enforced, Form::ForUpdateBlind),
            (Form::Enforced, Form::AdvisoryBlind),
        ] {
            println!(
                "{what}: {} / {}: {}, no bar",
                form.name(),
                base.name(),
                self.ratio(form, base)?
            );
        }
        Ok((bars.len(), reached))
    }
}
