//! The kit itself killed, at moments that nobody chose.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rustix::process::Signal;

use super::family::{adopt, gone_within, reap, relatives};
use super::interrupt::send;
use super::run::{finish, folder, left_behind, prove, segments, wait};
use super::{Failure, Figure};

const KILLS: usize = 50;
const SEED: u64 = 7;
/// After this long nothing of the run may be there, running or stopped.
const LIMIT: Duration = Duration::from_secs(5);
/// What is run: holders stopped, a resource stopped, a holder idle in its transaction, and bytes held.
const ARGUMENTS: [&str; 8] = [
    "--scenario",
    "S01",
    "--scenario",
    "S05",
    "--scenario",
    "S07",
    "--scenario",
    "S17",
];

pub(crate) fn kit_killed() -> Result<Figure, Failure> {
    adopt()?;
    let whole = finish(&ARGUMENTS)?;
    if whole.exit != Some(0) {
        return Err(format!("fence prove ended with {:?}\n{}", whole.exit, whole.text()).into());
    }
    let mut chance = ChaCha8Rng::seed_from_u64(SEED);
    let (mut clean, mut stopped, mut processes) = (0, 0, 0);
    let mut slowest = Duration::ZERO;
    for number in 1..=KILLS {
        let share: f64 = chance.random_range(0.0..0.95);
        let moment = whole.took.mul_f64(share);
        match kill_after(moment) {
            Ok(killed) => {
                clean += 1;
                stopped += usize::from(killed.stopped > 0);
                processes += killed.processes;
                slowest = slowest.max(killed.took);
                println!(
                    "{number:>2}: after {} ms, {} processes, {} of them stopped: gone after {} ms",
                    moment.as_millis(),
                    killed.processes,
                    killed.stopped,
                    killed.took.as_millis()
                );
            }
            Err(error) => println!("{number:>2}: after {} ms: {error}", moment.as_millis()),
        }
    }
    Ok(Figure {
        line: format!(
            "{clean} of {KILLS} kills left nothing, {stopped} of them while something stood stopped, {processes} processes in \
             all, the slowest gone after {} ms",
            slowest.as_millis()
        ),
        // Some must have come while something stood stopped, or nothing was shown.
        reached: clean == KILLS && stopped > 0,
    })
}

struct Killed {
    processes: usize,
    stopped: usize,
    took: Duration,
}

fn kill_after(moment: Duration) -> Result<Killed, Failure> {
    let temporary = folder()?;
    let segments = segments()?;
    let mut child = prove(temporary.path(), &ARGUMENTS)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    std::thread::sleep(moment);
    let alive = relatives(child.id())?;
    let sent = Instant::now();
    send(Signal::KILL, child.id(), false)?;
    wait(&mut child)?;
    let gone = gone_within(LIMIT.saturating_sub(sent.elapsed()))?;
    let took = sent.elapsed();
    reap();
    if let Err(left) = gone {
        let left: Vec<String> = left
            .iter()
            .map(|one| format!("{} {} {}", one.pid, one.name, one.state))
            .collect();
        return Err(format!("after {LIMIT:?} there are still {left:?}").into());
    }
    let mut left = left_behind(temporary.path(), segments)?;
    left.retain(|what| what.contains("shared memory"));
    if !left.is_empty() {
        return Err(format!("left behind: {left:?}").into());
    }
    Ok(Killed {
        processes: alive.len(),
        stopped: alive.iter().filter(|one| one.state == 'T').count(),
        took,
    })
}
