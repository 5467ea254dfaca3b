//! The lines that the kit and its reaper exchange: one JSON object a line, requests one way, answers and events the
//! other.

use serde::{Deserialize, Serialize};

/// Raised with every change to this file, because the two sides may have been built at different times.
pub(crate) const VERSION: u32 = 2;

/// One request of the kit.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// Comes back with the answer.
    pub(crate) id: u64,
    /// What is asked.
    pub(crate) ask: Ask,
}

/// What the kit may ask for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// Start a process in a process group of its own.
    Spawn(Spawn),
    /// Stop a process and all its descendants, and confirm it. The kit numbers its stops, so that it can end one whose
    /// answer it did not wait for. `within_ms` is how long a task may take to stop, where it is stopped by signals.
    Stop { pid: u32, stop: u64, within_ms: u64 },
    /// Stop by these means from now on.
    StopWith { means: StopWith },
    /// Let what one stop holds run on.
    Resume { stop: u64 },
    /// Ask the leader of one child to end.
    Terminate { child: u64 },
    /// End one child and all its descendants.
    Kill { child: u64 },
    /// Make a folder that is removed at the end.
    Folder { base: String, owner: Option<Owner> },
}

/// A user and group by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// The user.
    pub(crate) uid: u32,
    /// The group.
    pub(crate) gid: u32,
}

/// A process to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spawn {
    /// The program; without a slash it is looked for in PATH.
    pub(crate) program: String,
    /// Its arguments, without the program's name.
    pub(crate) args: Vec<String>,
    /// Variables to set on top of the inherited ones.
    pub(crate) env: Vec<(String, String)>,
    /// Inherited variables to leave out.
    pub(crate) env_remove: Vec<String>,
    /// Where it starts; the reaper's own folder when absent.
    pub(crate) cwd: Option<String>,
    /// As whom it runs; as the reaper when absent.
    pub(crate) owner: Option<Owner>,
    /// The file that takes its standard output.
    pub(crate) stdout: String,
    /// The file that takes its standard error.
    pub(crate) stderr: String,
    /// How it is made to end when the kit goes.
    pub(crate) farewell: Farewell,
}

/// How a child is made to end when the kit goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Farewell {
    /// It and its descendants are killed.
    Kill,
    /// The leader is sent SIGQUIT and given a moment: a PostgreSQL server removes its shared memory then.
    Quit,
}

/// One line from the reaper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Line {
    /// The first line.
    Hello { version: u32, pid: u32 },
    /// The answer to a request.
    Answer {
        id: u64,
        answer: Result<Answer, Refusal>,
    },
    /// A child of the kit ended.
    Exited { child: u64, status: Ended },
}

/// What came of a request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The child runs.
    Spawned { child: u64, pid: u32 },
    /// Every task is confirmed stopped.
    Stopped(Held),
    /// Processes are stopped by these means from now on.
    StopsWith { by: StoppedBy },
    /// Everything that the stop held runs on; `tasks` is what still stood there just before.
    Resumed { tasks: Vec<TaskTime>, resumed_ns: u64 },
    /// The signal was sent, or there was nobody left to send it to.
    Sent,
    /// The folder stands.
    Folder { path: String },
}

/// A confirmed stop.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Held {
    /// Every task that stands, with the time that it had run when it was confirmed.
    pub(crate) tasks: Vec<TaskTime>,
    /// When the stop began, on CLOCK_MONOTONIC.
    pub(crate) began_ns: u64,
    /// When the last task was confirmed, on CLOCK_MONOTONIC.
    pub(crate) confirmed_ns: u64,
    /// How.
    pub(crate) by: StoppedBy,
}

/// By which means processes are to be stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopWith {
    /// By signals, which every Linux has.
    #[default]
    Signal,
    /// By the freezer of cgroup v2, which has to be delegated to the user.
    Freezer,
    /// By the freezer where it is delegated, else by signals.
    Auto,
}

/// By which means a process was stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// By SIGSTOP to every thread, each of which was then seen stopped.
    #[default]
    Signal,
    /// By the freezer of cgroup v2, which confirmed that everything in the group was frozen.
    Freezer,
}

impl std::str::FromStr for StopWith {
    type Err = UnknownMeans;

    fn from_str(text: &str) -> Result<StopWith, UnknownMeans> {
        let all = [StopWith::Signal, StopWith::Freezer, StopWith::Auto];
        let means = all.into_iter().find(|means| means.as_str() == text);
        means.ok_or_else(|| UnknownMeans(text.to_owned()))
    }
}

impl StopWith {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Freezer => "freezer",
            Self::Auto => "auto",
        }
    }
}

/// No such means: use one of those that the message lists.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} stops nothing; signal, freezer and auto do")]
pub struct UnknownMeans(String);

impl StoppedBy {
    /// The word for it, as it stands in evidence.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Freezer => "freezer",
        }
    }

    pub(crate) fn is_signal(&self) -> bool {
        *self == Self::Signal
    }
}

/// How long one task had run at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTime {
    /// The process.
    pub pid: u32,
    /// The task in it.
    pub tid: u32,
    /// Time on a processor since the task began, in nanoseconds. Where the kernel keeps no exact count it moves in steps
    /// of 10 ms.
    pub cpu_ns: u64,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// It ended by itself, with this status, 0 to 255.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Ended {
    /// Whether the process ended by itself with status 0.
    #[must_use]
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(out, "status {code}"),
            Self::Signal(signal) => write!(out, "signal {signal}"),
        }
    }
}

/// Why a request was not done.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Refusal {
    /// The system said no.
    System(String),
    /// The process is none of the reaper's, or is gone.
    NotOurs { pid: u32 },
    /// A task stayed in this state.
    NeverStopped { pid: u32, tid: u32, state: char },
    /// The kit went away meanwhile.
    Ending,
}
