//! The kit's side of the pipe. It needs no async runtime of its own, so that one reaper can serve tests that each have
//! theirs.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::command::ReaperCommand;
use super::protocol::{
    Answer, Ask, Ended, Held, Line, Owner, Refusal, Request, Spawn, StopWith, StoppedBy, TaskTime, VERSION,
};

/// How long [`Reaper::close`] waits for the reaper to go. It needs less than two seconds.
const CLOSING: Duration = Duration::from_secs(40);

/// The reaper could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartReaperError {
    /// The program could not be run: name another one.
    #[error("cannot run the reaper {program}")]
    Run {
        /// What was run.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The program is no reaper, or of another build of the kit: build it again.
    #[error("{program} is not a reaper of this build; build it again with `cargo build -p pause-kit --bins`")]
    OtherBuild {
        /// What was run.
        program: String,
    },
}

/// The reaper did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The system refused; the request, or what it names, is at fault.
    #[error("{0}")]
    System(String),
    /// The reaper has ended, and with it everything that it started: start anew.
    #[error("the reaper has gone, and everything that it started with it")]
    Gone,
}

/// Why a stop was not confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StopRefused {
    NotOurs { pid: u32 },
    NeverStopped { pid: u32, tid: u32, state: char },
    Ask(AskError),
}

/// The reaper that this process has started. When it is dropped, everything that it started is gone.
#[derive(Debug)]
pub(crate) struct Reaper {
    input: Mutex<Option<ChildStdin>>,
    process: Mutex<Child>,
    next: AtomicU64,
    shared: Arc<Shared>,
}

impl Reaper {
    /// Starts the reaper and waits for its greeting.
    pub(crate) fn start(command: &ReaperCommand) -> Result<Self, StartReaperError> {
        let program = command.program.display().to_string();
        let run = |source| StartReaperError::Run {
            program: program.clone(),
            source,
        };
        let mut reaper = Command::new(&command.program);
        reaper
            .args(&command.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = reaper.spawn().map_err(run)?;
        let input = process.stdin.take();
        let output = process.stdout.take().expect("the output was asked to be a pipe");
        let mut output = BufReader::new(output);
        let mut greeting = String::new();
        let read = output.read_line(&mut greeting);
        let known = matches!(
            serde_json::from_str(&greeting),
            Ok(Line::Hello { version: VERSION, .. })
        );
        if read.is_err() || !known {
            drop(input);
            let _ = process.wait();
            return Err(StartReaperError::OtherBuild { program });
        }
        let shared = Arc::new(Shared::default());
        let listener = Arc::clone(&shared);
        let thread = thread::Builder::new().name("reaper-lines".to_owned());
        thread.spawn(move || listener.listen(output)).map_err(run)?;
        let (input, process) = (Mutex::new(input), Mutex::new(process));
        Ok(Self {
            input,
            process,
            next: AtomicU64::new(1),
            shared,
        })
    }

    /// Starts a process; returns the reaper's number for it, its pid, and how to learn of its end.
    pub(crate) async fn spawn(&self, spawn: Spawn) -> Result<Spawned, AskError> {
        match self.ask(Ask::Spawn(spawn)).await.map_err(plain)? {
            Answer::Spawned { child, pid } => {
                let ended = lock(&self.shared.state)
                    .exits
                    .get(&child)
                    .map(watch::Sender::subscribe);
                Ok(Spawned {
                    child,
                    pid,
                    ended: ended.ok_or(AskError::Gone)?,
                })
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Makes a folder that the reaper removes at its end.
    pub(crate) async fn folder(&self, base: &str, owner: Option<Owner>) -> Result<String, AskError> {
        match self
            .ask(Ask::Folder {
                base: base.to_owned(),
                owner,
            })
            .await
            .map_err(plain)?
        {
            Answer::Folder { path } => Ok(path),
            other => Err(unexpected(&other)),
        }
    }

    /// A number that was not used before.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Stops by these means from now on; says which they are.
    pub(crate) async fn stop_with(&self, means: StopWith) -> Result<StoppedBy, AskError> {
        match self.ask(Ask::StopWith { means }).await.map_err(plain)? {
            Answer::StopsWith { by } => Ok(by),
            other => Err(unexpected(&other)),
        }
    }

    /// Stops a process with everything that comes from it, each task within this time; `stop` names this stop when it is ended.
    pub(crate) async fn stop(&self, pid: u32, stop: u64, within: Duration) -> Result<Held, StopRefused> {
        let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        match self.ask(Ask::Stop { pid, stop, within_ms }).await? {
            Answer::Stopped(held) => Ok(held),
            other => Err(StopRefused::Ask(unexpected(&other))),
        }
    }

    /// Ends one stop; returns the counters just before, and when that was on CLOCK_MONOTONIC.
    pub(crate) async fn resume(&self, stop: u64) -> Result<(Vec<TaskTime>, u64), AskError> {
        match self.ask(Ask::Resume { stop }).await.map_err(plain)? {
            Answer::Resumed { tasks, resumed_ns } => Ok((tasks, resumed_ns)),
            other => Err(unexpected(&other)),
        }
    }

    /// Ends one stop without waiting for the answer, as a destructor has to.
    pub(crate) fn resume_soon(&self, stop: u64) {
        // A reaper that has gone has left nothing stopped.
        let _ = self.send(Ask::Resume { stop });
    }

    /// Asks one child to end.
    pub(crate) async fn terminate(&self, child: u64) -> Result<(), AskError> {
        self.ask(Ask::Terminate { child }).await.map(drop).map_err(plain)
    }

    /// Ends one child and everything that comes from it.
    pub(crate) async fn kill(&self, child: u64) -> Result<(), AskError> {
        self.ask(Ask::Kill { child }).await.map(drop).map_err(plain)
    }

    /// Ends everything that was started and waits until it is gone.
    pub(crate) fn close(&self) {
        drop(lock(&self.input).take());
        let began = Instant::now();
        let mut process = lock(&self.process);
        while matches!(process.try_wait(), Ok(None)) && began.elapsed() < CLOSING {
            thread::sleep(Duration::from_millis(2));
        }
    }

    async fn ask(&self, ask: Ask) -> Result<Answer, StopRefused> {
        let answer = self.send(ask).map_err(StopRefused::Ask)?;
        match answer.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Refusal::System(message))) => Err(StopRefused::Ask(AskError::System(message))),
            Ok(Err(Refusal::NotOurs { pid })) => Err(StopRefused::NotOurs { pid }),
            Ok(Err(Refusal::NeverStopped { pid, tid, state })) => {
                Err(StopRefused::NeverStopped { pid, tid, state })
            }
            Ok(Err(Refusal::Ending)) | Err(_) => Err(StopRefused::Ask(AskError::Gone)),
        }
    }

    fn send(&self, ask: Ask) -> Result<oneshot::Receiver<Result<Answer, Refusal>>, AskError> {
        let id = self.number();
        let (sender, receiver) = oneshot::channel();
        self.shared.expect(id, sender)?;
        let request = Request { id, ask };
        let mut line =
            serde_json::to_string(&request).expect("every request of the protocol has a JSON form");
        line.push('\n');
        let mut input = lock(&self.input);
        let pipe = input.as_mut().ok_or(AskError::Gone)?;
        pipe.write_all(line.as_bytes())
            .and_then(|()| pipe.flush())
            .map_err(|_| AskError::Gone)?;
        Ok(receiver)
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.close();
    }
}

/// A process that the reaper has started.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) child: u64,
    pub(crate) pid: u32,
    pub(crate) ended: watch::Receiver<Option<Ended>>,
}

