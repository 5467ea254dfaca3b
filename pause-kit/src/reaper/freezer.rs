//! The freezer of cgroup v2: nothing that is in a frozen group runs, and what is born in one is born frozen.
//!
//! It needs a group in which groups of one's own may be made: that of this process, where it is delegated to its user.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a group may take to be removable once nothing is in it.
const REMOVAL: Duration = Duration::from_secs(1);

/// The groups of this process's making.
#[derive(Debug)]
pub(super) struct Freezer {
    folder: PathBuf,
    made: u64,
}

/// One of them. Whatever is in it runs once this is dropped.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
}

impl Freezer {
    /// The freezer, where this process may make groups.
    ///
    /// # Errors
    ///
    /// When there is no cgroup v2, or none that this process may make groups in, or one that is older than its freezer.
    pub(super) fn find() -> io::Result<Freezer> {
        let own = own_group(
            &fs::read_to_string("/proc/self/mountinfo")?,
            &fs::read_to_string("/proc/self/cgroup")?,
        )
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no cgroup v2 is mounted"))?;
        Self::in_group(&own).map_err(|error| {
            let why = format!("no groups can be made in the cgroup {}: {error}", own.display());
            io::Error::new(error.kind(), why)
        })
    }

    fn in_group(own: &Path) -> io::Result<Freezer> {
        // Whoever moves a process must be able to write where both groups have their root.
        fs::OpenOptions::new()
            .write(true)
            .open(own.join("cgroup.procs"))?;
        let folder = own.join(format!("pause-kit-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let freezer = Freezer { folder, made: 0 };
        fs::metadata(freezer.folder.join("cgroup.freeze"))?;
        Ok(freezer)
    }

    /// A new group that is frozen before anything is in it.
    pub(super) fn frozen_group(&mut self) -> io::Result<Group> {
        self.made += 1;
        let folder = self.folder.join(format!("stop-{}", self.made));
        fs::create_dir(&folder)?;
        let group = Group { folder };
        group.set_frozen(true)?;
        Ok(group)
    }
}

impl Drop for Freezer {
    /// Removes every group. Nothing is in them any more: whatever was put there was ended before.
    fn drop(&mut self) {
        let groups = (1..=self.made).map(|number| self.folder.join(format!("stop-{number}")));
        let began = Instant::now();
        for group in groups.chain([self.folder.clone()]) {
            // The last of the dead leave a moment after they were waited for.
            while fs::remove_dir(&group).is_err() && group.exists() && began.elapsed() < REMOVAL {
                sleep(Duration::from_millis(1));
            }
        }
    }
}

impl Group {
    /// Takes a process with all its threads into the group. One that has gone is none.
    pub(super) fn take(&self, pid: u32) -> io::Result<()> {
        take(&self.folder, pid)
    }

    /// Takes a process out of it, to where it runs.
    pub(super) fn let_go(&self, pid: u32) -> io::Result<()> {
        self.folder.parent().map_or(Ok(()), |outside| take(outside, pid))
    }

    /// Whether everything in the group stands: an empty one does.
    pub(super) fn is_frozen(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("cgroup.events")).unwrap_or_default();
        events.lines().any(|line| line == "frozen 1")
    }

    /// The processes in it.
    pub(super) fn members(&self) -> Vec<u32> {
        let members = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        members.lines().filter_map(|pid| pid.parse().ok()).collect()
    }

    fn set_frozen(&self, frozen: bool) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.freeze"), if frozen { "1" } else { "0" })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group that this process made can be written by it. It stays until the end: whatever is in it runs on there.
        let _ = self.set_frozen(false);
    }
}

/// Takes a process into the group of this folder.
fn take(group: &Path, pid: u32) -> io::Result<()> {
    match fs::write(group.join("cgroup.procs"), pid.to_string()) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(()),
        taken => taken,
    }
}

/// Where the group of a process stands, from its `/proc` files of these names.
fn own_group(mountinfo: &str, cgroup: &str) -> Option<PathBuf> {
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    mountinfo.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        if !kind.starts_with("cgroup2 ") {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = Path::new(own).strip_prefix(root).ok()?;
        Some(Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
31 24 0:27 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
39 31 0:35 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
40 31 0:36 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
";

    #[test]
    fn the_group_is_found_below_its_mount_whatever_else_is_mounted() {
        let found = own_group(MOUNTS, "8:freezer:/other\n0::/user.slice/app.scope\n");
        assert_eq!(found, Some("/sys/fs/cgroup/unified/user.slice/app.scope".into()));
        let of_container = MOUNTS.replace("0:36 / ", "0:36 /user.slice ");
        let found = own_group(&of_container, "0::/user.slice/app.scope\n");
        assert_eq!(found, Some("/sys/fs/cgroup/unified/app.scope".into()));
    }

    #[test]
    fn no_group_is_found_where_version_2_is_not_mounted_or_the_group_is_outside_the_mount() {
        assert_eq!(own_group(MOUNTS, "8:freezer:/other\n"), None);
        assert_eq!(own_group(&MOUNTS.replace("cgroup2 ", "cgroup "), "0::/\n"), None);
        assert_eq!(own_group(&MOUNTS.replace("0:36 / ", "0:36 /a "), "0::/b\n"), None);
    }
}
