//! Stopping a whole tree, and being sure of it.
//!
//! SIGSTOP is asynchronous: the sender goes on before the target stands. So each task is looked at until it does, and
//! then the tree is listed once more: what was started meanwhile is in that list, because nobody who could start more is
//! running.

use std::collections::{HashMap, HashSet};
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::family::Family;
use super::freezer::Group;
use super::protocol::{Held, Refusal, StoppedBy, TaskTime};
use crate::process::{self, Identity, Task};
use crate::signal::{self, Signal};

/// How long a process may take to freeze.
pub(super) const BOUND: Duration = Duration::from_secs(3);

/// After this long, and again after every such time, the tree is let run for a moment and stopped again: a parent in
/// `vfork` cannot stop until its child, which was stopped first, has gone on to its new program. The moment grows, in
/// case the machine is busy.
const NUDGE: Duration = Duration::from_millis(100);
const FIRST_MOMENT: Duration = Duration::from_millis(2);
const LAST_MOMENT: Duration = Duration::from_millis(64);

/// Between two looks at `/proc`.
pub(super) const LOOK: Duration = Duration::from_micros(200);

/// Processes that are held by a confirmed stop.
#[derive(Debug)]
pub(super) struct Hold {
    held: Vec<Identity>,
    tasks: HashSet<(u32, u32)>,
    /// Where they stand, if they are frozen. What another stop froze stands in its group until neither holds it.
    groups: Vec<Rc<Group>>,
}

/// What other stops hold, and the groups in which those hold it, if it is frozen.
pub(super) type Kept = HashMap<Identity, Vec<Rc<Group>>>;

/// Stops `root` and everything that comes from it. On an error all of it runs again. A task may take `within` to stop; in an
/// uninterruptible sleep it may never.
pub(super) fn stop(
    family: &Family,
    root: u32,
    within: Duration,
    ending: &AtomicBool,
    kept: &Kept,
) -> Result<(Hold, Held), Refusal> {
    let began = monotonic_ns();
    let mut halt = Halt {
        family,
        root,
        within,
        ending,
        held: Vec::new(),
        started: Instant::now(),
    };
    match halt.run() {
        Ok(tasks) => {
            let held = Held {
                tasks: tasks.clone(),
                began_ns: began,
                confirmed_ns: monotonic_ns(),
                by: StoppedBy::Signal,
            };
            let tasks = tasks.iter().map(|task| (task.pid, task.tid)).collect();
            Ok((Hold::new(halt.held, tasks, Vec::new()), held))
        }
        Err(refusal) => {
            go_on(&halt.held, kept);
            Err(refusal)
        }
    }
}

/// Reads the counters of everything that `hold` holds, then lets it run on, apart from what another stop still `keeps`.
pub(super) fn resume(hold: Hold, keeps: &Kept) -> (Vec<TaskTime>, u64) {
    let mut after = Vec::new();
    let frozen = !hold.groups.is_empty() && hold.groups.iter().all(|group| group.is_frozen());
    for identity in &hold.held {
        // A task that runs now was let go by somebody else, and its counter may lag behind.
        let stands = |task: &Task| task.is_still() || frozen && !task.is_dead();
        let known = |task: &Task| stands(task) && hold.tasks.contains(&(identity.pid, task.tid));
        after.extend(
            times(*identity)
                .into_iter()
                .filter(|(task, _)| known(task))
                .map(|(_, time)| time),
        );
    }
    let resumed_ns = monotonic_ns();
    if hold.groups.is_empty() {
        go_on(&hold.held, keeps);
    }
    // One that nobody else holds is let go with the hold. From any other, what that one does not hold is taken out.
    for group in hold.groups.iter().filter(|group| Rc::strong_count(group) > 1) {
        let is_kept = |pid: &u32| keeps.keys().any(|kept| kept.pid == *pid);
        for pid in group.members().into_iter().filter(|pid| !is_kept(pid)) {
            // One that has gone meanwhile needs no place.
            let _ = group.let_go(pid);
        }
    }
    (after, resumed_ns)
}

impl Hold {
    pub(super) fn new(held: Vec<Identity>, tasks: HashSet<(u32, u32)>, groups: Vec<Rc<Group>>) -> Hold {
        Hold { held, tasks, groups }
    }

    /// The groups that they are frozen in, if they are.
    pub(super) fn groups(&self) -> &[Rc<Group>] {
        &self.groups
    }

    /// The processes that this stop holds.
    pub(super) fn identities(&self) -> impl Iterator<Item = Identity> + '_ {
        self.held.iter().copied()
    }
}

