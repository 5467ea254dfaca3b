//! The guarded halves alone, again and again: whatever is violated or void there is a false alarm of guard or kit.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::ops::RangeInclusive;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::run::{evidence, finish, scenarios};
use super::{Failure, Figure};

/// Two lanes at a time: most of a run is waiting, and what goes on beside it is what a busy machine does.
const LANES: [RangeInclusive<u64>; 2] = [1..=50, 51..=100];

/// What the runs of a lane came to.
#[derive(Default, Serialize, Deserialize)]
struct Tally {
    runs: u64,
    held: u64,
    violated: usize,
    void: usize,
    schedules: BTreeSet<String>,
}

/// Each lane is a process of its own, so that each finds what its own runs leave behind.
pub(crate) fn false_alarms() -> Result<Figure, Failure> {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    if let [first, last] = arguments.as_slice() {
        let tally = lane(first.parse()?..=last.parse()?)?;
        return Ok(Figure {
            line: serde_json::to_string(&tally)?,
            reached: true,
        });
    }
    let lanes: Vec<_> = LANES
        .into_iter()
        .map(|seeds| std::thread::spawn(move || told(seeds).map_err(|error| error.to_string())))
        .collect();
    let mut all = Tally::default();
    for lane in lanes {
        let tally = lane.join().map_err(|_| "a lane panicked")??;
        all.runs += tally.runs;
        all.held += tally.held;
        all.violated += tally.violated;
        all.void += tally.void;
        all.schedules.extend(tally.schedules);
    }
    let runs: u64 = LANES.iter().map(|seeds| seeds.end() - seeds.start() + 1).sum();
    Ok(Figure {
        line: format!(
            "{} of {runs} runs of the guarded halves: {} violated, {} void",
            all.held, all.violated, all.void
        ),
        reached: all.runs == runs
            && all.held == runs
            && all.violated + all.void == 0
            && all.schedules.len() as u64 == runs,
    })
}

/// Starts a lane, passes its lines on, and gives its tally.
fn told(seeds: RangeInclusive<u64>) -> Result<Tally, Failure> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("false-alarms")
        .args([seeds.start(), seeds.end()].map(u64::to_string))
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or("a lane has no output")?;
    let mut last = String::new();
    for line in BufReader::new(output).lines() {
        if !last.is_empty() {
            println!("{last}");
        }
        last = line?;
    }
    child.wait()?;
    let tally = last.strip_prefix("false-alarms: ").unwrap_or(&last);
    serde_json::from_str(tally).map_err(|_| format!("a lane ended with: {last}").into())
}

/// Runs the guarded halves once for each seed.
fn lane(seeds: RangeInclusive<u64>) -> Result<Tally, Failure> {
    let out = tempfile::tempdir()?;
    let folder = out.path().join("evidence");
    let mut tally = Tally::default();
    for seed in seeds {
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
        tally.runs += 1;
        tally.violated += verdicts("violated");
        tally.void += verdicts("inconclusive");
        tally.schedules.insert(evidence["schedule"].to_string());
        let all = run.exit == Some(0) && verdicts("held") == scenarios.len() && scenarios.len() >= 11;
        tally.held += u64::from(all && run.left.is_empty());
        println!(
            "seed {seed}: exit {:?}, {} of {} halves held, {:.1} s",
            run.exit,
            verdicts("held"),
            scenarios.len(),
            run.took.as_secs_f64()
        );
        if !all || !run.left.is_empty() {
            println!("{}{}", run.text(), run.left.join("\n"));
        }
    }
    Ok(tally)
}
