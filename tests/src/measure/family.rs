//! Everything that descends from this process, so that nothing left behind goes unseen, whatever its name.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, wait};

use super::Failure;

/// One descendant.
#[derive(Clone, Debug)]
pub(crate) struct Relative {
    pub(crate) pid: u32,
    parent: u32,
    /// The state letter: `T` is stopped.
    pub(crate) state: char,
    /// The name that the system shows.
    pub(crate) name: String,
}

/// Makes this process the one that adopts orphans among its descendants, so that each stays in its family.
pub(crate) fn adopt() -> Result<(), Failure> {
    set_child_subreaper(Some(getpid()))?;
    Ok(())
}

/// Every living descendant of this process. Adopted orphans that have ended are reaped on the way; `keep` is a child whose
/// status somebody else waits for.
pub(crate) fn relatives(keep: u32) -> Result<Vec<Relative>, Failure> {
    let mut table = BTreeMap::new();
    for item in fs::read_dir("/proc")? {
        let Some(pid) = item?
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        if let Some(relative) = relative(pid) {
            table.insert(pid, relative);
        }
    }
    let me = std::process::id();
    let mut found = Vec::new();
    let mut parents = vec![me];
    while let Some(parent) = parents.pop() {
        for child in table.values().filter(|relative| relative.parent == parent) {
            parents.push(child.pid);
            if child.state == 'Z' {
                if child.parent == me && child.pid != keep {
                    let pid = i32::try_from(child.pid)?;
                    let _ = rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
                }
            } else {
                found.push(child.clone());
            }
        }
    }
    Ok(found)
}

/// How long until no descendant is left, or who is still there after `limit`.
pub(crate) fn gone_within(limit: Duration) -> Result<Result<Duration, Vec<Relative>>, Failure> {
    let start = Instant::now();
    loop {
        let left = relatives(0)?;
        if left.is_empty() {
            return Ok(Ok(start.elapsed()));
        }
        if start.elapsed() > limit {
            return Ok(Err(left));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Reaps whatever ended and was not waited for.
pub(crate) fn reap() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

fn relative(pid: u32) -> Option<Relative> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = stat.rsplit_once(") ")?;
    let mut fields = tail.split(' ');
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Relative {
        pid,
        parent,
        state,
        name: head.split_once('(')?.1.to_owned(),
    })
}
