//! The reaper's children: how they are started, which of the machine's processes belong to which of them, and how they
//! are reaped.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{WaitOptions, WaitStatus, wait};

use super::protocol::{Ended, Farewell, Spawn};
use crate::process::{self, Entry};

/// The variable that every child and whatever it starts carries, so that an orphan can be told where it came from.
const MARKER: &str = "PAUSE_KIT_CHILD";

/// All children that were started and not yet reaped.
#[derive(Debug)]
pub(super) struct Family {
    me: u32,
    next: u64,
    living: HashMap<u64, Member>,
}

/// One child.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// The kit's number for it.
    pub(super) child: u64,
    /// Its pid. The reaper alone reaps it, so that the number stays its own until then.
    pub(super) pid: u32,
    /// How it ends when the kit goes.
    pub(super) farewell: Farewell,
}

/// What one call of [`Family::reap`] found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reaped {
    /// This child of the kit has ended.
    Member(u64, Ended),
    /// An orphan that had been adopted has ended.
    Orphan,
    /// Children remain, and none has ended.
    NothingYet,
    /// There is no child left at all.
    NoneLeft,
}

impl Family {
    /// A family without children, of the calling process.
    pub(super) fn new() -> Self {
        Self {
            me: std::process::id(),
            next: 1,
            living: HashMap::new(),
        }
    }

    /// Starts a child in a process group of its own.
    pub(super) fn spawn(&mut self, spawn: &Spawn) -> io::Result<Member> {
        let child = self.next;
        let mut command = Command::new(&spawn.program);
        command.args(&spawn.args).process_group(0).stdin(Stdio::null());
        for name in &spawn.env_remove {
            command.env_remove(name);
        }
        command.envs(spawn.env.iter().map(|(name, value)| (name, value)));
        command.env(MARKER, self.marker(child));
        command
            .stdout(append(&spawn.stdout)?)
            .stderr(append(&spawn.stderr)?);
        if let Some(cwd) = &spawn.cwd {
            command.current_dir(cwd);
        }
        if let Some(owner) = spawn.owner {
            command.uid(owner.uid).gid(owner.gid);
        }
        // The handle is dropped without being waited for: `reap` does that for all children at once.
        let pid = command.spawn()?.id();
        self.next += 1;
        let member = Member {
            child,
            pid,
            farewell: spawn.farewell,
        };
        self.living.insert(child, member);
        Ok(member)
    }

    /// The living child with this number.
    pub(super) fn member(&self, child: u64) -> Option<Member> {
        self.living.get(&child).copied()
    }

    /// All living children.
    pub(super) fn members(&self) -> impl Iterator<Item = Member> + '_ {
        self.living.values().copied()
    }

    /// Takes one ended child from the system's hands.
    pub(super) fn reap(&mut self) -> io::Result<Reaped> {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => Ok(self.buried(pid.as_raw_nonzero().get().unsigned_abs(), status)),
            Ok(None) => Ok(Reaped::NothingYet),
            Err(rustix::io::Errno::CHILD) => Ok(Reaped::NoneLeft),
            Err(rustix::io::Errno::INTR) => Ok(Reaped::NothingYet),
            Err(error) => Err(error.into()),
        }
    }

    /// All descendants of the reaper.
    pub(super) fn everyone(&self) -> io::Result<Vec<Entry>> {
        process::below(self.me)
    }

    /// The process `root`, provided that it is the reaper's, and everything that comes from it: its descendants, and
    /// if it is a child of the kit also the orphans that it left behind, whatever their group and session. An orphan
    /// that hides where it came from is counted to every child: to stop too much is seen, too little is not.
    pub(super) fn tree(&self, root: u32) -> io::Result<Vec<Entry>> {
        let everyone = self.everyone()?;
        let mut roots = vec![root];
        if let Some(member) = self.living.values().find(|member| member.pid == root) {
            let orphans = everyone
                .iter()
                .filter(|entry| entry.parent == self.me && !self.is_member(entry));
            roots.extend(
                orphans
                    .filter(|orphan| self.comes_from(orphan, member))
                    .map(|entry| entry.identity.pid),
            );
        }
        let mut found: Vec<Entry> = everyone
            .iter()
            .filter(|entry| roots.contains(&entry.identity.pid))
            .copied()
            .collect();
        if found.iter().any(|entry| entry.identity.pid == root) {
            found.extend(process::descendants(&roots, &everyone));
        } else {
            found.clear();
        }
        Ok(found)
    }

    fn comes_from(&self, orphan: &Entry, member: &Member) -> bool {
        if orphan.group == member.pid || orphan.session == member.pid {
            return true;
        }
        match process::started_with(orphan.identity.pid, MARKER) {
            Some(marker) => marker == self.marker(member.child),
            None => !self
                .living
                .values()
                .any(|other| orphan.group == other.pid || orphan.session == other.pid),
        }
    }

    fn is_member(&self, entry: &Entry) -> bool {
        self.living
            .values()
            .any(|member| member.pid == entry.identity.pid)
    }

    fn marker(&self, child: u64) -> String {
        format!("{}.{child}", self.me)
    }

    fn buried(&mut self, pid: u32, status: WaitStatus) -> Reaped {
        let Some(child) = self
            .living
            .values()
            .find(|member| member.pid == pid)
            .map(|member| member.child)
        else {
            return Reaped::Orphan;
        };
        self.living.remove(&child);
        let ended = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Ended::Code(code),
            (None, Some(signal)) => Ended::Signal(signal),
            (None, None) => Ended::Code(-1),
        };
        Reaped::Member(child, ended)
    }
}

fn append(path: &str) -> io::Result<File> {
    if let Some(folder) = Path::new(path).parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}