/// CLOCK_MONOTONIC in nanoseconds.
pub(super) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

struct Halt<'reaper> {
    family: &'reaper Family,
    root: u32,
    within: Duration,
    ending: &'reaper AtomicBool,
    held: Vec<Identity>,
    started: Instant,
}

impl Halt<'_> {
    fn run(&mut self) -> Result<Vec<TaskTime>, Refusal> {
        self.signal_newcomers()?;
        loop {
            self.confirm()?;
            if !self.signal_newcomers()? {
                return self.settled_times();
            }
        }
    }

    /// Signals whoever is in the tree and was not yet signalled; says whether there was anybody.
    fn signal_newcomers(&mut self) -> Result<bool, Refusal> {
        let tree = self.family.tree(self.root).map_err(system)?;
        if !tree.iter().any(|entry| !is_gone(entry.identity)) {
            return Err(Refusal::NotOurs { pid: self.root });
        }
        let mut any = false;
        for entry in tree {
            if !self.held.contains(&entry.identity) {
                any = true;
                self.held.push(entry.identity);
                signal::stop(entry.identity).map_err(system)?;
            }
        }
        Ok(any)
    }

    fn confirm(&self) -> Result<(), Refusal> {
        let mut nudge_at = self.started.elapsed() + NUDGE;
        let mut moment = FIRST_MOMENT;
        while let Some((pid, task)) = self.running() {
            if self.ending.load(Ordering::Relaxed) {
                return Err(Refusal::Ending);
            }
            if self.started.elapsed() > self.within {
                return Err(Refusal::NeverStopped {
                    pid,
                    tid: task.tid,
                    state: task.state,
                });
            }
            // A task that is about to run only waits for a processor.
            if task.state == 'D' && self.started.elapsed() > nudge_at {
                self.nudge(moment)?;
                moment = (moment * 2).min(LAST_MOMENT);
                nudge_at = self.started.elapsed() + NUDGE;
            }
            sleep(LOOK);
        }
        Ok(())
    }

    fn running(&self) -> Option<(u32, Task)> {
        self.held.iter().find_map(|identity| {
            let task = tasks(*identity).into_iter().find(|task| !task.is_still())?;
            Some((identity.pid, task))
        })
    }

    fn nudge(&self, moment: Duration) -> Result<(), Refusal> {
        for identity in &self.held {
            signal::send(*identity, Signal::Continue).map_err(system)?;
        }
        sleep(moment);
        for identity in &self.held {
            signal::stop(*identity).map_err(system)?;
        }
        Ok(())
    }

    /// The counters, once they have stopped moving: the scheduler books a task's last stretch a moment after the task
    /// shows as stopped.
    fn settled_times(&self) -> Result<Vec<TaskTime>, Refusal> {
        let mut before = self.times();
        loop {
            sleep(LOOK);
            let after = self.times();
            if before == after && self.running().is_none() {
                return Ok(after);
            }
            if self.started.elapsed() > self.within {
                let moved = after.iter().find(|time| !before.contains(time));
                let (pid, tid) = moved.map_or((self.root, self.root), |time| (time.pid, time.tid));
                return Err(Refusal::NeverStopped { pid, tid, state: 'R' });
            }
            before = after;
        }
    }

    fn times(&self) -> Vec<TaskTime> {
        let all = self.held.iter().flat_map(|identity| times(*identity));
        all.filter(|(task, _)| !task.is_dead())
            .map(|(_, time)| time)
            .collect()
    }
}

fn go_on(held: &[Identity], kept: &Kept) {
    for identity in held.iter().rev().filter(|identity| !kept.contains_key(identity)) {
        // Whoever may be stopped may be continued; what is gone needs nothing.
        let _ = signal::send(*identity, Signal::Continue);
    }
}

pub(super) fn is_gone(identity: Identity) -> bool {
    tasks(identity).iter().all(Task::is_dead)
}

pub(super) fn times(identity: Identity) -> Vec<(Task, TaskTime)> {
    let all = tasks(identity).into_iter();
    all.map(|task| {
        (
            task,
            TaskTime {
                pid: identity.pid,
                tid: task.tid,
                cpu_ns: task.cpu_ns,
            },
        )
    })
    .collect()
}

pub(super) fn tasks(identity: Identity) -> Vec<Task> {
    let tasks = process::tasks(identity.pid);
    let same = process::entry(identity.pid).is_some_and(|entry| entry.identity == identity);
    if same { tasks } else { Vec::new() }
}

pub(super) fn system(error: io::Error) -> Refusal {
    Refusal::System(error.to_string())
}
