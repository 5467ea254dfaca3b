//! Gates at which a holder stands.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use pause_kit::gates::{GateError, Gates, OpenGatesError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::wait::soon;

struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn gates(&self) -> Gates {
        Gates::open(self.folder.path().join("h1"), ["before-send", "before-commit"]).unwrap()
    }
}

/// A holder that comes to a gate.
async fn come(socket: &Path, line: &str) -> UnixStream {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    stream.write_all(line.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_holder_stands_at_its_gate_until_that_is_opened() {
    let folder = Folder::new();
    let gates = folder.gates();
    let before = Instant::now();
    let mut holder = come(gates.socket(), "before-send\n").await;
    let gate = soon(gates.arrived("before-send")).await.unwrap();
    assert_eq!(gate.name(), "before-send");
    assert_eq!(gate.process(), Some(std::process::id()));
    let passed = tokio::spawn(async move { (holder.read_u8().await, Instant::now()) });
    tokio::task::yield_now().await;
    assert!(!passed.is_finished(), "no byte comes before the gate is opened");
    let arrived = gate.arrived();
    let opened = gate.open().await.unwrap();
    let (byte, at) = soon(passed).await.unwrap();
    byte.unwrap();
    assert!([before, arrived, opened, at].is_sorted());
}

#[tokio::test]
async fn several_holders_stand_at_several_gates_and_each_is_taken_once() {
    let folder = Folder::new();
    let gates = folder.gates();
    let commit = tokio::spawn({
        let socket = gates.socket().to_owned();
        async move {
            let mut stream = come(&socket, "before-commit\n").await;
            stream.read_u8().await.unwrap();
        }
    });
    let at_commit = soon(gates.arrived("before-commit")).await.unwrap();
    let mut first = come(gates.socket(), "before-send\n").await;
    let one = soon(gates.arrived("before-send")).await.unwrap();
    let mut second = come(gates.socket(), "before-send\n").await;
    let two = soon(gates.arrived("before-send")).await.unwrap();
    two.open().await.unwrap();
    soon(second.read_u8()).await.unwrap();
    one.open().await.unwrap();
    soon(first.read_u8()).await.unwrap();
    at_commit.open().await.unwrap();
    soon(commit).await.unwrap();
}

#[tokio::test]
async fn a_gate_is_taken_by_its_name_whoever_came_before_or_after() {
    let folder = Folder::new();
    let gates = folder.gates();
    let mut holders = Vec::new();
    for line in [
        "before-send\n",
        "before-commit\n",
        "before-send\n",
        "before-commit\n",
        "last\n",
    ] {
        holders.push(come(gates.socket(), line).await);
    }
    soon(async {
        while gates.unknown().is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut taken = Vec::new();
    for name in ["before-send", "before-commit", "before-commit", "before-send"] {
        let gate = soon(gates.arrived(name)).await.unwrap();
        assert_eq!(gate.name(), name);
        taken.push(gate);
    }
    drop((taken, gates));
    for mut holder in holders {
        soon(holder.read_u8()).await.unwrap_err();
    }
}

#[tokio::test]
async fn a_line_in_pieces_is_one_arrival_and_a_line_without_an_end_is_none() {
    let folder = Folder::new();
    let gates = folder.gates();
    drop(come(gates.socket(), "before-send").await);
    let mut holder = come(gates.socket(), "before").await;
    holder.write_all(b"-send\n").await.unwrap();
    let gate = soon(gates.arrived("before-send")).await.unwrap();
    gate.open().await.unwrap();
    soon(holder.read_u8()).await.unwrap();
}

#[tokio::test]
async fn a_holder_at_an_unknown_gate_is_reported_and_not_let_through() {
    let folder = Folder::new();
    let gates = folder.gates();
    let mut holder = come(gates.socket(), "before_send\n").await;
    let known = vec!["before-send".to_owned(), "before-commit".to_owned()];
    let error = soon(gates.arrived("before-send")).await.unwrap_err();
    assert_eq!(
        error,
        GateError::Unknown {
            name: "before_send".to_owned(),
            known: known.clone()
        }
    );
    assert_eq!(gates.unknown().as_deref(), Some("before_send"));
    let error = soon(gates.arrived("before-read")).await.unwrap_err();
    assert_eq!(
        error,
        GateError::NotDeclared {
            name: "before-read".to_owned(),
            known
        }
    );
    drop(gates);
    soon(holder.read_u8()).await.unwrap_err();
}

#[tokio::test]
async fn a_gate_dropped_unopened_lets_nobody_through() {
    let folder = Folder::new();
    let gates = folder.gates();
    let mut holder = come(gates.socket(), "before-send\n").await;
    drop(soon(gates.arrived("before-send")).await.unwrap());
    soon(holder.read_u8()).await.unwrap_err();
}

#[tokio::test]
async fn a_holder_that_is_gone_cannot_be_let_through() {
    let folder = Folder::new();
    let gates = folder.gates();
    let holder = come(gates.socket(), "before-send\n").await;
    let gate = soon(gates.arrived("before-send")).await.unwrap();
    drop(holder);
    let error = soon(gate.open()).await.unwrap_err();
    assert_eq!(error.to_string(), "the holder at gate \"before-send\" is gone");
}

#[tokio::test]
async fn the_socket_is_open_to_every_user_and_goes_with_the_gates() {
    let folder = Folder::new();
    let gates = folder.gates();
    let socket = gates.socket().to_owned();
    assert_eq!(
        std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777,
        0o666
    );
    let taken = Gates::open(&socket, ["before-send"]).unwrap_err();
    assert!(matches!(taken, OpenGatesError::Socket { .. }), "{taken}");
    drop(gates);
    assert!(!socket.exists());
}
