//! Everything that a run leaves to chance, drawn from one seed before anything starts.

use std::time::Duration;

use fence_core::ClassName;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

use crate::scenario::ScenarioId;

/// The schedule of a run: the same seed and the same scenarios give the same schedule, everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    seed: u64,
    slots: Vec<Slot>,
}

/// What was drawn for one scenario. Its guarded and its defeated half share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The class under test.
    pub class: ClassName,
    /// The scenario.
    pub scenario: ScenarioId,
    /// Whether the defeated half runs first.
    pub defeated_first: bool,
    /// The number in the key under test, and in two further keys: six digits, all different.
    pub numbers: [u32; 3],
    /// The amount of every write, 1 to 999.
    pub amount: u32,
    /// After how many bytes of the request S07 holds the rest, 0 to 40.
    pub byte: u64,
    /// How long the kit waits before each of its stops, at most 25 ms each.
    pub delays: [Duration; 2],
}

impl Schedule {
    /// Draws the schedule of these scenarios from a seed. Each scenario's own values depend on the seed, its class and its
    /// name alone, so that a run of a part repeats that part of the whole.
    pub fn draw(seed: u64, scenarios: &[(ClassName, ScenarioId)]) -> Schedule {
        let mut slots: Vec<Slot> = scenarios
            .iter()
            .map(|(class, scenario)| Slot::draw(seed, class, *scenario))
            .collect();
        // Whoever lists the same scenarios otherwise draws the same.
        slots.sort_by(|one, other| (&one.class, one.scenario).cmp(&(&other.class, other.scenario)));
        shuffle(&mut slots, &mut rng(seed, "order"));
        Schedule { seed, slots }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The scenarios in the order in which they run.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// SHA-256 over all that was drawn, in hexadecimal.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for slot in &self.slots {
            hash.update(format!(
                "{} {} defeated_first={} numbers={:?} amount={} byte={} delays_us={:?}\n",
                slot.class,
                slot.scenario,
                slot.defeated_first,
                slot.numbers,
                slot.amount,
                slot.byte,
                slot.delays.map(|delay| delay.as_micros()),
            ));
        }
        hex::encode(hash.finalize())
    }
}

impl Slot {
    fn draw(seed: u64, class: &ClassName, scenario: ScenarioId) -> Slot {
        let mut rng = rng(seed, &format!("{class} {scenario}"));
        let first = rng.random_range(100_000..400_000);
        Slot {
            class: class.clone(),
            scenario,
            defeated_first: rng.random_bool(0.5),
            numbers: [
                first,
                first + rng.random_range(1..250_000),
                first + rng.random_range(250_000..500_000),
            ],
            amount: rng.random_range(1..1_000),
            byte: rng.random_range(0..=40),
            delays: [0; 2].map(|_| Duration::from_micros(rng.random_range(0..25_000))),
        }
    }
}

fn rng(seed: u64, purpose: &str) -> ChaCha8Rng {
    let mut hash = Sha256::new();
    hash.update(b"fence schedule\n");
    hash.update(seed.to_be_bytes());
    hash.update(purpose);
    ChaCha8Rng::from_seed(hash.finalize().into())
}

fn shuffle<T>(items: &mut [T], rng: &mut impl Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.random_range(0..=last));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn all() -> Vec<(ClassName, ScenarioId)> {
        let class = ClassName::new("paydb.account").unwrap();
        ScenarioId::ALL.iter().map(|id| (class.clone(), *id)).collect()
    }

    #[test]
    fn one_seed_gives_one_schedule_and_two_thousand_seeds_give_as_many() {
        assert_eq!(Schedule::draw(7, &all()), Schedule::draw(7, &all()));
        let digests: HashSet<String> = (0..2_000)
            .map(|seed| Schedule::draw(seed, &all()).digest())
            .collect();
        assert_eq!(digests.len(), 2_000);
    }

    #[test]
    fn a_part_repeats_what_the_whole_does_for_it() {
        let whole = Schedule::draw(7, &all());
        let part = Schedule::draw(7, &all()[3..4]);
        assert!(whole.slots().contains(&part.slots()[0]));
    }

    #[test]
    fn the_digest_is_the_same_on_every_machine() {
        let few = ["S01", "S02", "S05", "S07", "S26"].map(|id| (all()[0].0.clone(), id.parse().unwrap()));
        assert_eq!(
            Schedule::draw(7, &few).digest(),
            "6f32b304619fe917854db63c708280573c7bc769d8283a126350f5c54dab43d9"
        );
    }

    #[test]
    fn what_is_drawn_stays_within_its_bounds_and_reaches_their_ends() {
        let slots: Vec<Slot> = (0..2_000)
            .flat_map(|seed| Schedule::draw(seed, &all()).slots().to_vec())
            .collect();
        for slot in &slots {
            let keys: HashSet<u32> = slot.numbers.into_iter().collect();
            assert_eq!(keys.len(), 3, "{slot:?}");
            assert!(keys.iter().all(|n| (100_000..1_000_000).contains(n)), "{slot:?}");
            assert!((1..1_000).contains(&slot.amount) && slot.byte <= 40, "{slot:?}");
        }
        for byte in 0..=40 {
            assert!(
                slots.iter().any(|slot| slot.byte == byte),
                "no seed holds after {byte} bytes"
            );
        }
    }
}
