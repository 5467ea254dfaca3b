//! Whatever becomes of the kit, nothing is left.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pause_kit::reaper::{Ended, ReaperCommand, StartReaperError};
use pause_kit::services::{ProcessSpec, ServiceError, Services, ServicesConfig};

use crate::freezer::{freezing, group_of, is_frozen};
use crate::table::{Process, bare, becomes, descendants, segments, shown, states, waits_for_its_child};

const SOON: Duration = Duration::from_secs(10);

/// Another kit in a process of its own, which holds a process and a backend stopped.
struct OtherKit {
    process: Child,
    folder: PathBuf,
    postmaster: u32,
    stopped: Vec<u32>,
    tree: Vec<Process>,
}

impl OtherKit {
    fn start() -> Self {
        let kit = Self::that_stops_with("signal");
        assert!(
            kit.stopped.iter().all(|pid| states(*pid) == ['T']),
            "{:?}",
            kit.stopped
        );
        kit
    }

    fn that_stops_with(means: &str) -> Self {
        let reaper = Path::new(env!("CARGO_BIN_EXE_pause-kit-reaper"));
        let program = reaper.with_file_name("examples").join("hold");
        assert!(
            program.exists(),
            "no {}; run all of pause-kit's tests",
            program.display()
        );
        // What a shell starts in the background ignores SIGINT, and so would the kit: a signal that is ignored ends nothing.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT,TERM").arg(&program).arg(means);
        command.env("FENCE_REAPER", reaper).stdout(Stdio::piped());
        let run = command.spawn();
        let mut process = run.unwrap_or_else(|error| panic!("env {}: {error}", program.display()));
        let mut lines = BufReader::new(process.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let mut said = |prefix: &str| lines.next().unwrap().strip_prefix(prefix).unwrap().to_owned();
        let (folder, postmaster) = (
            PathBuf::from(said("folder ")),
            said("postmaster ").parse().unwrap(),
        );
        let stopped: Vec<u32> = said("stopped ")
            .split(' ')
            .map(|pid| pid.parse().unwrap())
            .collect();
        let tree = descendants(process.id());
        assert!(
            tree.len() > 10,
            "the reaper, PostgreSQL, etcd and the shells: {tree:?}"
        );
        assert_eq!(
            segments(&[postmaster]).len(),
            1,
            "PostgreSQL has one segment while it runs"
        );
        Self {
            process,
            folder,
            postmaster,
            stopped,
            tree,
        }
    }

    fn reaper(&self) -> u32 {
        self.tree
            .iter()
            .find(|process| process.parent == self.process.id())
            .unwrap()
            .pid
    }

    fn is_gone_within(&self, within: Duration) {
        let gone = becomes(within, || {
            !self.tree.iter().any(|process| process.lives()) && !self.folder.exists()
        });
        let left: Vec<_> = self
            .tree
            .iter()
            .filter(|process| process.lives())
            .map(|process| shown(process.pid))
            .collect();
        assert!(
            gone.is_some(),
            "left after {within:?}: {left:?}, folder: {}",
            self.folder.exists()
        );
        assert_eq!(segments(&[self.postmaster]), [""; 0]);
        assert_eq!(processes_with(&self.folder), [""; 0]);
    }
}

/// A test that fails must not leave its kit behind.
impl Drop for OtherKit {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn processes_with(folder: &Path) -> Vec<String> {
    let pids = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|item| item.file_name().to_str()?.parse().ok());
    pids.map(shown)
        .filter(|line| line.contains(folder.to_str().unwrap()))
        .collect()
}

/// Sends a signal as a stranger would; the kit's own way of doing so is not what is under test.
fn send(signal: &str, target: &str) {
    let status = Command::new("/bin/sh")
        .args(["-c", &format!("kill -s {signal} -- {target}")])
        .status();
    assert!(status.unwrap().success(), "kill -s {signal} -- {target}");
}

#[test]
fn a_killed_kit_leaves_no_server_no_stopped_process_no_shared_memory_and_no_folder() {
    let mut kit = OtherKit::start();
    kit.process.kill().unwrap();
    kit.process.wait().unwrap();
    kit.is_gone_within(Duration::from_secs(5));
}

#[tokio::test]
async fn a_killed_kit_leaves_nothing_frozen_and_no_group() {
    let test = "a_killed_kit_leaves_nothing_frozen_and_no_group";
    if freezing(test).await.is_none() {
        return;
    }
    let mut kit = OtherKit::that_stops_with("freezer");
    let groups: Vec<PathBuf> = kit.stopped.iter().map(|pid| group_of(*pid)).collect();
    assert!(groups.iter().all(|group| is_frozen(group)), "{groups:?}");
    kit.process.kill().unwrap();
    kit.process.wait().unwrap();
    kit.is_gone_within(Duration::from_secs(5));
    let left = || {
        groups
            .iter()
            .any(|group| group.exists() || group.parent().unwrap().exists())
    };
    assert!(becomes(SOON, || !left()).is_some(), "left: {groups:?}");
}

#[test]
fn a_kit_that_dies_of_a_signal_that_it_does_not_handle_leaves_nothing_within_two_seconds() {
    for signal in ["INT", "TERM"] {
        let mut kit = OtherKit::start();
        send(signal, &kit.process.id().to_string());
        kit.process.wait().unwrap();
        kit.is_gone_within(Duration::from_secs(2));
    }
}

#[test]
fn the_reaper_is_in_a_session_of_its_own_and_does_not_die_of_what_ends_the_kit() {
    let mut kit = OtherKit::start();
    let reaper = kit.reaper();
    let stat = fs::read_to_string(format!("/proc/{reaper}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_ascii_whitespace()
        .collect();
    let own = reaper.to_string();
    assert_eq!(fields[2..4], [own.as_str(), own.as_str()], "group and session");
    for signal in ["INT", "TERM", "HUP", "QUIT", "PIPE", "ALRM", "USR1", "USR2"] {
        send(signal, &own);
    }
    kit.process.kill().unwrap();
    kit.process.wait().unwrap();
    kit.is_gone_within(Duration::from_secs(5));
}

#[tokio::test]
async fn dropping_the_services_ends_what_ignores_signals_has_left_its_session_or_stands_stopped() {
    let services = bare().await;
    let script = "trap '' TERM INT HUP QUIT; (setsid sh -c 'trap \"\" TERM; env -i sleep 600' &); \
                  setsid sleep 600 & sleep 600 & echo up; wait";
    let child = services
        .spawn(ProcessSpec::new("stubborn", "/bin/sh").args(["-c", script]))
        .await
        .unwrap();
    child.wait_line("up", SOON).await.unwrap();
    let reaper = Process::of(child.pid()).unwrap().parent;
    assert!(
        becomes(SOON, || descendants(reaper).len() == 5).is_some(),
        "{:?}",
        descendants(reaper)
    );
    let tree = descendants(reaper);
    let folder = services.folder().to_owned();
    let stopped = child.stop().await.unwrap();
    let began = Instant::now();
    drop(services);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let left: Vec<_> = tree.iter().filter(|process| process.lives()).collect();
    assert!(
        left.is_empty() && Process::of(reaper).is_none() && !folder.exists(),
        "{left:?}"
    );
    assert!(stopped.resume().await.is_err(), "there is nothing left to resume");
}

#[tokio::test]
async fn a_kit_that_goes_while_a_stop_cannot_be_confirmed_does_not_wait_for_it() {
    let services = bare().await;
    let number = if cfg!(target_arch = "aarch64") { 220 } else { 56 };
    let script = format!("syscall({number}, 0x4011, 0, 0, 0, 0); sleep 600");
    let child = services
        .spawn(ProcessSpec::new("vfork", "perl").args(["-e", &script]))
        .await
        .unwrap();
    assert!(becomes(SOON, || waits_for_its_child(child.pid())).is_some());
    let tree = descendants(Process::of(child.pid()).unwrap().parent);
    let waiting = async { child.stop().await.map(|_| ()) };
    assert!(
        tokio::time::timeout(Duration::from_millis(50), waiting)
            .await
            .is_err()
    );
    let began = Instant::now();
    drop(services);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(!tree.iter().any(|process| process.lives()));
}

#[tokio::test]
async fn a_kill_takes_the_whole_tree_and_is_reported() {
    let services = bare().await;
    let script = "(setsid sleep 600 &); sleep 600 & echo up; wait";
    let child = services
        .spawn(ProcessSpec::new("tree", "/bin/sh").args(["-c", script]))
        .await
        .unwrap();
    child.wait_line("up", SOON).await.unwrap();
    let reaper = Process::of(child.pid()).unwrap().parent;
    assert!(becomes(SOON, || descendants(reaper).len() == 3).is_some());
    let tree = descendants(reaper);
    assert_eq!(child.kill().await.unwrap(), Ended::Signal(9));
    assert!(!tree.iter().any(|process| process.lives()));
}

#[tokio::test]
async fn a_kill_of_one_child_spares_the_others_and_their_orphans() {
    let services = bare().await;
    let script = "(setsid sleep 600 &); sleep 600 & echo up; wait";
    let spec = ProcessSpec::new("tree", "/bin/sh").args(["-c", script]);
    let (one, other) = (
        services.spawn(spec.clone()).await.unwrap(),
        services.spawn(spec).await.unwrap(),
    );
    let reaper = Process::of(one.pid()).unwrap().parent;
    assert!(becomes(SOON, || descendants(reaper).len() == 6).is_some());
    one.kill().await.unwrap();
    assert!(
        becomes(SOON, || descendants(reaper).len() == 3).is_some(),
        "{:?}",
        descendants(reaper)
    );
    assert_eq!(other.ended(), None);
}

#[tokio::test]
async fn a_child_inherits_no_end_of_the_pipe_between_kit_and_reaper() {
    let services = bare().await;
    let child = services
        .spawn(ProcessSpec::new("sleep", "sleep").args(["600"]))
        .await
        .unwrap();
    let reaper = Process::of(child.pid()).unwrap().parent;
    let pipes = [0, 1].map(|end| fs::read_link(format!("/proc/{reaper}/fd/{end}")).unwrap());
    assert!(
        pipes
            .iter()
            .all(|pipe| pipe.to_str().unwrap().starts_with("pipe:")),
        "{pipes:?}"
    );
    let files = fs::read_dir(format!("/proc/{}/fd", child.pid())).unwrap();
    let open: Vec<PathBuf> = files
        .map(|file| fs::read_link(file.unwrap().path()).unwrap())
        .collect();
    assert!(
        open.len() >= 3 && !open.iter().any(|file| pipes.contains(file)),
        "{open:?}"
    );
}

#[tokio::test]
async fn a_program_that_is_no_reaper_is_named_with_the_way_to_build_one() {
    let reaper = ReaperCommand {
        program: "/bin/true".into(),
        args: Vec::new(),
    };
    let error = Services::start(ServicesConfig {
        reaper,
        postgres: false,
        etcd: Vec::new(),
    })
    .await
    .unwrap_err();
    assert!(
        matches!(
            error,
            ServiceError::StartReaper(StartReaperError::OtherBuild { .. })
        ),
        "{error:?}"
    );
}
