//! Stopping a whole tree by the freezer, and being sure of it.
//!
//! The group is frozen before anybody is in it, so that whoever is taken into it stands as soon as it would run its own program
//! again, and whatever it starts until then is born there. Then the tree is listed once more, as after signals.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::family::Family;
use super::freezer::{Freezer, Group};
use super::protocol::{Held, Refusal, StoppedBy, TaskTime};
use super::stop::{BOUND, Hold, Kept, LOOK, is_gone, monotonic_ns, system, tasks, times};
use crate::process::{self, Identity, Task};

/// How long the counters must stand still where the kernel does not tell whether a task has left its processor.
const UNTOLD: Duration = Duration::from_millis(100);

/// Freezes `root` and everything that comes from it. On an error all of it runs again, apart from what another stop holds.
pub(super) fn freeze(
    family: &Family,
    freezer: &mut Freezer,
    root: u32,
    ending: &AtomicBool,
    kept: &Kept,
) -> Result<(Hold, Held), Refusal> {
    let began_ns = monotonic_ns();
    let mut frost = Frost {
        family,
        root,
        ending,
        kept,
        group: freezer.frozen_group().map_err(system)?,
        others: Vec::new(),
        held: Vec::new(),
        started: Instant::now(),
    };
    let tasks = frost.run()?;
    let held = Held {
        tasks: tasks.clone(),
        began_ns,
        confirmed_ns: monotonic_ns(),
        by: StoppedBy::Freezer,
    };
    let tasks = tasks.iter().map(|task| (task.pid, task.tid)).collect();
    let mut groups = frost.others;
    groups.push(Rc::new(frost.group));
    Ok((Hold::new(frost.held, tasks, groups), held))
}

struct Frost<'reaper> {
    family: &'reaper Family,
    root: u32,
    ending: &'reaper AtomicBool,
    kept: &'reaper Kept,
    group: Group,
    /// Those of other stops, in which something stands that this one is to hold too.
    others: Vec<Rc<Group>>,
    held: Vec<Identity>,
    started: Instant,
}

impl Frost<'_> {
    fn run(&mut self) -> Result<Vec<TaskTime>, Refusal> {
        self.take_newcomers()?;
        loop {
            self.confirm()?;
            if !self.take_newcomers()? {
                return self.settled_times();
            }
        }
    }

    /// Takes whoever is in the tree and was not taken yet; says whether there was anybody.
    fn take_newcomers(&mut self) -> Result<bool, Refusal> {
        let tree = self.family.tree(self.root).map_err(system)?;
        if !tree.iter().any(|entry| !is_gone(entry.identity)) {
            return Err(Refusal::NotOurs { pid: self.root });
        }
        let mut any = false;
        for entry in tree {
            if !self.held.contains(&entry.identity) {
                any = true;
                self.held.push(entry.identity);
                // What another stop holds stands already: to take it from one group to another would run it for a moment.
                match self.kept.get(&entry.identity) {
                    Some(groups) => self.hold_too(groups),
                    None => self.group.take(entry.identity.pid).map_err(system)?,
                }
            }
        }
        Ok(any)
    }

    fn hold_too(&mut self, groups: &[Rc<Group>]) {
        for group in groups {
            if !self.others.iter().any(|other| Rc::ptr_eq(other, group)) {
                self.others.push(Rc::clone(group));
            }
        }
    }

    fn confirm(&self) -> Result<(), Refusal> {
        while !self.group.is_frozen() {
            self.may_go_on(|| self.held.iter().find_map(|identity| running(*identity)))?;
            sleep(LOOK);
        }
        Ok(())
    }

    /// The counters, once they have stopped moving: a task counts as frozen a moment before it leaves its processor, and its last
    /// stretch is booked when it does.
    fn settled_times(&self) -> Result<Vec<TaskTime>, Refusal> {
        let mut before = self.times();
        let mut since = Instant::now();
        loop {
            sleep(LOOK);
            let left = before.iter().all(|time| process::waits(time.pid, time.tid));
            let after = self.times();
            let moved = after.iter().find(|time| !before.contains(time)).copied();
            if before != after {
                since = Instant::now();
            } else if (left || since.elapsed() > UNTOLD) && self.group.is_frozen() {
                return Ok(after);
            }
            self.may_go_on(|| moved.map(|time| (time.pid, time.tid, 'R')))?;
            before = after;
        }
    }

    /// Whether there is time left. If not, `running` says which task still runs, where one is seen to.
    fn may_go_on(&self, running: impl FnOnce() -> Option<(u32, u32, char)>) -> Result<(), Refusal> {
        if self.ending.load(Ordering::Relaxed) {
            return Err(Refusal::Ending);
        }
        if self.started.elapsed() <= BOUND {
            return Ok(());
        }
        let (pid, tid, state) = running().unwrap_or((self.root, self.root, 'R'));
        Err(Refusal::NeverStopped { pid, tid, state })
    }

    fn times(&self) -> Vec<TaskTime> {
        let all = self.held.iter().flat_map(|identity| times(*identity));
        all.filter(|(task, _)| !task.is_dead())
            .map(|(_, time)| time)
            .collect()
    }
}

/// A task that is on a processor, or in a sleep that nothing interrupts.
fn running(identity: Identity) -> Option<(u32, u32, char)> {
    let is_running = |task: &Task| matches!(task.state, 'R' | 'D');
    let task = tasks(identity).into_iter().find(is_running)?;
    Some((identity.pid, task.tid, task.state))
}
