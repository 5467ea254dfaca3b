//! What `/proc` tells about processes: who descends from whom, in which state each task is, and how long it has run.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

/// A process by number and start time, which together are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// The process's number.
    pub(crate) pid: u32,
    /// When it started, in clock ticks since the machine booted.
    pub(crate) started: u64,
}

/// One line of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Which process this is.
    pub(crate) identity: Identity,
    /// Its parent, or whoever adopted it.
    pub(crate) parent: u32,
    /// Its process group.
    pub(crate) group: u32,
    /// Its session.
    pub(crate) session: u32,
    /// The state letter of its main thread.
    pub(crate) state: char,
}

/// One thread of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// The thread's number.
    pub(crate) tid: u32,
    /// Its state letter: `T` is stopped, `Z` and `X` are dead.
    pub(crate) state: char,
    /// How long it has run on a processor, in nanoseconds.
    pub(crate) cpu_ns: u64,
}

impl Task {
    /// Whether the task can run no more of its program until somebody continues it.
    pub(crate) fn is_still(&self) -> bool {
        matches!(self.state, 'T' | 'Z' | 'X')
    }

    /// Whether the task has ended.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// The process with this number, if there is one.
pub(crate) fn entry(pid: u32) -> Option<Entry> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = Fields::of(&stat)?;
    Some(Entry {
        identity: Identity {
            pid,
            started: fields.number(19)?,
        },
        state: fields.letter(0)?,
        parent: fields.number(1)?,
        group: fields.number(2)?,
        session: fields.number(3)?,
    })
}

/// Every process that is visible now. It is not one instant: what starts while it is taken may be missing.
///
/// # Errors
///
/// When `/proc` cannot be listed.
pub(crate) fn snapshot() -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    for item in fs::read_dir("/proc")? {
        let name = item?.file_name();
        if let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) {
            found.extend(entry(pid));
        }
    }
    Ok(found)
}

/// Every process that descends from this one. What starts or is adopted while it is taken may be missing.
///
/// # Errors
///
/// When `/proc` cannot be listed.
pub(crate) fn below(root: u32) -> io::Result<Vec<Entry>> {
    // The kernel's own lists of children make this take no longer on a machine with thousands of other processes. Not every
    // kernel keeps them.
    if fs::exists(format!("/proc/{root}/task/{root}/children"))? {
        let mut found = Vec::new();
        add_below(root, &mut found);
        return Ok(found);
    }
    Ok(descendants(&[root], &snapshot()?))
}

fn add_below(parent: u32, found: &mut Vec<Entry>) {
    for tid in tids(parent) {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{tid}/children"));
        let children = children.unwrap_or_default();
        let children = children
            .split_ascii_whitespace()
            .filter_map(|pid| pid.parse().ok());
        for child in children.filter_map(entry) {
            // Whoever is adopted meanwhile is listed twice.
            if !found.iter().any(|known| known.identity == child.identity) {
                found.push(child);
                add_below(child.identity.pid, found);
            }
        }
    }
}

/// The processes of `all` that descend from one of `roots`, without the roots themselves.
pub(crate) fn descendants(roots: &[u32], all: &[Entry]) -> Vec<Entry> {
    let mut children: HashMap<u32, Vec<Entry>> = HashMap::new();
    for entry in all {
        children.entry(entry.parent).or_default().push(*entry);
    }
    let mut seen: HashSet<u32> = roots.iter().copied().collect();
    let mut waiting = roots.to_vec();
    let mut found = Vec::new();
    while let Some(pid) = waiting.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            if seen.insert(child.identity.pid) {
                waiting.push(child.identity.pid);
                found.push(*child);
            }
        }
    }
    found
}

/// The threads of a process; none when it is gone.
pub(crate) fn tasks(pid: u32) -> Vec<Task> {
    let tids = tids(pid).into_iter();
    tids.filter_map(|tid| task(pid, tid)).collect()
}

/// The numbers of the threads of a process; none when it is gone.
pub(crate) fn tids(pid: u32) -> Vec<u32> {
    let Ok(listing) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let tids = listing.filter_map(|item| item.ok()?.file_name().to_str()?.parse().ok());
    tids.collect()
}

/// Whether a thread has left its processor to wait in the kernel, as far as the kernel tells this user.
pub(crate) fn waits(pid: u32, tid: u32) -> bool {
    let place = fs::read_to_string(format!("/proc/{pid}/task/{tid}/wchan"));
    // Of one that runs, or is about to, it names no place.
    place.is_ok_and(|place| !place.is_empty() && place != "0")
}

