//! The processes that a run starts besides its servers: the target's replicas and workers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::reaper::{AskError, Ended, Farewell, Owner, Reaper, Spawn, Spawned};
use crate::stopper::{self, StopError, Stopped};

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSpec {
    /// Names its output files; any text.
    pub name: String,
    /// The program; without a slash it is looked for in PATH.
    pub program: PathBuf,
    /// Its arguments, without the program's name.
    pub args: Vec<String>,
    /// Variables to set on top of the inherited ones.
    pub env: Vec<(String, String)>,
    /// Inherited variables to leave out.
    pub env_remove: Vec<String>,
    /// Where it starts; where the kit was started when absent.
    pub cwd: Option<PathBuf>,
}

impl ProcessSpec {
    /// A process that inherits everything and has no arguments.
    #[must_use]
    pub fn new(name: &str, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            env_remove: Vec::new(),
            cwd: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: Into<String>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A process of the run. It lives until it ends, is ended, or the run is over; dropping this ends nothing.
#[derive(Debug)]
pub struct Child {
    reaper: Arc<Reaper>,
    spawned: Spawned,
    name: String,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// A process did not say what was waited for.
#[derive(Debug, thiserror::Error)]
pub enum WaitLineError {
    /// It ended first; its standard error may say why.
    #[error("{name} ended with {ended} before it said {wanted:?}; its last words: {tail}")]
    Ended {
        /// The process's name.
        name: String,
        /// How it ended.
        ended: Ended,
        /// The wanted beginning of a line.
        wanted: String,
        /// The end of its standard error.
        tail: String,
    },
    /// It did not in the time given; it still runs.
    #[error("{name} did not say {wanted:?} within {waited:?}; its last words: {tail}")]
    Silent {
        /// The process's name.
        name: String,
        /// The wanted beginning of a line.
        wanted: String,
        /// How long it was waited for.
        waited: Duration,
        /// The end of its standard error.
        tail: String,
    },
    /// The reaper has gone, and the process with it.
    #[error("the process cannot be waited for")]
    Gone(#[source] AskError),
}

impl Child {
    /// Starts a process whose output goes to files in `logs`.
    pub(super) async fn start(
        reaper: &Arc<Reaper>,
        logs: &Path,
        spec: &ProcessSpec,
        owner: Option<Owner>,
        farewell: Farewell,
    ) -> Result<Self, AskError> {
        let file = format!("{}-{}", safe(&spec.name), reaper.number());
        let stdout = logs.join(format!("{file}.out"));
        let stderr = logs.join(format!("{file}.err"));
        let spawn = Spawn {
            program: text(&spec.program)?,
            args: spec.args.clone(),
            env: spec.env.clone(),
            env_remove: spec.env_remove.clone(),
            cwd: spec.cwd.as_deref().map(text).transpose()?,
            owner,
            stdout: text(&stdout)?,
            stderr: text(&stderr)?,
            farewell,
        };
        let spawned = reaper.spawn(spawn).await?;
        Ok(Self {
            reaper: Arc::clone(reaper),
            spawned,
            name: spec.name.clone(),
            stdout,
            stderr,
        })
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.spawned.pid
    }

    /// Its name, as it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that takes its standard output.
    #[must_use]
    pub fn stdout(&self) -> &Path {
        &self.stdout
    }

    /// The file that takes its standard error.
    #[must_use]
    pub fn stderr(&self) -> &Path {
        &self.stderr
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        *self.spawned.ended.borrow()
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    ///
    /// When the reaper has gone, and the process with it.
    pub async fn exited(&self) -> Result<Ended, AskError> {
        let mut ended = self.spawned.ended.clone();
        let ended = ended
            .wait_for(Option::is_some)
            .await
            .map_err(|_| AskError::Gone)?;
        ended.ok_or(AskError::Gone)
    }

    /// Waits until its standard output has a whole line that begins with `prefix`, and returns the rest of that line.
    ///
    /// # Errors
    ///
    /// When it ends first, or does not say so `within` the time given.
    pub async fn wait_line(&self, prefix: &str, within: Duration) -> Result<String, WaitLineError> {
        let give_up = Instant::now() + within;
        loop {
            // Looked at before the output is read: what an ended process wrote is all there.
            let ended = self.ended();
            if let Some(rest) = line_after(&self.stdout, prefix) {
                return Ok(rest);
            }
            let (name, wanted) = (self.name.clone(), prefix.to_owned());
            if let Some(ended) = ended {
                return Err(WaitLineError::Ended {
                    name,
                    ended,
                    wanted,
                    tail: self.tail(),
                });
            }
            if self.spawned.ended.has_changed().is_err() {
                return Err(WaitLineError::Gone(AskError::Gone));
            }
            if Instant::now() > give_up {
                return Err(WaitLineError::Silent {
                    name,
                    wanted,
                    waited: within,
                    tail: self.tail(),
                });
            }
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// Stops it and everything that comes from it, and confirms that each task stands.
    ///
    /// # Errors
    ///
    /// When it has ended, or when a task does not stop; then everything runs again and the run is void.
    pub async fn stop(&self) -> Result<Stopped, StopError> {
        Stopped::stop(Arc::clone(&self.reaper), self.pid(), stopper::USUAL).await
    }

    /// Asks it to end: SIGTERM, to this process alone.
    ///
    /// # Errors
    ///
    /// When the reaper has gone, and the process with it.
    pub async fn terminate(&self) -> Result<(), AskError> {
        self.reaper.terminate(self.spawned.child).await
    }

    /// Kills it and everything that comes from it, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// When the reaper has gone, and the process with it.
    pub async fn kill(&self) -> Result<Ended, AskError> {
        self.reaper.kill(self.spawned.child).await?;
        self.exited().await
    }

    /// The end of what it said on its standard error, or else on its standard output.
    #[must_use]
    pub fn tail(&self) -> String {
        let said = |path| std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let stderr = said(&self.stderr).unwrap_or_default();
        let text = if stderr.trim().is_empty() {
            said(&self.stdout).unwrap_or_default()
        } else {
            stderr
        };
        let lines: Vec<&str> = text.trim().lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

const TAIL_LINES: usize = 12;

fn line_after(path: &Path, prefix: &str) -> Option<String> {
    let text = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&text);
    let whole = text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'));
    whole
        .filter_map(|line| line.strip_prefix(prefix))
        .map(str::to_owned)
        .next()
}

fn text(path: &Path) -> Result<String, AskError> {
    let refused = || AskError::System(format!("{} is not UTF-8", path.display()));
    path.to_str().map(str::to_owned).ok_or_else(refused)
}

fn safe(name: &str) -> String {
    name.chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '-'
            }
        })
        .collect()
}
