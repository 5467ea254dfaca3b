//! A long log of commits.

use std::time::{Duration, Instant};

use pause_kit::judge::judge_commits;

use super::{Failure, Figure, made};

/// How many commits, and how many a second are to be reached.
const COMMITS: u64 = 1_000_000;
const BAR: f64 = 3e6;

pub(super) fn rate() -> Result<Figure, Failure> {
    let history = made::log(COMMITS);
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let found = judge_commits(&history);
        best = best.min(start.elapsed());
        if let Some(violation) = found.first() {
            return Err(format!("a good log was called violated: {violation}").into());
        }
    }
    let rate = COMMITS as f64 / best.as_secs_f64();
    println!(
        "commit order: {COMMITS} commits in {:.0} ms",
        best.as_secs_f64() * 1e3
    );
    Ok(Figure {
        line: format!("{:.1} million commits a second", rate / 1e6),
        reached: rate >= BAR,
    })
}
