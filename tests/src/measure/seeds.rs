//! The minimum set, guarded and defeated, by twenty seeds.

use std::collections::BTreeSet;
use std::time::Duration;

use super::run::{evidence, finish, is_control, scenarios};
use super::{Failure, Figure};

const SEEDS: u64 = 20;
/// How long one of them may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Everything as its row of the table says, each time within the limit.
pub(crate) fn kit_minimum() -> Result<Figure, Failure> {
    by_seeds(Some(LIMIT))
}

pub(crate) fn seeds() -> Result<Figure, Failure> {
    by_seeds(None)
}

fn by_seeds(limit: Option<Duration>) -> Result<Figure, Failure> {
    let out = tempfile::tempdir()?;
    let run = |seed: u64, name: &str| -> Result<(String, Duration, bool), Failure> {
        let folder = out.path().join(name);
        let run = finish(&[
            "--seed",
            &seed.to_string(),
            "--out",
            &folder.display().to_string(),
        ])?;
        let evidence = evidence(&folder)?;
        let scenarios = scenarios(&evidence)?;
        let proven = scenarios.iter().filter(|one| one["verdict"] == "proven").count();
        let schedule = evidence["schedule"]
            .as_str()
            .ok_or("evidence.json has no schedule")?
            .to_owned();
        let controls = scenarios.iter().filter(|one| is_control(one)).count();
        let whole = proven + controls == scenarios.len() && proven >= 10;
        let good = run.exit == Some(0) && whole && run.left.is_empty();
        println!(
            "seed {seed}: exit {:?}, {proven} proven, {:.1} s, schedule {schedule}",
            run.exit,
            run.took.as_secs_f64()
        );
        if !good {
            println!("{}{}", run.text(), run.left.join("\n"));
        }
        Ok((schedule, run.took, good))
    };
    let mut schedules = BTreeSet::new();
    let mut good = 0;
    let mut first = String::new();
    let mut longest = Duration::ZERO;
    for seed in 1..=SEEDS {
        let (schedule, took, all) = run(seed, &format!("seed-{seed}"))?;
        longest = longest.max(took);
        if seed == 1 {
            first.clone_from(&schedule);
        }
        schedules.insert(schedule);
        good += u64::from(all);
    }
    let (again, _, all) = run(1, "again")?;
    let same = again == first && all;
    Ok(Figure {
        line: format!(
            "{good} of {SEEDS} seeds proven whole, {} distinct schedules, seed 1 again: {}, the longest {:.1} s",
            schedules.len(),
            if same {
                "the same schedule"
            } else {
                "another schedule"
            },
            longest.as_secs_f64()
        ),
        reached: good == SEEDS
            && schedules.len() as u64 == SEEDS
            && same
            && limit.is_none_or(|limit| longest < limit),
    })
}
