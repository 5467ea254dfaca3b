//! Carrying one connection's bytes.
//!
//! Each direction has a reader, which takes bytes from one socket into the log, and a writer, which hands on from the log
//! what no hold, no undecided pattern and no kept close forbids. All four live in one task, so dropping it ends the
//! connection, and a peer that takes nothing only makes its own direction of its own connection wait.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::Notify;

use super::control::Shared;
use super::log::{Close, ConnectionNumber, Direction};
use super::state::{Next, Wake};

/// How long the possible beginning of a pattern waits for its rest.
const PATIENCE: Duration = Duration::from_millis(100);

/// The most bytes that one read takes.
const CHUNK: usize = 64 * 1024;

/// Carries an accepted connection until both sides have ended it.
pub(crate) async fn carry(shared: Arc<Shared>, holder: TcpStream) {
    let Ok(peer) = holder.peer_addr() else { return };
    let (number, upstream, wake) = shared.change(|state| state.accept(peer));
    match TcpStream::connect(upstream).await {
        Ok(resource) => {
            let local = resource.local_addr().ok();
            shared.change(|state| state.connection_mut(number).upstream_local = local);
            carry_between(&shared, number, &wake, holder, resource).await;
        }
        Err(error) => {
            reset(&holder);
            drop(holder);
            shared.change(|state| state.connection_mut(number).unreachable = Some(error.to_string()));
        }
    }
    shared.change(|state| state.connection_mut(number).ended = Some(Instant::now()));
}

async fn carry_between(
    shared: &Shared,
    number: ConnectionNumber,
    wake: &Wake,
    mut holder: TcpStream,
    mut resource: TcpStream,
) {
    for socket in [&holder, &resource] {
        // A delay here would only blur the times; a socket that refuses the option still carries every byte.
        let _ = socket.set_nodelay(true);
    }
    let (from_holder, to_holder) = holder.split();
    let (from_resource, to_resource) = resource.split();
    let hung_up = Notify::new();
    let pump = |direction| Pump {
        shared,
        number,
        direction,
        wake,
        hung_up: &hung_up,
    };
    let all = async {
        tokio::join!(
            pump(Direction::ToResource).read(from_holder),
            pump(Direction::ToResource).write(to_resource),
            pump(Direction::ToHolder).read(from_resource),
            pump(Direction::ToHolder).write(to_holder),
        );
    };
    let cut = tokio::select! {
        () = all => false,
        () = hung_up.notified() => false,
        () = wake.cut().notified() => true,
    };
    if cut {
        reset(&holder);
        reset(&resource);
    }
}

#[derive(Clone, Copy)]
struct Pump<'a> {
    shared: &'a Shared,
    number: ConnectionNumber,
    direction: Direction,
    wake: &'a Wake,
    /// Told when a reset has been passed on, which ends both directions.
    hung_up: &'a Notify,
}

impl Pump<'_> {
    async fn read(self, mut socket: ReadHalf<'_>) {
        let Self {
            shared,
            number,
            direction,
            ..
        } = self;
        let mut buffer = vec![0; CHUNK];
        loop {
            while !shared.read(|state| state.has_room(number, direction)) {
                self.wake.reader(direction).notified().await;
            }
            let undecided = shared.read(|state| state.is_undecided(number, direction));
            let arrived = tokio::select! {
                // What has arrived counts, also when this task could not run in time.
                biased;
                arrived = socket.read(&mut buffer) => arrived,
                () = tokio::time::sleep(PATIENCE), if undecided => {
                    shared.change(|state| state.lost_patience(number, direction));
                    continue;
                }
            };
            match arrived {
                Ok(0) => return shared.change(|state| state.closed(number, direction, Close::End)),
                Ok(count) => shared.change(|state| state.arrived(number, direction, &buffer[..count])),
                Err(_) => return shared.change(|state| state.closed(number, direction, Close::Reset)),
            }
        }
    }

    async fn write(self, mut socket: WriteHalf<'_>) {
        let Self {
            shared,
            number,
            direction,
            ..
        } = self;
        loop {
            match shared.change_quietly(|state| state.next(number, direction)) {
                Next::Write(bytes) => match hand_on(&socket, &bytes).await {
                    Ok((count, at)) => shared.change(|state| state.written(number, direction, count, at)),
                    Err(_) => return shared.change(|state| state.broke(number, direction)),
                },
                Next::PassClose(Close::End) => {
                    let at = Instant::now();
                    // An error means that the other side is gone, and then there is nobody to tell.
                    let _ = socket.shutdown().await;
                    return shared.change(|state| state.close_passed(number, direction, at));
                }
                Next::PassClose(Close::Reset) => {
                    let at = Instant::now();
                    reset(socket.as_ref());
                    shared.change(|state| state.close_passed(number, direction, at));
                    return self.hung_up.notify_one();
                }
                Next::Wait => self.wake.writer(direction).notified().await,
            }
        }
    }
}

/// Writes what the socket takes at once, and says how much that was and when: the clock is read once the socket has room and
/// before the kernel gets the bytes, so that nobody can have seen them by then. Waiting for room does not count.
async fn hand_on(socket: &WriteHalf<'_>, bytes: &[u8]) -> io::Result<(usize, Instant)> {
    loop {
        socket.writable().await?;
        let at = Instant::now();
        match socket.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            written => return Ok((written?, at)),
        }
    }
}

/// Makes the socket's close a reset.
fn reset(socket: &TcpStream) {
    // When the option cannot be set the peer sees an orderly end instead, and its own log says so.
    let _ = socket.set_zero_linger();
}
