//! The guarded halves alone, again and again: whatever is violated or void there is a false alarm of guard or kit.

use std::collections::BTreeSet;

use super::run::{evidence, finish, scenarios};
use super::{Failure, Figure};

const RUNS: u64 = 100;

pub(crate) fn false_alarms() -> Result<Figure, Failure> {
    let out = tempfile::tempdir()?;
    let folder = out.path().join("evidence");
    let (mut held, mut violated, mut void) = (0, 0, 0);
    let mut schedules = BTreeSet::new();
    for seed in 1..=RUNS {
        let run = finish(&[
            "--only-guarded",
            "--seed",
            &seed.to_string(),
            "--out",
            &folder.display().to_string(),
        ])?;
        let evidence = evidence(&folder)?;
        let scenarios = scenarios(&evidence)?;
        let verdicts = |word: &str| scenarios.iter().filter(|one| one["verdict"] == word).count();
        violated += verdicts("violated");
        void += verdicts("inconclusive");
        schedules.insert(evidence["schedule"].to_string());
        let all = run.exit == Some(0) && verdicts("held") == scenarios.len() && scenarios.len() >= 11;
        held += u64::from(all && run.left.is_empty());
        println!(
            "seed {seed}: exit {:?}, {} of {} halves held, {:.1} s",
            run.exit,
            verdicts("held"),
            scenarios.len(),
            run.took.as_secs_f64()
        );
        if !all {
            println!("{}{}", run.text(), run.left.join("\n"));
        }
    }
    Ok(Figure {
        line: format!("{held} of {RUNS} runs of the guarded halves: {violated} violated, {void} void"),
        reached: held == RUNS && violated == 0 && void == 0 && schedules.len() as u64 == RUNS,
    })
}
