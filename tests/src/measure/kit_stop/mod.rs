//! Stops of processes whose threads never rest: nothing counts on while they stand, and how long it takes until they do.

mod program;

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Failure, Figure};
use pause_kit::reaper::ReaperCommand;
use pause_kit::services::{Child, ProcessSpec, Services, ServicesConfig};
use pause_kit::stopper::{StopError, Stopped};

/// How many stops are held for [`PAUSE`], of how many threads, and how many processes stand side by side.
const STOPS: usize = 1_000;
const THREADS: usize = 16;
const AT_ONCE: usize = 4;
/// So many stops in a hundred may not be confirmed in time, on a machine that is busy with something else: these show nothing,
/// and are tried again.
const VOID: usize = 1;
/// How long each stands.
const PAUSE: Duration = Duration::from_secs(1);
/// How many stops are timed for each number of threads, one after the other and with nothing beside them.
const TIMED: usize = 200;
/// Threads, and the time that 99 of 100 confirmations may take.
const BARS: [(usize, Duration); 4] = [
    (1, Duration::from_millis(10)),
    (2, Duration::from_millis(10)),
    (4, Duration::from_millis(10)),
    (THREADS, Duration::from_millis(60)),
];

pub(crate) fn kit_stop() -> Result<Figure, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(measure())
}

async fn measure() -> Result<Figure, Failure> {
    let folder = tempfile::tempdir()?;
    let program = program::compiled(folder.path())?;
    let services = Services::start(ServicesConfig {
        reaper: ReaperCommand {
            program: std::env::current_exe()?.with_file_name("fence"),
            args: vec!["own-processes-of-a-run".into()],
        },
        postgres: false,
        etcd: Vec::new(),
    });
    let services = services.await?;
    let mut quick = true;
    let mut slowest = Vec::new();
    for (threads, bar) in BARS {
        let counting = Counting::start(&services, &program, folder.path(), 0, threads).await?;
        let mut times = Vec::new();
        for _ in 0..TIMED {
            let (confirmed, moved) = counting.stand(Duration::ZERO).await?;
            if moved {
                return Err(format!("{threads} threads counted on while they stood").into());
            }
            times.push(confirmed);
        }
        counting.child.kill().await?;
        times.sort();
        let at = |percent: usize| times[(times.len() * percent).div_ceil(100) - 1];
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "{threads:>2} threads: confirmed after {:.1} ms (50 %), {:.1} ms (90 %), {:.1} ms (99 %), {:.1} ms at most; bar {} ms",
            ms(at(50)),
            ms(at(90)),
            ms(at(99)),
            ms(at(100)),
            bar.as_millis()
        );
        quick &= at(99) <= bar;
        slowest.push(format!("{:.1} ms with {threads}", ms(at(99))));
    }
    let mut side_by_side = Vec::new();
    for number in 0..AT_ONCE {
        side_by_side.push(Counting::start(&services, &program, folder.path(), number, THREADS).await?);
    }
    let stops = side_by_side.iter().map(|counting| async {
        let mut moved = 0;
        for _ in 0..STOPS / AT_ONCE {
            let (_, counted_on) = counting.stand(PAUSE).await?;
            moved += usize::from(counted_on);
        }
        Ok::<_, Failure>((moved, counting.void.get()))
    });
    let stops = futures_util::future::try_join_all(stops).await?;
    let moved: usize = stops.iter().map(|(moved, _)| moved).sum();
    let void: usize = stops.iter().map(|(_, void)| void).sum();
    Ok(Figure {
        line: format!(
            "{} of {STOPS} stops of {THREADS} threads stood for 1 s without a count, {void} were not confirmed and tried again; 99 of 100 confirmed within {}",
            STOPS - moved,
            slowest.join(", ")
        ),
        reached: moved == 0 && quick && void * 100 <= STOPS * VOID,
    })
}

/// A process that counts.
struct Counting {
    child: Child,
    file: PathBuf,
    threads: usize,
    /// How many stops were not confirmed.
    void: Cell<usize>,
}

impl Counting {
    async fn start(
        services: &Services,
        program: &Path,
        folder: &Path,
        number: usize,
        threads: usize,
    ) -> Result<Counting, Failure> {
        let file = folder.join(format!("{threads}-{number}"));
        let _ = fs::remove_file(&file);
        let spec = ProcessSpec::new("counters", program);
        let spec = spec.args([file.display().to_string(), threads.to_string()]);
        let child = services.spawn(spec).await?;
        let void = Cell::new(0);
        let counting = Counting {
            child,
            file,
            threads,
            void,
        };
        while !counting.all_count()? {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(counting)
    }

    /// Whether each thread has begun.
    fn all_count(&self) -> Result<bool, Failure> {
        if !self.file.exists() {
            return Ok(false);
        }
        let counts = self.counts()?;
        Ok(counts.len() == self.threads && counts.iter().all(|count| *count > 0))
    }

    fn counts(&self) -> Result<Vec<u64>, Failure> {
        let bytes = fs::read(&self.file)?;
        let (lines, _) = bytes.as_chunks::<64>();
        let count = |line: &[u8; 64]| line.first_chunk().map_or(0, |count| u64::from_ne_bytes(*count));
        Ok(lines.iter().map(count).collect())
    }

    /// Stops it, looks at its counters twice, and lets it go on until each counts again: how long until it was confirmed, and
    /// whether anything was counted meanwhile.
    async fn stand(&self, pause: Duration) -> Result<(Duration, bool), Failure> {
        let stopped = self.confirmed().await?;
        let before = self.counts()?;
        let confirmed = stopped.confirmed_after();
        // Time itself is under test: nothing may happen in it.
        tokio::time::sleep(pause).await;
        let after = self.counts()?;
        let pause = stopped.resume().await?;
        let moved = before != after || pause.moved() || pause.before.len() != self.threads;
        while self.counts()?.iter().zip(&after).any(|(now, then)| now == then) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok((confirmed, moved))
    }

    async fn confirmed(&self) -> Result<Stopped, Failure> {
        loop {
            match self.child.stop().await {
                Err(StopError::NeverStopped { .. }) => self.void.set(self.void.get() + 1),
                stopped => return Ok(stopped?),
            }
        }
    }
}
