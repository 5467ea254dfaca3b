//! Shared memory that a killed PostgreSQL process leaves behind: nothing but a restart of the machine would free it.
//!
//! A server that is asked to quit removes its own. What had to be killed did not get to: a server that did not quit in
//! time, and the processes of `initdb`, which put nothing away when they get a signal.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// What the killed may have left.
#[derive(Debug)]
pub(super) struct Leftovers {
    since_s: u64,
    makers: HashSet<u32>,
    files: HashSet<PathBuf>,
}

impl Leftovers {
    /// Nothing yet; what is older than this moment is not ours.
    pub(super) fn since_now() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            since_s: now.as_secs(),
            makers: HashSet::new(),
            files: HashSet::new(),
        }
    }

    /// Remembers a process that is about to be killed, and what it uses.
    pub(super) fn note(&mut self, pid: u32) {
        if self.makers.insert(pid) {
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            self.files.extend(shared_files(&maps));
        }
    }

    /// Removes whatever is left now that all of them are gone.
    pub(super) fn remove(&self) {
        for file in &self.files {
            // Mostly its owner did it already.
            let _ = fs::remove_file(file);
        }
        let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
        for id in self.ownerless(&table) {
            // The standard library cannot do this; where the program is missing, the segment stays.
            let mut remove = Command::new("ipcrm");
            let _ = remove
                .args(["-m", id])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }

    /// The segments that one of these processes made and nobody uses, in a table of the form of `/proc/sysvipc/shm`.
    fn ownerless<'table>(&self, table: &'table str) -> Vec<&'table str> {
        let mut rows = table
            .lines()
            .map(|row| row.split_ascii_whitespace().collect::<Vec<_>>());
        let Some(head) = rows.next() else {
            return Vec::new();
        };
        let column = |name| head.iter().position(|title| *title == name);
        let (Some(id), Some(maker), Some(users), Some(changed)) =
            (column("shmid"), column("cpid"), column("nattch"), column("ctime"))
        else {
            return Vec::new();
        };
        let ours = |row: &Vec<&str>| {
            let maker = row.get(maker).and_then(|pid| pid.parse().ok());
            let changed = row.get(changed).and_then(|time| time.parse().ok());
            row.get(users) == Some(&"0")
                && maker.is_some_and(|pid| self.makers.contains(&pid))
                && changed.is_some_and(|time: u64| time >= self.since_s)
        };
        rows.filter(ours).filter_map(|row| row.get(id).copied()).collect()
    }
}

/// PostgreSQL's dynamic shared memory in a table of the form of `/proc/PID/maps`.
fn shared_files(maps: &str) -> Vec<PathBuf> {
    let paths = maps
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(5));
    paths
        .filter(|path| path.starts_with("/dev/shm/PostgreSQL."))
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime
   9994446          4   600                    56    11    11      0   101   104   101   104         90         90        100
   9994447          5   600                    56    12    11      0   101   104   101   104         90         90        100
   9994448          6   600                    56    11    11      2   101   104   101   104         90         90        100
   9994449          7   600                    56    11    11      0   101   104   101   104         90         90         99
";

    #[test]
    fn only_a_segment_that_is_ours_and_recent_and_unused_is_removed() {
        let leftovers = Leftovers {
            since_s: 100,
            makers: HashSet::from([11]),
            files: HashSet::new(),
        };
        assert_eq!(leftovers.ownerless(TABLE), ["4"]);
    }

    #[test]
    fn only_postgresql_s_own_shared_memory_is_removed() {
        let maps = "7f00-7f01 rw-s 00000000 00:1a 5    /dev/shm/PostgreSQL.42\n\
                    7f01-7f02 rw-s 00000000 00:1a 6    /dev/shm/somebody-else\n\
                    7f02-7f03 rw-p 00000000 00:00 0\n";
        assert_eq!(shared_files(maps), [PathBuf::from("/dev/shm/PostgreSQL.42")]);
    }
}
