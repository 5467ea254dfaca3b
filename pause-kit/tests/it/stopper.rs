//! A stop is confirmed task by task, and is always undone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pause_kit::services::{Child, ProcessSpec, Services, for_tests};
use pause_kit::stopper::StopError;

use crate::table::{bare, becomes, descendants, states, waits_for_its_child};

const SOON: Duration = Duration::from_secs(10);

/// The number of the system call `clone`.
const CLONE: u32 = if cfg!(target_arch = "aarch64") { 220 } else { 56 };

fn shell(name: &str, script: &str) -> ProcessSpec {
    ProcessSpec::new(name, "/bin/sh").args(["-c", script])
}

pub(crate) fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

/// A shell that writes, with a child, a child in a session of its own and an orphan in a session of its own that write too.
pub(crate) async fn four_writers(services: &Services) -> (Child, Vec<PathBuf>) {
    let files: Vec<PathBuf> = (0..4)
        .map(|n| services.folder().join(format!("writer-{n}")))
        .collect();
    let writes = |n: usize| format!("while :; do echo x >> {}; sleep 0.004; done", files[n].display());
    let script = format!(
        "( {} ) &\n setsid sh -c '{}' &\n (setsid sh -c '{}' &)\n {}",
        writes(0),
        writes(1),
        writes(2),
        writes(3)
    );
    let child = services.spawn(shell("writers", &script)).await.unwrap();
    assert!(
        becomes(SOON, || files.iter().all(|file| size(file) > 4)).is_some(),
        "not all of them write"
    );
    (child, files)
}

#[tokio::test]
async fn a_process_that_has_just_been_started_stands_when_the_stop_returns() {
    let services = bare().await;
    for n in 0..300 {
        let script = if n % 2 == 0 {
            "exec sleep 600"
        } else {
            "while :; do :; done"
        };
        let child = services.spawn(shell("new", script)).await.unwrap();
        let stopped = child.stop().await.unwrap();
        let states = states(child.pid());
        assert!(
            !states.is_empty() && states.iter().all(|state| *state == 'T'),
            "start {n}: {states:?}"
        );
        let pause = stopped.resume().await.unwrap();
        assert!(!pause.moved(), "start {n}: {pause:?}");
        child.kill().await.unwrap();
    }
}

#[tokio::test]
async fn nothing_that_comes_from_a_stopped_process_writes_wherever_it_went() {
    let services = bare().await;
    let (child, files) = four_writers(&services).await;
    for round in 0..10 {
        let stopped = child.stop().await.unwrap();
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
        assert!(pause.stood_for() >= Duration::from_millis(60));
        let grown = || {
            files
                .iter()
                .zip(&before)
                .all(|(file, before)| size(file) > *before)
        };
        assert!(
            becomes(SOON, grown).is_some(),
            "round {round}: not all of them go on"
        );
    }
}

#[tokio::test]
async fn a_panic_inside_the_pause_leaves_nothing_stopped() {
    let services = bare().await;
    let (child, files) = four_writers(&services).await;
    let stopped = child.stop().await.unwrap();
    let before: Vec<u64> = files.iter().map(|file| size(file)).collect();
    let inside = tokio::spawn(async move {
        assert_eq!(stopped.pid(), 0, "this fails on purpose while the process stands");
    });
    assert!(inside.await.unwrap_err().is_panic());
    let grown = || {
        files
            .iter()
            .zip(&before)
            .all(|(file, before)| size(file) > *before)
    };
    assert!(becomes(SOON, grown).is_some());
}

#[tokio::test]
async fn a_stop_that_nobody_waits_for_is_undone() {
    let services = bare().await;
    let (child, files) = four_writers(&services).await;
    for _ in 0..20 {
        tokio::select! {
            biased;
            _ = child.stop() => panic!("a stop cannot be confirmed before it is asked for"),
            () = std::future::ready(()) => {}
        }
    }
    // Whatever is asked later is answered later, so that all those stops are over.
    child.stop().await.unwrap().resume().await.unwrap();
    let before: Vec<u64> = files.iter().map(|file| size(file)).collect();
    let grown = || {
        files
            .iter()
            .zip(&before)
            .all(|(file, before)| size(file) > *before)
    };
    assert!(becomes(SOON, grown).is_some());
}