/// What the listening thread shares with those who ask.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    gone: bool,
    waiting: HashMap<u64, oneshot::Sender<Result<Answer, Refusal>>>,
    exits: HashMap<u64, watch::Sender<Option<Ended>>>,
}

impl Shared {
    fn expect(&self, id: u64, sender: oneshot::Sender<Result<Answer, Refusal>>) -> Result<(), AskError> {
        let mut state = lock(&self.state);
        if state.gone {
            return Err(AskError::Gone);
        }
        state.waiting.insert(id, sender);
        Ok(())
    }

    fn listen(&self, output: BufReader<ChildStdout>) {
        for line in output.lines() {
            let Some(line) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else {
                break;
            };
            self.take(line);
        }
        let mut state = lock(&self.state);
        // Dropped senders tell whoever waits.
        *state = State {
            gone: true,
            ..State::default()
        };
    }

    fn take(&self, line: Line) {
        let mut state = lock(&self.state);
        match line {
            Line::Hello { .. } => {}
            Line::Answer { id, answer } => {
                if let Ok(Answer::Spawned { child, .. }) = &answer {
                    state.exits.insert(*child, watch::Sender::new(None));
                }
                if let Some(sender) = state.waiting.remove(&id) {
                    // Whoever gave up waiting needs no answer.
                    let _ = sender.send(answer);
                }
            }
            Line::Exited { child, status } => {
                if let Some(exit) = state.exits.get(&child) {
                    exit.send_replace(Some(status));
                }
            }
        }
    }
}

impl From<AskError> for StopRefused {
    fn from(error: AskError) -> Self {
        Self::Ask(error)
    }
}

/// What only a stop is answered with cannot come of another request.
fn plain(refused: StopRefused) -> AskError {
    match refused {
        StopRefused::Ask(error) => error,
        StopRefused::NotOurs { pid } | StopRefused::NeverStopped { pid, .. } => AskError::System(format!(
            "the reaper answered a stop of {pid} that nobody asked for"
        )),
    }
}

fn unexpected(answer: &Answer) -> AskError {
    AskError::System(format!("the reaper answered something else: {answer:?}"))
}

/// No state is left half changed by a panic here: every change is one insertion, removal or write.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
