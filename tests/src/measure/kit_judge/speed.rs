//! Long histories, judged by both in one run.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pause_kit::history::History;
use pause_kit::judge::{Verdict, judge, judge_order_of_all};
use pause_kit::linear::Answer;

use super::{Failure, Figure, made};
use crate::outsider::Outsider;

/// Operations, clients, the time to reach, and the memory where it is bounded.
const RUNS: [(usize, usize, Duration, Option<u64>); 3] = [
    (10_000, 10, Duration::from_millis(50), Some(32 << 20)),
    (100_000, 5, Duration::from_millis(50), None),
    (100_000, 10, Duration::from_millis(500), Some(128 << 20)),
];

pub(super) fn beside(outsider: &Outsider) -> Result<Figure, Failure> {
    let folder = tempfile::tempdir()?;
    let mut reached = true;
    let mut lines = Vec::new();
    for (operations, clients, bar, memory) in RUNS {
        let file: PathBuf = folder.path().join(format!("{operations}-{clients}.jsonl"));
        let mut out = BufWriter::new(File::create(&file)?);
        made::history(operations, clients, 7).write(&mut out)?;
        out.flush()?;
        let history = History::read(BufReader::new(File::open(&file)?))?;
        let (mut best, mut best_own) = (Duration::MAX, Duration::MAX);
        let mut answer = Answer::Unknown;
        let before = forget_peak()?;
        for _ in 0..5 {
            let (start, own) = (Instant::now(), on_processor());
            answer = judge_order_of_all(&history).0;
            best = best.min(start.elapsed());
            best_own = best_own.min(on_processor() - own);
        }
        let taken = peak()?.saturating_sub(before);
        // Everything that is asked of a history, which no control without probes holds against.
        let start = Instant::now();
        let whole = judge(&history).verdict;
        let whole_took = start.elapsed();
        let theirs = outsider.histories(&[file])?;
        let told = theirs.first().ok_or("Porcupine found no operations")?;
        let line = format!(
            "{operations} operations of {clients} clients: {:.1} ms, {} MB",
            best.as_secs_f64() * 1e3,
            taken.div_ceil(1 << 20)
        );
        println!(
            "{line} ({:.1} ms of them on a processor, {answer:?}; every invariant in {:.1} ms, {}); Porcupine: {} in {:.0} ms",
            best_own.as_secs_f64() * 1e3,
            whole_took.as_secs_f64() * 1e3,
            kind(&whole),
            told.answer,
            told.took.as_secs_f64() * 1e3
        );
        let fits = memory.is_none_or(|most| taken <= most);
        let contradicts = told.answer == "unexplained";
        reached &= answer == Answer::Explained && best <= bar && fits && !contradicts;
        lines.push(line);
    }
    Ok(Figure {
        line: lines.join(", "),
        reached,
    })
}

fn kind(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Held => "held",
        Verdict::Violated(_) => "violated",
        Verdict::Void(_) => "void",
        Verdict::Inconclusive(_) => "inconclusive",
    }
}

/// How long this thread has run on a processor: what others run beside it has no part in that.
fn on_processor() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

/// Lets the system count the largest memory of this process from now on, and says what is taken now, in bytes.
fn forget_peak() -> Result<u64, Failure> {
    std::fs::write("/proc/self/clear_refs", "5")?;
    peak()
}

/// The most memory that this process has had since, in bytes.
fn peak() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    Ok(kilobytes.ok_or("the system counts no peak")?.parse::<u64>()? << 10)
}
