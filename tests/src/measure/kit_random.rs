//! Guarded halves by seeds, as many as are asked for: what the kit itself could not carry out is drawn again and counted.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::run::{evidence, folder, prove, scenarios};
use super::{Failure, Figure};

/// How many runs are asked for where the command line says nothing.
const RUNS: usize = 3_000;
/// Scenarios that need not wait for a time to live or for a bound.
const SELECT: &str = "tag(revoke) and not tag(waits)";
/// How many commands run at a time, each with servers of its own.
const LANES: usize = 2;
/// One void in so many runs is too many.
const VOIDS: usize = 100;

/// What came out so far.
#[derive(Default)]
struct Tally {
    held: usize,
    violated: Vec<String>,
    void: Vec<String>,
    of_scenario: BTreeMap<String, usize>,
}

pub(crate) fn kit_random() -> Result<Figure, Failure> {
    let runs = match std::env::args().nth(2) {
        Some(number) => number.parse()?,
        None => RUNS,
    };
    let next = AtomicU64::new(1);
    let each = runs.div_ceil(LANES);
    let tallies: Vec<Result<Tally, Failure>> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(|| lane(&next, each))).collect();
        lanes
            .into_iter()
            .map(|lane| lane.join().unwrap_or_else(|_| Err("a lane panicked".into())))
            .collect()
    });
    let mut all = Tally::default();
    for tally in tallies {
        let tally = tally?;
        all.held += tally.held;
        all.violated.extend(tally.violated);
        all.void.extend(tally.void);
        for (scenario, count) in tally.of_scenario {
            *all.of_scenario.entry(scenario).or_default() += count;
        }
    }
    for (scenario, count) in &all.of_scenario {
        println!("{scenario}: {count} held");
    }
    let last = next.into_inner() - 1;
    let bound = 1.0 - 0.05_f64.powf(1.0 / all.held.max(1) as f64);
    Ok(Figure {
        line: format!(
            "{} runs that were exercised, by seeds 1 to {last}: {} violated, {} void and drawn again; with none violated at most \
             {:.2} % of such schedules on this machine are, at 95 %",
            all.held + all.violated.len(),
            all.violated.len(),
            all.void.len(),
            bound * 100.0
        ),
        reached: all.held >= runs && all.violated.is_empty() && all.void.len() * VOIDS <= all.held,
    })
}

/// Runs one seed after the other until so many halves were exercised.
fn lane(next: &AtomicU64, runs: usize) -> Result<Tally, Failure> {
    let temporary = folder()?;
    let out = temporary.path().join("evidence");
    let mut tally = Tally::default();
    while tally.held + tally.violated.len() < runs {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        one(seed, temporary.path(), &out, &mut tally)?;
        println!("seed {seed}: {} held so far in this lane", tally.held);
        if tally.void.len() > runs {
            return Err(format!("more void than not, the last: {:?}", tally.void.last()).into());
        }
    }
    Ok(tally)
}

fn one(seed: u64, temporary: &Path, out: &Path, tally: &mut Tally) -> Result<(), Failure> {
    let (number, folder) = (seed.to_string(), out.display().to_string());
    let arguments = [
        "--only-guarded",
        "--select",
        SELECT,
        "--seed",
        &number,
        "--out",
        &folder,
    ];
    let run = prove(temporary, &arguments).output()?;
    let said = String::from_utf8_lossy(&run.stderr);
    let evidence = match run.status.code() {
        Some(0 | 1 | 3) => evidence(out)?,
        other => return Err(format!("seed {seed}: fence prove ended with {other:?}\n{said}").into()),
    };
    if evidence["seed"] != seed {
        return Err(format!("the evidence is of another seed than {seed}").into());
    }
    for scenario in scenarios(&evidence)? {
        let id = scenario["id"].as_str().ok_or("a scenario has no id")?;
        let found = || format!("seed {seed}, {id}: {}", scenario["why"]);
        match scenario["verdict"].as_str() {
            Some("held") => {
                tally.held += 1;
                *tally.of_scenario.entry(id.to_owned()).or_default() += 1;
            }
            Some("violated") => {
                println!("violated: {}", found());
                tally.violated.push(found());
            }
            _ => {
                println!("void: {}", found());
                tally.void.push(found());
            }
        }
    }
    Ok(())
}
