//! Stops by the freezer of cgroup v2, where one is delegated to whoever runs the tests. Where none is, each test says by its name
//! that it was not run, and that stops go by signals then.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pause_kit::services::{ProcessSpec, Services};
use pause_kit::stopper::{StopWith, StoppedBy};

use crate::stopper::{four_writers, size};
use crate::table::{Process, bare, becomes, descendants, shown};

const SOON: Duration = Duration::from_secs(10);

/// A kit that freezes. `None` where no freezer is delegated, which is said with the test's name.
pub(crate) async fn freezing(test: &str) -> Option<Services> {
    let services = bare().await;
    match services.stop_with(StopWith::Freezer).await {
        Ok(by) => {
            assert_eq!(by, StoppedBy::Freezer);
            assert_eq!(services.stop_with(StopWith::Auto).await, Ok(StoppedBy::Freezer));
            Some(services)
        }
        Err(why) => {
            println!("{test} was not run: {why}");
            assert_eq!(services.stop_with(StopWith::Auto).await, Ok(StoppedBy::Signal));
            None
        }
    }
}

/// The folder of the group that a process is in.
pub(crate) fn group_of(pid: u32) -> PathBuf {
    let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let mount = mounts
        .lines()
        .find_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
            [_, point, "cgroup2", ..] => Some(point.to_owned()),
            _ => None,
        });
    Path::new(&mount.unwrap()).join(own.trim_start_matches('/'))
}

/// Whether the system says that everything in a group is frozen.
pub(crate) fn is_frozen(group: &Path) -> bool {
    let events = fs::read_to_string(group.join("cgroup.events")).unwrap_or_default();
    events.lines().any(|line| line == "frozen 1")
}

#[tokio::test]
async fn nothing_that_comes_from_a_frozen_process_writes_wherever_it_went() {
    let test = "nothing_that_comes_from_a_frozen_process_writes_wherever_it_went";
    let Some(services) = freezing(test).await else {
        return;
    };
    let (child, files) = four_writers(&services).await;
    let mut group = PathBuf::new();
    for round in 0..10 {
        let stopped = child.stop().await.unwrap();
        assert_eq!(stopped.by(), StoppedBy::Freezer);
        group = group_of(child.pid());
        assert!(is_frozen(&group), "round {round}: {}", group.display());
        let before: Vec<u64> = files.iter().map(|file| size(file)).collect();
        // Time itself is under test: nothing may happen in it.
        tokio::time::sleep(Duration::from_millis(60)).await;
        let after: Vec<u64> = files.iter().map(|file| size(file)).collect();
        assert_eq!(before, after, "round {round}");
        let pause = stopped.resume().await.unwrap();
        assert!(
            !pause.moved() && pause.before.len() >= 4,
            "round {round}: {pause:?}"
        );
        let grown = || {
            let mut sizes = files.iter().zip(&before);
            sizes.all(|(file, before)| size(file) > *before)
        };
        assert!(
            becomes(SOON, grown).is_some(),
            "round {round}: not all of them go on"
        );
    }
    drop(services);
    assert!(
        !group.exists() && !group.parent().unwrap().exists(),
        "{}",
        group.display()
    );
}

#[tokio::test]
async fn what_is_started_while_the_freezer_closes_is_frozen_too() {
    let Some(services) = freezing("what_is_started_while_the_freezer_closes_is_frozen_too").await else {
        return;
    };
    let script = "while :; do sleep 0.05 & done";
    let breeder = ProcessSpec::new("breeder", "/bin/sh").args(["-c", script]);
    let child = services.spawn(breeder).await.unwrap();
    assert!(becomes(SOON, || descendants(child.pid()).len() > 5).is_some());
    for round in 0..10 {
        let stopped = child.stop().await.unwrap();
        let group = group_of(child.pid());
        let tree: Vec<Process> = descendants(child.pid())
            .into_iter()
            .filter(|one| one.lives())
            .collect();
        tokio::time::sleep(Duration::from_millis(60)).await;
        let later: Vec<Process> = descendants(child.pid())
            .into_iter()
            .filter(|one| one.lives())
            .collect();
        assert_eq!(tree, later, "round {round}");
        assert!(
            later.iter().all(|one| group_of(one.pid) == group),
            "round {round}"
        );
        let pause = stopped.resume().await.unwrap();
        assert!(!pause.moved(), "round {round}: {pause:?}");
    }
}

#[tokio::test]
async fn what_two_stops_hold_goes_on_when_both_are_over_and_no_sooner() {
    let Some(services) = freezing("what_two_stops_hold_goes_on_when_both_are_over_and_no_sooner").await
    else {
        return;
    };
    let (child, files) = four_writers(&services).await;
    // The shell below it, which has the words of its script too.
    let is_shell = |one: &Process| one.parent == child.pid() && shown(one.pid).contains("writer-3");
    let inner = descendants(child.pid()).into_iter().find(is_shell).unwrap();
    for inner_first in [true, false] {
        let (one, other) = match inner_first {
            true => (inner.pid, child.pid()),
            false => (child.pid(), inner.pid),
        };
        let first = services.stop(one).await.unwrap();
        let second = services.stop(other).await.unwrap();
        let before: Vec<u64> = files.iter().map(|file| size(file)).collect();
        let grows = |n: usize| size(&files[n]) > before[n];
        assert!(!first.resume().await.unwrap().moved(), "{inner_first}");
        // What the first one alone held goes on now, and nothing of the second.
        if !inner_first {
            assert!(becomes(SOON, || grows(3)).is_some(), "the outer one stands still");
        }
        assert!(!grows(0), "{inner_first}: the inner one goes on");
        let still = group_of(if inner_first { child.pid() } else { inner.pid });
        assert!(is_frozen(&still), "{inner_first}: {}", still.display());
        assert!(is_frozen(&group_of(inner.pid)), "{inner_first}: held by both");
        let pause = second.resume().await.unwrap();
        assert!(!pause.moved(), "{inner_first}: {pause:?}");
        let before: Vec<u64> = files.iter().map(|file| size(file)).collect();
        let grown = || {
            let mut sizes = files.iter().zip(&before);
            sizes.all(|(file, before)| size(file) > *before)
        };
        assert!(
            becomes(SOON, grown).is_some(),
            "{inner_first}: not all of them go on"
        );
    }
}

#[tokio::test]
async fn the_means_cannot_change_while_something_stands() {
    let Some(services) = freezing("the_means_cannot_change_while_something_stands").await else {
        return;
    };
    let sleeper = ProcessSpec::new("sleeper", "/bin/sh").args(["-c", "exec sleep 600"]);
    let child = services.spawn(sleeper).await.unwrap();
    let stopped = child.stop().await.unwrap();
    assert!(services.stop_with(StopWith::Signal).await.is_err());
    stopped.resume().await.unwrap();
    assert_eq!(services.stop_with(StopWith::Signal).await, Ok(StoppedBy::Signal));
    assert_eq!(child.stop().await.unwrap().by(), StoppedBy::Signal);
}
