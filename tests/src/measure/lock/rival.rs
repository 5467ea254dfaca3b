//! etcd's own mutex, in Go, which this program is timed beside.

use std::path::PathBuf;
use std::process::{Command as Build, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::measure::Failure;
use crate::measure::run::root;

/// The program, which goes when its standard input ends.
pub(super) struct Rival {
    _process: Child,
    asks: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

/// On what a mutex is taken.
#[derive(Clone, Copy)]
pub(super) enum On {
    /// One session for all.
    Shared,
    /// A session for each lock.
    Each,
}

impl Rival {
    pub(super) fn start(endpoint: &str) -> Result<Rival, Failure> {
        let mut process = Command::new(built()?)
            .arg(endpoint)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let asks = process.stdin.take().ok_or("no standard input")?;
        let answers = BufReader::new(process.stdout.take().ok_or("no standard output")?).lines();
        Ok(Rival {
            _process: process,
            asks,
            answers,
        })
    }

    /// How long so many locks and unlocks took.
    pub(super) async fn take(&mut self, on: On, count: u32) -> Result<Duration, Failure> {
        let word = match on {
            On::Shared => "shared",
            On::Each => "each",
        };
        self.asks
            .write_all(format!("{word} {count}\n").as_bytes())
            .await?;
        let line = self.answers.next_line().await?.ok_or("etcd's mutex ended")?;
        Ok(Duration::from_nanos(line.parse()?))
    }
}

fn built() -> Result<PathBuf, Failure> {
    let program = root().join("target/servers/etcd-mutex");
    let built = Build::new("go")
        .args(["build", "-mod=readonly", "-trimpath", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(root().join("tests/etcd-mutex"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            format!("etcd's mutex is built with Go 1.25 or newer, and go was not started: {error}")
        })?;
    match built.status.success() {
        true => Ok(program),
        false => Err(format!(
            "etcd's mutex was not built: {}",
            String::from_utf8_lossy(&built.stderr)
        )
        .into()),
    }
}
