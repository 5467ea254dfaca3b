//! A way to the database that counts round trips, and that is cut behind a chosen message.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pause_kit::services::for_tests;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::support::Database;

/// Where the way is cut, in messages from the moment at which it is armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutAt {
    /// The server gets so many of the client's messages, and no more.
    ToServer(usize),
    /// The client gets so many of the server's messages, and no more; the server has had all of the client's.
    ToClient(usize),
}

/// One relay for one connection; a further one passes untouched.
pub(crate) struct Relay {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// How long an answer takes, so that what is sent together is counted together.
    delay: Duration,
    armed: AtomicBool,
    to_server_left: AtomicUsize,
    to_client_left: AtomicUsize,
    /// Requests that are not answered, and how often the client sent some when there were none.
    unanswered: AtomicUsize,
    round_trips: AtomicUsize,
    commit_sent: AtomicBool,
    was_cut: AtomicBool,
}

impl Relay {
    /// Without a delay, to be armed.
    pub(crate) async fn open() -> Relay {
        Relay::with(Duration::ZERO).await
    }

    /// On which every answer takes so long, so that each is waited for.
    pub(crate) async fn with(delay: Duration) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = ("127.0.0.1", for_tests().await.postgres().port());
        let state = Arc::new(State {
            delay,
            ..State::default()
        });
        let shared = state.clone();
        tokio::spawn(async move {
            let mut first = true;
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(server).await.unwrap();
                let state = if first {
                    shared.clone()
                } else {
                    Arc::new(State {
                        delay,
                        ..State::default()
                    })
                };
                first = false;
                tokio::spawn(relay(client, server, state));
            }
        });
        Relay { address, state }
    }

    /// The database's URL on this way. It asks for no TLS: the answer to that is no message, and the way knows messages only.
    pub(crate) fn url(&self, database: &Database) -> String {
        let url = database.url.through(self.address.port());
        let url = url.as_str();
        let joint = if url.contains('?') { '&' } else { '?' };
        format!("{url}{joint}sslmode=disable")
    }

    /// Cuts the connection there, from now on.
    pub(crate) fn arm(&self, at: CutAt) {
        let (to_server, to_client) = match at {
            CutAt::ToServer(messages) => (messages, usize::MAX),
            CutAt::ToClient(messages) => (usize::MAX, messages),
        };
        self.state.to_server_left.store(to_server, Ordering::SeqCst);
        self.state.to_client_left.store(to_client, Ordering::SeqCst);
        self.state.commit_sent.store(false, Ordering::SeqCst);
        self.state.armed.store(true, Ordering::SeqCst);
    }

    /// Whether the client has sent COMMIT since, whether or not it came through.
    pub(crate) fn commit_sent(&self) -> bool {
        self.state.commit_sent.load(Ordering::SeqCst)
    }

    /// Whether the place at which it was to be cut was reached.
    pub(crate) fn was_cut(&self) -> bool {
        self.state.was_cut.load(Ordering::SeqCst)
    }

    /// How often the client has waited for an answer.
    pub(crate) fn round_trips(&self) -> usize {
        self.state.round_trips.load(Ordering::SeqCst)
    }
}

async fn relay(client: TcpStream, server: TcpStream, state: Arc<State>) {
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // Either ending, or the cut, drops both sides.
    tokio::select! {
        () = requests(from_client, to_server, &state) => {}
        () = answers(from_server, to_client, &state) => {}
    }
}

async fn requests(mut client: OwnedReadHalf, mut server: OwnedWriteHalf, state: &State) {
    // The first message has no type.
    let mut started = false;
    let mut frames = Frames::default();
    while let Some(frame) = frames.next(&mut client, !started).await {
        started = true;
        if matches!(frame.first(), Some(b'Q' | b'S')) && frame.len() > 4 && frame[1] == 0 {
            if state.unanswered.fetch_add(1, Ordering::SeqCst) == 0 {
                state.round_trips.fetch_add(1, Ordering::SeqCst);
            }
            if frame.windows(6).any(|window| window == b"COMMIT") {
                state.commit_sent.store(true, Ordering::SeqCst);
            }
        }
        if state.armed.load(Ordering::SeqCst) && !one_less(&state.to_server_left) {
            state.was_cut.store(true, Ordering::SeqCst);
            // What the client goes on to send is still looked at, for a COMMIT among it.
            while let Ok(Some(frame)) =
                tokio::time::timeout(Duration::from_millis(5), frames.next(&mut client, false)).await
            {
                if frame.windows(6).any(|window| window == b"COMMIT") {
                    state.commit_sent.store(true, Ordering::SeqCst);
                }
            }
            return;
        }
        if server.write_all(&frame).await.is_err() {
            return;
        }
    }
}

async fn answers(mut server: OwnedReadHalf, mut client: OwnedWriteHalf, state: &State) {
    let mut frames = Frames::default();
    while let Some(frame) = frames.next(&mut server, false).await {
        if frame[0] == b'Z' {
            tokio::time::sleep(state.delay).await;
            // The first one ends the start.
            let before = state.unanswered.load(Ordering::SeqCst);
            state.unanswered.store(before.saturating_sub(1), Ordering::SeqCst);
        }
        if state.armed.load(Ordering::SeqCst) && !one_less(&state.to_client_left) {
            state.was_cut.store(true, Ordering::SeqCst);
            return;
        }
        if client.write_all(&frame).await.is_err() {
            return;
        }
    }
}

fn one_less(left: &AtomicUsize) -> bool {
    let before = left.load(Ordering::SeqCst);
    left.store(before.saturating_sub(1), Ordering::SeqCst);
    before > 0
}

/// The messages in a stream of bytes.
#[derive(Default)]
struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    async fn next(&mut self, from: &mut OwnedReadHalf, untyped: bool) -> Option<Vec<u8>> {
        let typed = usize::from(!untyped);
        loop {
            if let Some(length) = self.bytes.get(typed..typed + 4) {
                let length = u32::from_be_bytes(length.try_into().unwrap()) as usize + typed;
                if self.bytes.len() >= length {
                    return Some(self.bytes.drain(..length).collect());
                }
            }
            let mut more = vec![0; 65536];
            match from.read(&mut more).await {
                Ok(read @ 1..) => self.bytes.extend_from_slice(&more[..read]),
                _ => return None,
            }
        }
    }
}
