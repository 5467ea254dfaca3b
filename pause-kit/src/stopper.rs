//! Stopping a process so that it is known to stand, and letting it go on again.
//!
//! ```no_run
//! # use pause_kit::services::{ProcessSpec, Services};
//! # async fn run(services: Services) -> Result<(), Box<dyn std::error::Error>> {
//! let worker = services.spawn(ProcessSpec::new("worker", "worker").args(["--account", "acct-1"])).await?;
//! let stopped = worker.stop().await?;
//! // Everything that comes from the worker stands here; a panic, too, would let it go on.
//! let pause = stopped.resume().await?;
//! assert!(!pause.moved(), "a task ran on, so that the run is void");
//! # Ok(())
//! # }
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub use crate::reaper::{StopWith, StoppedBy, UnknownMeans};

use crate::reaper::{AskError, Reaper, StopRefused, TaskTime};

/// Why a process could not be stopped. In each case everything that was stopped for it runs again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StopError {
    /// The process is none that the kit has started, or has ended: look at why it ended.
    #[error("process {pid} is none of the kit's, or has ended")]
    NotOurs {
        /// The process that was to be stopped.
        pid: u32,
    },
    /// A task went on all the time that was allowed, in an uninterruptible sleep for example: the run is void.
    #[error("task {tid} of process {pid} did not stop: its state stayed {state}")]
    NeverStopped {
        /// The process that did not stop.
        pid: u32,
        /// Its task.
        tid: u32,
        /// The task's state letter in `/proc`.
        state: char,
    },
    /// The stop could not be tried.
    #[error("the process could not be stopped")]
    Ask(#[source] AskError),
}

/// A process that stands, with all its descendants. Dropping it, in a panic too, lets them go on.
#[derive(Debug)]
#[must_use = "when this is dropped, the process goes on"]
pub struct Stopped {
    reaper: Arc<Reaper>,
    stop: u64,
    over: bool,
    pid: u32,
    tasks: Vec<TaskTime>,
    began_ns: u64,
    confirmed_ns: u64,
    by: StoppedBy,
}

/// What a finished pause was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The process that was stopped.
    pub pid: u32,
    /// Every task that stood, with its counter when it was confirmed.
    pub before: Vec<TaskTime>,
    /// The same tasks' counters just before they went on. A task that is missing here was no longer standing: killed, or
    /// let go by somebody else.
    pub after: Vec<TaskTime>,
    /// When the stop began, in nanoseconds on CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// When the last task was confirmed to stand, in nanoseconds on CLOCK_MONOTONIC.
    pub confirmed_ns: u64,
    /// When the tasks were let go, in nanoseconds on CLOCK_MONOTONIC.
    pub resumed_ns: u64,
    /// By which means they were stopped.
    pub by: StoppedBy,
}

/// How long a task may take to stop, where nothing else is said.
pub(crate) const USUAL: Duration = Duration::from_secs(3);

impl Stopped {
    pub(crate) async fn stop(reaper: Arc<Reaper>, pid: u32, within: Duration) -> Result<Self, StopError> {
        // The guard exists before the stop is asked for: a caller that gives up waiting must not leave anything stopped.
        let stop = reaper.number();
        let mut stopped = Self {
            reaper,
            stop,
            over: false,
            pid,
            tasks: Vec::new(),
            began_ns: 0,
            confirmed_ns: 0,
            by: StoppedBy::Signal,
        };
        let held = stopped.reaper.stop(pid, stop, within).await?;
        stopped.tasks = held.tasks;
        stopped.began_ns = held.began_ns;
        stopped.confirmed_ns = held.confirmed_ns;
        stopped.by = held.by;
        Ok(stopped)
    }

    /// The process that was stopped.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Every task that stands, with the time that it had run when it was confirmed: the process's own and those of all
    /// its descendants.
    #[must_use]
    pub fn tasks(&self) -> &[TaskTime] {
        &self.tasks
    }

    /// How long it took until every task was seen to stand.
    #[must_use]
    pub fn confirmed_after(&self) -> Duration {
        Duration::from_nanos(self.confirmed_ns.saturating_sub(self.began_ns))
    }

    /// When every task had been seen to stand, in nanoseconds on CLOCK_MONOTONIC.
    #[must_use]
    pub fn confirmed_ns(&self) -> u64 {
        self.confirmed_ns
    }

    /// By which means it was stopped.
    #[must_use]
    pub fn by(&self) -> StoppedBy {
        self.by
    }

    /// Lets everything go on.
    ///
    /// # Errors
    ///
    /// When the reaper has gone; then so has the process.
    pub async fn resume(mut self) -> Result<Pause, AskError> {
        let (after, resumed_ns) = self.reaper.resume(self.stop).await?;
        self.over = true;
        Ok(Pause {
            pid: self.pid,
            before: std::mem::take(&mut self.tasks),
            after,
            began_ns: self.began_ns,
            confirmed_ns: self.confirmed_ns,
            resumed_ns,
            by: self.by,
        })
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if !self.over {
            self.reaper.resume_soon(self.stop);
        }
    }
}

impl Pause {
    /// Whether any task ran while it should have stood, or is no longer there to be asked. Such a pause proves nothing.
    #[must_use]
    pub fn moved(&self) -> bool {
        let after: HashMap<(u32, u32), u64> = self
            .after
            .iter()
            .map(|task| ((task.pid, task.tid), task.cpu_ns))
            .collect();
        self.before
            .iter()
            .any(|task| after.get(&(task.pid, task.tid)) != Some(&task.cpu_ns))
    }

    /// How long it took until every task was seen to stand.
    #[must_use]
    pub fn confirmed_after(&self) -> Duration {
        Duration::from_nanos(self.confirmed_ns.saturating_sub(self.began_ns))
    }

    /// How long everything stood, from the last confirmation to the first task let go.
    #[must_use]
    pub fn stood_for(&self) -> Duration {
        Duration::from_nanos(self.resumed_ns.saturating_sub(self.confirmed_ns))
    }

    /// The processor time of all tasks when they were confirmed, in nanoseconds.
    #[must_use]
    pub fn cpu_before_ns(&self) -> u64 {
        self.before.iter().map(|task| task.cpu_ns).sum()
    }

    /// The processor time of the same tasks just before they went on, in nanoseconds.
    #[must_use]
    pub fn cpu_after_ns(&self) -> u64 {
        self.after.iter().map(|task| task.cpu_ns).sum()
    }
}

impl From<StopRefused> for StopError {
    fn from(refused: StopRefused) -> Self {
        match refused {
            StopRefused::NotOurs { pid } => Self::NotOurs { pid },
            StopRefused::NeverStopped { pid, tid, state } => Self::NeverStopped { pid, tid, state },
            StopRefused::Ask(error) => Self::Ask(error),
        }
    }
}
