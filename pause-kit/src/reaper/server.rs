//! The reaper's own loop: one thread that answers requests and reaps, so that no child's number is ever freed while it
//! is being used.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal as Incoming, SignalKind, signal as incoming};
use tokio::sync::mpsc;

use super::family::{Family, Member, Reaped};
use super::freeze;
use super::freezer::Freezer;
use super::leftovers::Leftovers;
use super::protocol::{Answer, Ask, Line, Owner, Refusal, Request, StopWith, StoppedBy, VERSION};
use super::stop::{self, Hold, Kept};
use super::sweep;
use crate::signal::{self, Signal};

/// Serves the kit on standard input and output until the input ends, and then ends everything that it started.
///
/// # Errors
///
/// When the process cannot be set up: it has no children yet, and the kit sees the end of its output.
pub(super) fn serve() -> io::Result<()> {
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))?;
    // Only what `ps` shows.
    let _ = fs::write("/proc/self/comm", "pause-kit-reap");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut server = Server::new();
    let served = runtime.block_on(server.run());
    server.end();
    // The thread that reads the input may be waiting still, when it was an error that led here.
    runtime.shutdown_background();
    served
}

struct Server {
    family: Family,
    leftovers: Leftovers,
    holds: HashMap<u64, Hold>,
    stops_by: StoppedBy,
    freezer: Option<Freezer>,
    folders: Vec<PathBuf>,
    ending: Arc<AtomicBool>,
}

impl Server {
    fn new() -> Self {
        Self {
            family: Family::new(),
            leftovers: Leftovers::since_now(),
            holds: HashMap::new(),
            stops_by: StoppedBy::Signal,
            freezer: None,
            folders: Vec::new(),
            ending: Arc::new(AtomicBool::new(false)),
        }
    }

