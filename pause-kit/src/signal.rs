//! The one place that sends signals: to one process, named by number and start time, through its pidfd, or to the group of a
//! child that has not been waited for.
//!
//! A pid alone may belong to somebody else by the time a signal is sent. A pidfd cannot: it is opened first, and the
//! start time is compared afterwards, so that it names the process that was meant or nothing.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal as Raw, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::process::{self, Identity};

/// What the kit ever sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Stops every thread of the process, once one of them has taken it; it cannot be caught. See [`stop`].
    Stop,
    /// Lets a stopped process run on.
    Continue,
    /// Asks a process to end.
    Terminate,
    /// Asks PostgreSQL to end at once and to remove its shared memory.
    Quit,
    /// Ends a process; it cannot be caught.
    Kill,
}

/// Sends `signal` to the process that `identity` names, and says whether that process was still there.
///
/// # Errors
///
/// When the system refuses, for example because the process belongs to another user.
pub(crate) fn send(identity: Identity, signal: Signal) -> io::Result<bool> {
    let Some(handle) = open(identity)? else {
        return Ok(false);
    };
    match pidfd_send_signal(&handle, raw(signal)) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Stops the process that `identity` names, and says whether it was still there.
///
/// A signal to a process is taken by one of its threads, often the first, and only then do the others learn of it: on a busy
/// machine that one may wait for a processor while they run on. So each thread is sent one of its own, and whichever runs
/// first stops them all. The one to the process is what counts where the kernel, older than Linux 6.9, knows no other; what
/// is left over of them ends with the signal that lets the process go on.
///
/// # Errors
///
/// When the system refuses.
pub(crate) fn stop(identity: Identity) -> io::Result<bool> {
    for tid in process::tids(identity.pid) {
        let Ok(handle) = open_with(tid, THREAD) else { break };
        let ours = process::has_task(identity, tid);
        if let (Some(handle), true) = (handle, ours) {
            // A thread that has ended needs no signal.
            let _ = pidfd_send_signal(&handle, Raw::STOP);
        }
    }
    send(identity, Signal::Stop)
}

/// `PIDFD_THREAD`: the descriptor is one thread's.
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(rustix::fs::OFlags::EXCL.bits());

/// Sends the signal of this number to every process of the group of `leader`, a child of this process that has not been
/// waited for: until then its number is its own, and its group's. A group without processes takes none.
///
/// # Errors
///
/// When the system refuses, or there is no such signal.
pub(crate) fn send_to_group(leader: Pid, number: i32) -> io::Result<()> {
    let signal = Raw::from_named_raw(number).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("no signal has number {number}"),
        )
    })?;
    match kill_process_group(leader, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn open(identity: Identity) -> io::Result<Option<OwnedFd>> {
    let handle = open_with(identity.pid, PidfdFlags::empty())?;
    let same = process::entry(identity.pid).is_some_and(|entry| entry.identity == identity);
    Ok(handle.filter(|_| same))
}

/// A descriptor of whoever has this number now, if anybody has.
fn open_with(number: u32, flags: PidfdFlags) -> io::Result<Option<OwnedFd>> {
    let Some(number) = i32::try_from(number).ok().and_then(Pid::from_raw) else {
        return Ok(None);
    };
    match pidfd_open(number, flags) {
        Ok(handle) => Ok(Some(handle)),
        Err(rustix::io::Errno::SRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn raw(signal: Signal) -> Raw {
    match signal {
        Signal::Stop => Raw::STOP,
        Signal::Continue => Raw::CONT,
        Signal::Terminate => Raw::TERM,
        Signal::Quit => Raw::QUIT,
        Signal::Kill => Raw::KILL,
    }
}
