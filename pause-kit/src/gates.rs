//! Gates: points in a holder at which the kit can keep it.
//!
//! A holder that offers precise points connects, at each of them, to the Unix socket that the environment variable
//! `FENCE_GATES` names, writes the gate's name and a newline, and waits for one byte. The kit opens one socket for each
//! holder, and the holder stands at the gate until the kit opens it.
//!
//! # What a gate does not do
//!
//! It stops nothing but the task that waits at it. A gate that is dropped unopened closes its connection without the byte,
//! because a holder must not go on by an error of the kit's.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// The environment variable that tells a holder where its gates are.
pub const VARIABLE: &str = "FENCE_GATES";

/// The longest gate name that is read, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// One holder's gates. Dropping it closes the socket, removes it, and lets nobody through.
#[derive(Debug)]
pub struct Gates {
    socket: PathBuf,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

/// A holder that stands at a gate.
#[derive(Debug)]
#[must_use = "the holder stands until the gate is opened, and gets no byte when it is dropped"]
pub struct Gate {
    name: String,
    arrived: Instant,
    process: Option<u32>,
    stream: UnixStream,
}

/// Why gates could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum OpenGatesError {
    /// The socket could not be made. Use a short path in a folder that exists and that the holder can reach.
    #[error("no gate socket at {}", socket.display())]
    Socket {
        /// Where it was to be.
        socket: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// Why no holder can be said to stand at a gate.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GateError {
    /// The gate that was asked for was not among those given when the gates were opened. Correct the caller.
    #[error("no gate {name:?} was declared, only {}", known.join(", "))]
    NotDeclared {
        /// The gate asked for.
        name: String,
        /// Those declared.
        known: Vec<String>,
    },
    /// A holder stands at a gate of another name, and would stand there for ever. Correct the name in the holder or in
    /// the target's declaration.
    #[error("a holder stands at the unknown gate {name:?}; declared are {}", known.join(", "))]
    Unknown {
        /// The name that the holder wrote.
        name: String,
        /// Those declared.
        known: Vec<String>,
    },
}

/// Why a gate could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("the holder at gate {name:?} is gone")]
pub struct OpenGateError {
    /// The gate's name. The holder has ended or closed its connection: the run has no holder to go on with.
    pub name: String,
    source: io::Error,
}

impl Gates {
    /// Opens gates of these names on a Unix socket at `socket`, which any user of this machine may connect to if the folder
    /// lets them. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`OpenGatesError`] when the socket cannot be made there: the folder is missing, the path is longer than about
    /// 100 bytes, or something of that name exists.
    pub fn open<N: Into<String>>(
        socket: impl Into<PathBuf>,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Self, OpenGatesError> {
        let socket = socket.into();
        let listen = || {
            let listener = UnixListener::bind(&socket)?;
            std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666))?;
            Ok(listener)
        };
        let listener = listen().map_err(|source| OpenGatesError::Socket {
            socket: socket.clone(),
            source,
        })?;
        let shared = Arc::new(Shared {
            names: names.into_iter().map(Into::into).collect(),
            waiting: Mutex::default(),
            version: watch::Sender::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self {
            socket,
            shared,
            accepting,
        })
    }

    /// The value for [`VARIABLE`] in the holder's environment.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Waits until a holder stands at the gate of that name. Holders that came earlier count, in the order in which they
    /// came, each once. Waits for ever when none comes: the caller bounds it.
    ///
    /// # Errors
    ///
    /// [`GateError`] when the name was not declared, or when a holder stands at a gate that was not.
    pub async fn arrived(&self, name: &str) -> Result<Gate, GateError> {
        let known = &self.shared.names;
        if !known.iter().any(|declared| declared == name) {
            return Err(GateError::NotDeclared {
                name: name.to_owned(),
                known: known.clone(),
            });
        }
        let mut changes = self.shared.version.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(gate) = self.shared.take(|gate| gate.name == name) {
                return Ok(gate);
            }
            if let Some(unknown) = self.unknown() {
                return Err(GateError::Unknown {
                    name: unknown,
                    known: known.clone(),
                });
            }
            changes
                .changed()
                .await
                .expect("the sender lives as long as the gates");
        }
    }

    /// Waits until a holder stands at a gate of one of these names, and leaves it there. Waits for ever when none does: the
    /// caller bounds it.
    pub(crate) async fn stood_at(&self, names: &[&str]) {
        let mut changes = self.shared.version.subscribe();
        loop {
            changes.borrow_and_update();
            if self.shared.is_waiting(|gate| names.contains(&gate.name.as_str())) {
                return;
            }
            changes
                .changed()
                .await
                .expect("the sender lives as long as the gates");
        }
    }

    /// The name of a gate at which a holder stands and which was not declared.
    #[must_use]
    pub fn unknown(&self) -> Option<String> {
        let waiting = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting
            .iter()
            .find(|gate| !self.shared.names.contains(&gate.name))
            .map(|gate| gate.name.clone())
    }
}

impl Drop for Gates {
    fn drop(&mut self) {
        self.accepting.abort();
        // Nobody can connect any more; a socket that stays behind goes with its folder.
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl Gate {
    /// The gate's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When the holder's whole line had arrived.
    #[must_use]
    pub fn arrived(&self) -> Instant {
        self.arrived
    }

    /// The process id of the holder, from the kernel.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        self.process
    }

    /// Lets the holder go on and returns the time, which is before the holder can have gone on.
    ///
    /// # Errors
    ///
    /// [`OpenGateError`] when the holder is gone.
    pub async fn open(mut self) -> Result<Instant, OpenGateError> {
        let at = Instant::now();
        match self.stream.write_all(b"\n").await {
            Ok(()) => Ok(at),
            Err(source) => Err(OpenGateError {
                name: self.name,
                source,
            }),
        }
    }
}

#[derive(Debug)]
struct Shared {
    names: Vec<String>,
    waiting: Mutex<Vec<Gate>>,
    version: watch::Sender<u64>,
}

impl Shared {
    fn take(&self, wanted: impl Fn(&Gate) -> bool) -> Option<Gate> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let at = waiting.iter().position(wanted)?;
        Some(waiting.remove(at))
    }

    fn is_waiting(&self, wanted: impl FnMut(&Gate) -> bool) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.iter().any(wanted)
    }

    fn add(&self, gate: Gate) {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(gate);
        self.version.send_modify(|version| *version += 1);
    }
}

async fn accept(listener: UnixListener, shared: Arc<Shared>) {
    let mut arriving = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                arriving.spawn(read_name(stream));
            }
            Some(read) = arriving.join_next() => {
                if let Ok(Some(gate)) = read {
                    shared.add(gate);
                }
            }
        }
    }
}

/// Reads a holder's line. A holder that goes before its newline stood at no gate.
async fn read_name(mut stream: UnixStream) -> Option<Gate> {
    let process = stream
        .peer_cred()
        .ok()
        .and_then(|peer| peer.pid())
        .and_then(|pid| u32::try_from(pid).ok());
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') && line.len() < MAX_NAME_BYTES {
        line.push(stream.read_u8().await.ok()?);
    }
    let name = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
    Some(Gate {
        name,
        arrived: Instant::now(),
        process,
        stream,
    })
}
