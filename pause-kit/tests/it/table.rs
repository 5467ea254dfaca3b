//! What the tests know of the process table, read by themselves and not with the kit's own eyes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use pause_kit::reaper::ReaperCommand;
use pause_kit::services::{Services, ServicesConfig};

/// A process by number and start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    started: u64,
}

impl Process {
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        Some(Self {
            pid,
            parent: fields[1].parse().ok()?,
            started: fields[19].parse().ok()?,
        })
    }

    /// Still there, and more than a zombie that waits for its parent.
    pub(crate) fn lives(self) -> bool {
        Self::of(self.pid).is_some_and(|now| now.started == self.started)
            && !states(self.pid).iter().all(|s| *s == 'Z')
    }
}

/// The state letter of each task.
pub(crate) fn states(pid: u32) -> Vec<char> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    stats
        .filter_map(|stat| stat.rsplit_once(") ")?.1.chars().next())
        .collect()
}

/// In an uninterruptible sleep, and not for the disk's sake: it has a child that has not run its program yet.
pub(crate) fn waits_for_its_child(pid: u32) -> bool {
    descendants(pid).len() == 1 && states(pid) == ['D']
}

/// Everything that descends from `root` now.
pub(crate) fn descendants(root: u32) -> Vec<Process> {
    let pids = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|item| item.file_name().to_str()?.parse().ok());
    let all: Vec<Process> = pids.filter_map(Process::of).collect();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            parents.push(process.pid);
            found.push(*process);
        }
    }
    found
}

/// The System V shared memory segments that one of `pids` made.
pub(crate) fn segments(pids: &[u32]) -> Vec<String> {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let creator = |row: &&str| {
        row.split_ascii_whitespace()
            .nth(4)
            .and_then(|pid| pid.parse().ok())
    };
    let rows = table
        .lines()
        .skip(1)
        .filter(|row| creator(row).is_some_and(|pid: u32| pids.contains(&pid)));
    rows.map(str::to_owned).collect()
}

/// The System V shared memory segments whose maker has gone.
pub(crate) fn ownerless_segments() -> Vec<String> {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let maker = |row: &str| {
        row.split_ascii_whitespace()
            .nth(4)
            .and_then(|pid| pid.parse().ok())
    };
    let ownerless = |row: &&str| maker(row).is_some_and(|pid| Process::of(pid).is_none());
    table
        .lines()
        .skip(1)
        .filter(ownerless)
        .map(str::to_owned)
        .collect()
}

/// PostgreSQL's shared memory files that no process uses. Another user's are left out, unless this user sees everything.
pub(crate) fn unmapped_files() -> Vec<String> {
    let files = fs::read_dir("/dev/shm")
        .unwrap()
        .flatten()
        .map(|file| file.path());
    let files = files.filter(|file| {
        file.to_str()
            .is_some_and(|name| name.starts_with("/dev/shm/PostgreSQL."))
    });
    let me = fs::metadata("/proc/self").unwrap().uid();
    let visible = files.filter(|file| fs::metadata(file).is_ok_and(|found| me == 0 || found.uid() == me));
    let visible: Vec<String> = visible.map(|file| file.display().to_string()).collect();
    if visible.is_empty() {
        return visible;
    }
    let tables = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|item| fs::read(item.path().join("maps")).ok());
    let used: Vec<String> = tables
        .map(|table| String::from_utf8_lossy(&table).into_owned())
        .collect();
    visible
        .into_iter()
        .filter(|file| !used.iter().any(|table| table.contains(file)))
        .collect()
}

/// Processes that a reaper started, or that stand in its folder, although that reaper has gone.
pub(crate) fn strays() -> Vec<String> {
    let pids = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|item| item.file_name().to_str()?.parse().ok());
    let stray = |pid: &u32| owner(*pid).is_some_and(|reaper| Process::of(reaper).is_none());
    pids.filter(stray).map(shown).collect()
}

/// A process in words.
pub(crate) fn shown(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!(
        "{pid} {:?} {}",
        states(pid),
        String::from_utf8_lossy(&line).replace('\0', " ")
    )
}

/// The reaper that a process comes from, told by its environment or by the folder that it is in.
fn owner(pid: u32) -> Option<u32> {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let folder = fs::read_link(format!("/proc/{pid}/cwd"))
        .unwrap_or_default()
        .display()
        .to_string();
    let after = |text: &str, mark: &str, end: char| text.split_once(mark)?.1.split(end).next()?.parse().ok();
    after(&environment, "PAUSE_KIT_CHILD=", '.').or_else(|| after(&folder, "/fence-", '-'))
}

/// Waits for something to become true, and says how long that took; none when it did not within the time.
pub(crate) fn becomes(within: Duration, mut condition: impl FnMut() -> bool) -> Option<Duration> {
    let began = Instant::now();
    while began.elapsed() < within {
        if condition() {
            return Some(began.elapsed());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// A reaper and a folder, without any server.
pub(crate) async fn bare() -> Services {
    let reaper = ReaperCommand::find().unwrap();
    Services::start(ServicesConfig {
        reaper,
        postgres: false,
        etcd: Vec::new(),
    })
    .await
    .unwrap()
}
