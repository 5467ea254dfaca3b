//! A command in a process group of its own, with the streams of whoever started it.
//!
//! The whole group can be sent a signal while its first process has not been waited for: until then no other group can
//! bear its number.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::signal;

/// A command that runs, with all that it started and that stayed in its group. Dropping it kills the group.
#[derive(Debug)]
pub struct Group {
    child: Child,
    leader: Pid,
    reaped: bool,
}

impl Group {
    /// Starts a command in a group of its own.
    ///
    /// # Errors
    ///
    /// When the program cannot be run.
    pub fn start(command: &mut Command) -> io::Result<Group> {
        let child = command.process_group(0).spawn()?;
        let leader = Pid::from_child(&child);
        Ok(Group {
            child,
            leader,
            reaped: false,
        })
    }

    /// The number of the group, and of its first process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the first process has ended, without taking its number from it: the rest of its group may live, and can
    /// still be signalled. A process that a terminal suspends is continued at once, for it would go on holding.
    ///
    /// # Errors
    ///
    /// When the system cannot wait.
    pub async fn ended(&self) -> io::Result<()> {
        let leader = self.leader;
        tokio::task::spawn_blocking(move || until_ended(leader))
            .await
            .map_err(io::Error::other)?
    }

    /// Sends a signal, by its number, to every process of the group. A group whose processes have all ended takes none.
    ///
    /// # Errors
    ///
    /// When the system refuses, or there is no such signal.
    pub fn signal(&self, number: i32) -> io::Result<()> {
        match self.reaped {
            true => Ok(()),
            false => signal::send_to_group(self.leader, number),
        }
    }

    /// Kills the group; it cannot be caught.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn kill_all(&self) -> io::Result<()> {
        self.signal(rustix::process::Signal::KILL.as_raw())
    }

    /// How the first process has ended; waits for it. The group takes no signals afterwards.
    ///
    /// # Errors
    ///
    /// When the system cannot wait.
    pub fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.reaped = true;
        Ok(status)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.reaped {
            // Where the system refuses there is nothing left to try.
            let _ = self.kill_all();
            let _ = self.child.wait();
        }
    }
}

fn until_ended(leader: Pid) -> io::Result<()> {
    loop {
        let changed = WaitIdOptions::EXITED | WaitIdOptions::STOPPED;
        match waitid(WaitId::Pid(leader), changed | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) if status.stopped() => {
                let by = status.stopping_signal();
                // Taken, so that the next wait waits.
                waitid(WaitId::Pid(leader), WaitIdOptions::STOPPED)?;
                if by == Some(rustix::process::Signal::TSTP.as_raw()) {
                    signal::send_to_group(leader, rustix::process::Signal::CONT.as_raw())?;
                }
            }
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Group {
        Group::start(Command::new("sh").args(["-c", script])).expect("sh starts")
    }

    #[tokio::test]
    async fn a_signal_reaches_the_whole_group_and_the_end_is_seen_before_the_number_is_given_back() {
        let mut group = shell("sleep 600 & sleep 600; exit 7");
        group.signal(15).expect("the group is there");
        group.ended().await.expect("it can be waited for");
        // Its first process is over, and the group can still be named.
        group.kill_all().expect("the group is there");
        let status = group.reap().expect("it ended");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
        group.signal(15).expect("nobody is meant any more");
    }

    #[tokio::test]
    async fn a_group_that_is_dropped_is_killed() {
        let group = shell("sleep 600");
        let id = group.id();
        drop(group);
        assert!(crate::process::entry(id).is_none());
    }

    #[test]
    fn a_program_that_is_not_there_starts_no_group() {
        assert!(Group::start(&mut Command::new("/nonexistent/program")).is_err());
    }
}
