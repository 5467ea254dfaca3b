//! The command interrupted, at every kind of moment, by every signal a person or a machine sends.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::family::{Relative, adopt, gone_within, reap, relatives};
use super::run::{folder, left_behind, prove, segments, wait};
use super::{Failure, Figure};

/// When the signal comes.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// The servers are being started.
    Starting,
    /// PostgreSQL and etcd run.
    Servers,
    /// A holder stands stopped.
    Stopped,
}

impl Moment {
    fn has_come(self, relatives: &[Relative]) -> bool {
        let runs = |name: &str| relatives.iter().any(|relative| relative.name.starts_with(name));
        match self {
            Moment::Starting => runs("initdb") || runs("etcd"),
            Moment::Servers => runs("postgres") && runs("etcd") && runs("paydb"),
            Moment::Stopped => relatives.iter().any(|relative| relative.state == 'T'),
        }
    }
}

pub(crate) fn interrupt() -> Result<Figure, Failure> {
    adopt()?;
    let (mut clean, mut all) = (0, 0);
    let mut slowest = Duration::ZERO;
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        for group in [false, true] {
            for moment in [Moment::Starting, Moment::Servers, Moment::Stopped] {
                all += 1;
                let to = if group { "its group" } else { "the process" };
                match once(signal, group, moment) {
                    Ok((took, exit)) => {
                        clean += 1;
                        slowest = slowest.max(took);
                        println!(
                            "{signal:?} to {to}, {moment:?}: all gone after {} ms, exit {exit}",
                            took.as_millis()
                        );
                    }
                    Err(error) => println!("{signal:?} to {to}, {moment:?}: {error}"),
                }
            }
        }
    }
    Ok(Figure {
        line: format!(
            "{clean} of {all} interruptions clean, the slowest after {} ms",
            slowest.as_millis()
        ),
        reached: clean == all,
    })
}

/// Sends a signal to the command that was started as this process, or to its whole group.
pub(super) fn send(signal: Signal, id: u32, group: bool) -> Result<(), Failure> {
    let pid = Pid::from_raw(i32::try_from(id)?).ok_or("the command has no pid")?;
    match group {
        true => kill_process_group(pid, signal)?,
        false => kill_process(pid, signal)?,
    }
    Ok(())
}

/// One interruption: how long until everything was gone, and the exit code.
fn once(signal: Signal, group: bool, moment: Moment) -> Result<(Duration, i32), Failure> {
    let temporary = folder()?;
    let out = tempfile::tempdir()?;
    let segments = segments()?;
    let evidence = out.path().join("evidence").display().to_string();
    let mut child = prove(temporary.path(), &["--scenario", "S01", "--out", &evidence])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let id = child.id();
    let start = Instant::now();
    while !moment.has_come(&relatives(id)?) {
        if let Some(status) = child.try_wait()? {
            let mut text = String::new();
            if let Some(mut stderr) = child.stderr.take() {
                stderr.read_to_string(&mut text)?;
            }
            return Err(format!("the command ended first, {status}: {text}").into());
        }
        if start.elapsed() > Duration::from_secs(60) {
            return Err("the moment did not come within 60 s".into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let sent = Instant::now();
    send(signal, id, group)?;
    let exit = wait(&mut child)?;
    let limit = Duration::from_secs(if signal == Signal::KILL { 5 } else { 2 });
    let gone = gone_within(limit.saturating_sub(sent.elapsed()))?;
    let took = sent.elapsed();
    reap();
    if let Err(left) = gone {
        let left: Vec<String> = left
            .iter()
            .map(|one| format!("{} {} {}", one.pid, one.name, one.state))
            .collect();
        return Err(format!("after {limit:?} there are still {left:?}").into());
    }
    let mut left = left_behind(temporary.path(), segments)?;
    if signal == Signal::KILL {
        left.retain(|what| what.contains("shared memory"));
    }
    if out.path().read_dir()?.next().is_some() {
        left.push("half of the evidence".into());
    }
    if !left.is_empty() {
        return Err(format!("left behind: {left:?}").into());
    }
    Ok((took, exit))
}
