//! The end: whatever the reaper's children and their descendants are, and however they stand, nothing is left of them.

use std::collections::HashSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::family::{Family, Member, Reaped};
use super::leftovers::Leftovers;
use super::protocol::Farewell;
use crate::process::{self, Entry};
use crate::signal::{self, Signal};

/// How long the tree of a server that was asked to quit is left alone.
const ASKED: Duration = Duration::from_millis(600);

/// After this long its leader is killed too, and not only what stands below it.
const KILLED: Duration = Duration::from_millis(1300);

/// A process in an uninterruptible sleep outlives even SIGKILL; for such a one the reaper waits no longer than this.
const GIVEN_UP: Duration = Duration::from_secs(30);

const LOOK: Duration = Duration::from_millis(2);

/// Ends all descendants of the reaper and reaps them.
pub(super) fn sweep(family: &mut Family, leftovers: &mut Leftovers) {
    let began = Instant::now();
    let servers: Vec<Member> = family
        .members()
        .filter(|member| member.farewell == Farewell::Quit)
        .collect();
    let mut spared = ask(family, &servers);
    while began.elapsed() < GIVEN_UP {
        while let Ok(Reaped::Member(..) | Reaped::Orphan) = family.reap() {}
        if matches!(family.reap(), Ok(Reaped::NoneLeft)) {
            break;
        }
        let Ok(everyone) = family.everyone() else { continue };
        if began.elapsed() < ASKED {
            spared.extend(below(&spared, &everyone));
        } else {
            spared.retain(|pid| began.elapsed() < KILLED && servers.iter().any(|server| server.pid == *pid));
        }
        for entry in everyone {
            leftovers.note(entry.identity.pid);
            end(&entry, spared.contains(&entry.identity.pid));
        }
        sleep(LOOK);
    }
    leftovers.remove();
}

/// Ends one child with everything that comes from it. The child itself is reaped later, so that its number cannot be
/// given to anybody else meanwhile.
pub(super) fn kill(family: &Family, member: Member, leftovers: &mut Leftovers) -> std::io::Result<()> {
    let began = Instant::now();
    while began.elapsed() < GIVEN_UP {
        let tree = family.tree(member.pid)?;
        let alive = tree.iter().filter(|entry| {
            !process::tasks(entry.identity.pid)
                .iter()
                .all(process::Task::is_dead)
        });
        let alive: Vec<&Entry> = alive.collect();
        if alive.is_empty() {
            break;
        }
        for entry in alive {
            leftovers.note(entry.identity.pid);
            signal::send(entry.identity, Signal::Kill)?;
        }
        sleep(LOOK);
    }
    Ok(())
}

/// Asks the servers to quit, and returns the numbers of everything in their trees.
fn ask(family: &Family, servers: &[Member]) -> HashSet<u32> {
    let mut spared = HashSet::new();
    for server in servers {
        for entry in family.tree(server.pid).unwrap_or_default() {
            spared.insert(entry.identity.pid);
            // A stopped backend would not see its postmaster's signal.
            let _ = signal::send(entry.identity, Signal::Continue);
            if entry.identity.pid == server.pid {
                let _ = signal::send(entry.identity, Signal::Quit);
            }
        }
    }
    spared
}

fn below(spared: &HashSet<u32>, everyone: &[Entry]) -> Vec<u32> {
    let roots: Vec<u32> = spared.iter().copied().collect();
    process::descendants(&roots, everyone)
        .iter()
        .map(|entry| entry.identity.pid)
        .collect()
}

fn end(entry: &Entry, spared: bool) {
    // Another user's process, or one that has just gone, is no reason to leave the others alone.
    if !spared {
        let _ = signal::send(entry.identity, Signal::Kill);
    } else if entry.state == 'T' {
        let _ = signal::send(entry.identity, Signal::Continue);
    }
}