    async fn run(&mut self) -> io::Result<()> {
        let _ignored = ignored()?;
        let mut child_ended = incoming(SignalKind::child())?;
        let mut requests = requests(Arc::clone(&self.ending))?;
        say(&Line::Hello {
            version: VERSION,
            pid: std::process::id(),
        });
        loop {
            tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => {
                        let answer = self.answer(request.ask);
                        say(&Line::Answer { id: request.id, answer });
                    }
                    None => return Ok(()),
                },
                _ = child_ended.recv() => self.reap()?,
            }
        }
    }

    fn reap(&mut self) -> io::Result<()> {
        loop {
            match self.family.reap()? {
                Reaped::Member(child, status) => say(&Line::Exited { child, status }),
                Reaped::Orphan => {}
                Reaped::NothingYet | Reaped::NoneLeft => return Ok(()),
            }
        }
    }

    fn answer(&mut self, ask: Ask) -> Result<Answer, Refusal> {
        match ask {
            Ask::Spawn(spawn) => {
                let Member { child, pid, .. } = self.family.spawn(&spawn).map_err(system)?;
                Ok(Answer::Spawned { child, pid })
            }
            Ask::Stop { pid, stop, within_ms } => self.stop(pid, stop, Duration::from_millis(within_ms)),
            Ask::StopWith { means } => self.stop_with(means),
            Ask::Resume { stop } => Ok(self.resume(stop)),
            Ask::Terminate { child } => {
                if let Some(member) = self.family.member(child) {
                    let leader = crate::process::entry(member.pid);
                    if let Some(leader) = leader {
                        signal::send(leader.identity, Signal::Terminate).map_err(system)?;
                    }
                }
                Ok(Answer::Sent)
            }
            Ask::Kill { child } => {
                if let Some(member) = self.family.member(child) {
                    sweep::kill(&self.family, member, &mut self.leftovers).map_err(system)?;
                }
                Ok(Answer::Sent)
            }
            Ask::Folder { base, owner } => self.folder(&base, owner).map_err(system),
        }
    }

    fn stop(&mut self, pid: u32, stop: u64, within: Duration) -> Result<Answer, Refusal> {
        let kept = self.kept();
        let (hold, held) = match (self.stops_by, &mut self.freezer) {
            (StoppedBy::Freezer, Some(freezer)) => {
                freeze::freeze(&self.family, freezer, pid, &self.ending, &kept)?
            }
            _ => stop::stop(&self.family, pid, within, &self.ending, &kept)?,
        };
        self.holds.insert(stop, hold);
        Ok(Answer::Stopped(held))
    }

    fn resume(&mut self, stop: u64) -> Answer {
        match self.holds.remove(&stop) {
            Some(hold) => {
                let (tasks, resumed_ns) = stop::resume(hold, &self.kept());
                Answer::Resumed { tasks, resumed_ns }
            }
            None => Answer::Resumed {
                tasks: Vec::new(),
                resumed_ns: stop::monotonic_ns(),
            },
        }
    }

    /// Only one way at a time: what stands by the one cannot be seen to by the other.
    fn stop_with(&mut self, means: StopWith) -> Result<Answer, Refusal> {
        if !self.holds.is_empty() {
            let why = "something stands, and would be let go another way than it was stopped";
            return Err(Refusal::System(why.to_owned()));
        }
        if self.freezer.is_none() && means != StopWith::Signal {
            match Freezer::find() {
                Ok(freezer) => self.freezer = Some(freezer),
                Err(_) if means == StopWith::Auto => {}
                Err(error) => return Err(system(error)),
            }
        }
        self.stops_by = match means {
            StopWith::Freezer | StopWith::Auto if self.freezer.is_some() => StoppedBy::Freezer,
            _ => StoppedBy::Signal,
        };
        Ok(Answer::StopsWith { by: self.stops_by })
    }

    fn kept(&self) -> Kept {
        let mut kept = Kept::new();
        for hold in self.holds.values() {
            for identity in hold.identities() {
                kept.entry(identity).or_default().extend_from_slice(hold.groups());
            }
        }
        kept
    }

    fn folder(&mut self, base: &str, owner: Option<Owner>) -> io::Result<Answer> {
        let mut number = self.folders.len();
        loop {
            let path = PathBuf::from(base).join(format!("fence-{}-{number}", std::process::id()));
            match fs::DirBuilder::new().mode(0o711).create(&path) {
                Ok(()) => {
                    self.folders.push(path.clone());
                    if let Some(owner) = owner {
                        chown(&path, Some(owner.uid), Some(owner.gid))?;
                    }
                    let path = path.to_str().ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
                    return Ok(Answer::Folder { path });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn end(&mut self) {
        // What is frozen would not hear that it is asked to end.
        self.holds.clear();
        sweep::sweep(&mut self.family, &mut self.leftovers);
        self.freezer = None;
        for folder in self.folders.iter().rev() {
            // What cannot be removed now, nobody is left to remove; the processes are gone all the same.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Signals that would end the reaper before its children are handled and dropped. They are caught rather than set to be
/// ignored, because a child would inherit the latter.
fn ignored() -> io::Result<Vec<Incoming>> {
    let kinds = [
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::quit(),
    ];
    let more = [
        SignalKind::pipe(),
        SignalKind::alarm(),
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
    ];
    kinds.into_iter().chain(more).map(incoming).collect()
}

/// The kit's requests, read by a thread that never waits for anything else; the channel closes when the input ends.
fn requests(ending: Arc<AtomicBool>) -> io::Result<mpsc::UnboundedReceiver<Request>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let read = move || {
        for line in io::stdin().lock().lines() {
            let Some(request) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else {
                break;
            };
            if sender.send(request).is_err() {
                break;
            }
        }
        ending.store(true, Ordering::Relaxed);
    };
    thread::Builder::new().name("requests".to_owned()).spawn(read)?;
    Ok(receiver)
}

fn say(line: &Line) {
    let mut text = serde_json::to_string(line).expect("every line of the protocol has a JSON form");
    text.push('\n');
    let mut out = io::stdout().lock();
    // A kit that has gone reads nothing; the end of the input says so, too.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn system(error: io::Error) -> Refusal {
    Refusal::System(error.to_string())
}
