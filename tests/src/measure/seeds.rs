//! Twenty seeds.

use std::collections::BTreeSet;

use super::run::{evidence, finish, is_control, scenarios};
use super::{Failure, Figure};

const SEEDS: u64 = 20;

pub(crate) fn seeds() -> Result<Figure, Failure> {
    let out = tempfile::tempdir()?;
    let run = |seed: u64, name: &str| -> Result<(String, usize, bool), Failure> {
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
        Ok((schedule, proven, good))
    };
    let mut schedules = BTreeSet::new();
    let mut good = 0;
    let mut first = String::new();
    for seed in 1..=SEEDS {
        let (schedule, _, all) = run(seed, &format!("seed-{seed}"))?;
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
            "{good} of {SEEDS} seeds proven whole, {} distinct schedules, seed 1 again: {}",
            schedules.len(),
            if same {
                "the same schedule"
            } else {
                "another schedule"
            }
        ),
        reached: good == SEEDS && schedules.len() as u64 == SEEDS && same,
    })
}
