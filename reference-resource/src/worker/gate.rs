//! Points at which a harness may hold this worker.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::exit::WorkerError;

/// Says where this worker stands on the Unix socket that `FENCE_GATES` names, and waits there for one byte. Without the
/// variable it is nothing.
pub(super) async fn gate(name: &str) -> Result<(), WorkerError> {
    match std::env::var_os("FENCE_GATES") {
        None => Ok(()),
        Some(path) => pass(UnixStream::connect(path).await, name)
            .await
            .map_err(|error| WorkerError::unreachable("the gates' socket", error)),
    }
}

async fn pass(socket: io::Result<UnixStream>, name: &str) -> io::Result<()> {
    let mut socket = socket?;
    socket.write_all(format!("{name}\n").as_bytes()).await?;
    socket.read_u8().await.map(drop)
}