/// Whether this thread is one of that process's.
pub(crate) fn has_task(process: Identity, tid: u32) -> bool {
    let there = fs::exists(format!("/proc/{}/task/{tid}", process.pid)).unwrap_or(false);
    there && entry(process.pid).is_some_and(|entry| entry.identity == process)
}

/// The value of `name` in the environment that a process was started with, if that can be read.
pub(crate) fn started_with(pid: u32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    environment.split(|byte| *byte == 0).find_map(|pair| {
        let value = std::str::from_utf8(pair)
            .ok()?
            .strip_prefix(name)?
            .strip_prefix('=')?;
        Some(value.to_owned())
    })
}

fn task(pid: u32, tid: u32) -> Option<Task> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    let fields = Fields::of(&stat)?;
    let ticks = fields.number::<u64>(11)? + fields.number::<u64>(12)?;
    Some(Task {
        tid,
        state: fields.letter(0)?,
        cpu_ns: exact_cpu_ns(pid, tid).unwrap_or(ticks * NS_PER_TICK),
    })
}

/// `utime` and `stime` count in hundredths of a second on every Linux that runs Rust.
const NS_PER_TICK: u64 = 10_000_000;

/// The scheduler's own count, where the kernel keeps one: it shows a thread that ran for a microsecond.
fn exact_cpu_ns(pid: u32, tid: u32) -> Option<u64> {
    let line = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The fields of a `stat` line after the command name, which may itself hold spaces and brackets.
struct Fields<'line>(Vec<&'line str>);

impl<'line> Fields<'line> {
    fn of(line: &'line str) -> Option<Self> {
        let (_, rest) = line.rsplit_once(')')?;
        Some(Self(rest.split_ascii_whitespace().collect()))
    }

    fn letter(&self, index: usize) -> Option<char> {
        self.0.get(index)?.chars().next()
    }

    fn number<T: std::str::FromStr>(&self, index: usize) -> Option<T> {
        self.0.get(index)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let fields = Fields::of("7 (a) b (c)) T 3 4 5 0").map(|fields| (fields.letter(0), fields.number(1)));
        assert_eq!(fields, Some((Some('T'), Some(3_u32))));
    }

    #[test]
    fn descendants_are_found_in_every_generation_and_a_stranger_is_not() {
        let entry = |pid, parent| Entry {
            identity: Identity { pid, started: 1 },
            parent,
            group: pid,
            session: pid,
            state: 'S',
        };
        let all = [entry(40, 30), entry(30, 20), entry(20, 10), entry(99, 1)];
        let mut pids: Vec<u32> = descendants(&[10], &all)
            .iter()
            .map(|found| found.identity.pid)
            .collect();
        pids.sort_unstable();
        assert_eq!(pids, [20, 30, 40]);
    }

    #[test]
    fn children_of_every_thread_and_their_children_are_below_a_process_as_the_whole_table_tells() {
        let sleep = || {
            let mut shell = std::process::Command::new("/bin/sh");
            let mut child = shell.args(["-c", "sleep 60; :"]).spawn().expect("a shell");
            let me = std::process::id();
            let mut table = Vec::new();
            // The shell's own child takes a moment.
            while table.len() < 2 {
                table = descendants(&[child.id()], &snapshot().expect("a table"));
                table.extend(entry(child.id()));
            }
            let found = below(me).expect("a list");
            let all = table
                .iter()
                .all(|entry| found.iter().any(|known| known.identity == entry.identity));
            let strangers = found.iter().filter(|entry| entry.identity.pid == me).count();
            for entry in table {
                let _ = crate::signal::send(entry.identity, crate::signal::Signal::Kill);
            }
            child.wait().expect("the shell's end");
            (all, strangers)
        };
        assert_eq!(sleep(), (true, 0));
        let of_another_thread = std::thread::spawn(sleep).join().expect("no panic");
        assert_eq!(of_another_thread, (true, 0));
    }

    #[test]
    fn this_process_is_in_the_table_with_its_own_threads() {
        let pid = std::process::id();
        let me = entry(pid).map(|entry| entry.identity.pid);
        assert_eq!(me, Some(pid));
        assert!(tasks(pid).iter().any(|task| task.tid == pid && !task.is_still()));
    }
}