#[tokio::test]
async fn a_process_in_an_uninterruptible_sleep_is_never_called_stopped() {
    let services = bare().await;
    // A parent whose child shares nothing with it but has to run a program or end before the parent goes on: CLONE_CLONE.
    let script = format!("$| = 1; print \"up\\n\"; syscall({CLONE}, 0x4011, 0, 0, 0, 0); sleep 600");
    let child = services
        .spawn(ProcessSpec::new("vfork", "perl").args(["-e", &script]))
        .await
        .unwrap();
    child.wait_line("up", SOON).await.unwrap();
    assert!(
        becomes(SOON, || waits_for_its_child(child.pid())).is_some(),
        "the parent does not wait for its child"
    );
    let error = child.stop().await.unwrap_err();
    assert_eq!(
        error,
        StopError::NeverStopped {
            pid: child.pid(),
            tid: child.pid(),
            state: 'D'
        }
    );
    let tree = descendants(child.pid());
    assert_eq!(tree.len(), 1);
    assert!(
        becomes(SOON, || states(tree[0].pid) == ['S']).is_some(),
        "the child is still stopped"
    );
}

#[tokio::test]
async fn a_parent_that_is_always_about_to_start_a_program_can_be_stopped() {
    let services = bare().await;
    // Each child takes its time before it runs its program, and its parent cannot stop until then.
    let script = format!(
        "while (1) {{ my $pid = syscall({CLONE}, 0x4011, 0, 0, 0, 0); \
         if ($pid == 0) {{ select undef, undef, undef, 0.05; exec '/bin/true' }} waitpid $pid, 0 }}"
    );
    let child = services
        .spawn(ProcessSpec::new("starter", "perl").args(["-e", &script]))
        .await
        .unwrap();
    for _ in 0..20 {
        assert!(
            becomes(SOON, || waits_for_its_child(child.pid())).is_some(),
            "the parent does not wait for a child"
        );
        let pause = child.stop().await.unwrap().resume().await.unwrap();
        assert!(!pause.moved(), "{pause:?}");
    }
}

#[tokio::test]
async fn what_is_started_while_the_stop_is_under_way_stands_too() {
    let services = bare().await;
    let child = services
        .spawn(shell("breeder", "while :; do sleep 0.05 & done"))
        .await
        .unwrap();
    assert!(becomes(SOON, || descendants(child.pid()).len() > 5).is_some());
    for round in 0..40 {
        let stopped = child.stop().await.unwrap();
        let runs = |pid: u32| states(pid).iter().any(|state| !matches!(state, 'T' | 'Z'));
        let running: Vec<_> = descendants(child.pid())
            .into_iter()
            .filter(|process| runs(process.pid))
            .collect();
        assert!(running.is_empty(), "round {round}: {running:?}");
        assert!(!stopped.resume().await.unwrap().moved(), "round {round}");
    }
}

#[tokio::test]
async fn every_thread_of_a_server_is_recorded() {
    let etcd = for_tests().await.etcd().process();
    let stopped = etcd.stop().await.unwrap();
    let threads = states(etcd.pid());
    assert!(
        threads.len() > 3 && threads.iter().all(|state| *state == 'T'),
        "{threads:?}"
    );
    assert_eq!(stopped.tasks().len(), threads.len());
    let pause = stopped.resume().await.unwrap();
    assert!(!pause.moved() && pause.cpu_before_ns() > 0, "{pause:?}");
}

#[tokio::test]
async fn a_process_that_somebody_else_let_go_on_meanwhile_is_seen_to_have_moved() {
    let services = bare().await;
    let child = services
        .spawn(shell("busy", "while :; do :; done"))
        .await
        .unwrap();
    for round in 0..20 {
        let stopped = child.stop().await.unwrap();
        let continued = services
            .spawn(shell("other", &format!("kill -CONT {}", child.pid())))
            .await
            .unwrap();
        assert!(continued.exited().await.unwrap().success());
        assert!(becomes(SOON, || states(child.pid()) == ['R']).is_some());
        assert!(stopped.resume().await.unwrap().moved(), "round {round}");
    }
}

#[tokio::test]
async fn what_two_stops_hold_goes_on_only_after_both() {
    let services = bare().await;
    let child = services
        .spawn(shell("parent", "sh -c 'echo up; while :; do :; done' & wait"))
        .await
        .unwrap();
    child.wait_line("up", SOON).await.unwrap();
    let inner = descendants(child.pid())[0].pid;
    let all = child.stop().await.unwrap();
    let one = services.stop(inner).await.unwrap();
    all.resume().await.unwrap();
    assert!(becomes(SOON, || states(child.pid()) == ['S']).is_some());
    assert_eq!(states(inner), ['T']);
    one.resume().await.unwrap();
    assert!(becomes(SOON, || states(inner) == ['R']).is_some());
}

#[tokio::test]
async fn a_stranger_is_not_stopped() {
    let services = bare().await;
    let me = std::process::id();
    for pid in [me, 1, u32::MAX] {
        assert_eq!(services.stop(pid).await.unwrap_err(), StopError::NotOurs { pid });
    }
    let child = services.spawn(shell("short", "exit 0")).await.unwrap();
    child.exited().await.unwrap();
    assert_eq!(
        child.stop().await.unwrap_err(),
        StopError::NotOurs { pid: child.pid() }
    );
}
