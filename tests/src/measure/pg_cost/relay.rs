//! A relay between pgbench and the server: it delays both ways, and counts what goes over the wire.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The version in a startup message; anything else before it asks for encryption.
const PROTOCOL_3: u32 = 196_608;

/// A listener that relays every connection; it goes on until the process ends.
pub(crate) struct Relay {
    pub(crate) port: u16,
    counts: Arc<Counts>,
}

/// What has gone over the wire since the relay began.
#[derive(Default)]
struct Counts {
    /// Statements that the client had executed.
    statements: AtomicU64,
    /// How often the client had sent something after an answer.
    flights: AtomicU64,
}

impl Relay {
    /// Relays to this port on this machine, each way `delay` late.
    pub(crate) fn start(server: u16, delay: Duration) -> io::Result<Relay> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A connection that cannot be relayed is closed; its client says so.
                let _ = relay(client, server, delay, &shared);
            }
        });
        Ok(Relay { port, counts })
    }

    /// Statements and flights so far.
    pub(crate) fn counted(&self) -> (u64, u64) {
        (
            self.counts.statements.load(Ordering::SeqCst),
            self.counts.flights.load(Ordering::SeqCst),
        )
    }
}

fn relay(client: TcpStream, server: u16, delay: Duration, counts: &Arc<Counts>) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let answered = Arc::new(AtomicBool::new(true));
    let (counts, by_server) = (Arc::clone(counts), Arc::clone(&answered));
    let mut frames = Frames::default();
    let requests = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        pass(requests, delay, |bytes| {
            if answered.swap(false, Ordering::SeqCst) {
                counts.flights.fetch_add(1, Ordering::SeqCst);
            }
            counts
                .statements
                .fetch_add(frames.statements_in(bytes), Ordering::SeqCst);
        })
    });
    thread::spawn(move || {
        pass((server, client), delay, |_| {
            by_server.store(true, Ordering::SeqCst);
        })
    });
    Ok(())
}

/// Passes bytes on, each piece `delay` after it came, until one side closes; then both are closed.
fn pass((mut from, mut to): (TcpStream, TcpStream), delay: Duration, mut look: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let due = Instant::now() + delay;
        look(&buffer[..length]);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    // Whichever is closed already stays so.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// The client's messages, told apart.
#[derive(Default)]
struct Frames {
    started: bool,
    rest: Vec<u8>,
}

impl Frames {
    /// How many messages among these bytes have a statement executed: Execute, and the simple Query.
    fn statements_in(&mut self, bytes: &[u8]) -> u64 {
        self.rest.extend_from_slice(bytes);
        let mut statements = 0;
        loop {
            // Before the connection is started, a message has no type byte.
            let head = usize::from(self.started);
            let Some(&[a, b, c, d]) = self
                .rest
                .get(head..head + 4)
                .and_then(|length| length.first_chunk())
            else {
                return statements;
            };
            let end = head + u32::from_be_bytes([a, b, c, d]) as usize;
            if self.rest.len() < end {
                return statements;
            }
            if self.started {
                statements += u64::from(matches!(self.rest[0], b'E' | b'Q'));
            } else {
                let version = self.rest.get(4..8).and_then(|bytes| bytes.first_chunk());
                self.started = version.map(|bytes| u32::from_be_bytes(*bytes)) == Some(PROTOCOL_3);
            }
            self.rest.drain(..end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_counted_whatever_the_pieces_they_come_in() {
        let mut wire = vec![0, 0, 0, 8, 4, 210, 22, 47]; // a request for encryption
        wire.extend([0, 0, 0, 9, 0, 3, 0, 0, 0]); // the start
        wire.extend([b'P', 0, 0, 0, 4, b'B', 0, 0, 0, 4, b'E', 0, 0, 0, 5, b'E']);
        wire.extend([b'S', 0, 0, 0, 4, b'Q', 0, 0, 0, 6, b'S', 0]);
        for size in 1..wire.len() {
            let mut frames = Frames::default();
            let counted: u64 = wire.chunks(size).map(|piece| frames.statements_in(piece)).sum();
            assert_eq!(counted, 2, "pieces of {size}");
        }
    }
}
