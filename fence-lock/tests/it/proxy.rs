//! A TCP path to a store that a test can hold, cut and refuse.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Passes bytes on until it is told otherwise.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    upstream: Mutex<SocketAddr>,
    refuse: watch::Sender<bool>,
    silent: watch::Sender<bool>,
    connections: Mutex<Vec<Arc<Connection>>>,
}

/// One connection, counted from 0.
pub(crate) struct Connection {
    requests_pass: watch::Sender<bool>,
    answers_pass: watch::Sender<bool>,
    cut: watch::Sender<bool>,
    requests_held: watch::Sender<usize>,
    answers_held: watch::Sender<usize>,
    answered: watch::Sender<usize>,
}

impl Proxy {
    /// A path to an endpoint such as `http://127.0.0.1:40123`.
    pub(crate) async fn to(endpoint: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            upstream: Mutex::new(address_of(endpoint)),
            refuse: watch::Sender::new(false),
            silent: watch::Sender::new(false),
            connections: Mutex::new(Vec::new()),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Proxy {
            address,
            shared,
            task,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Connections made from now on lead there.
    pub(crate) fn route_to(&self, endpoint: &str) {
        *self.shared.upstream.lock().unwrap() = address_of(endpoint);
    }

    /// New connections are closed at once.
    pub(crate) fn refuse(&self, refuse: bool) {
        self.shared.refuse.send_replace(refuse);
    }

    pub(crate) fn connection(&self, number: usize) -> Arc<Connection> {
        Arc::clone(&self.shared.connections.lock().unwrap()[number])
    }

    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        self.shared.connections.lock().unwrap().clone()
    }

    /// Nothing passes on any connection, in either direction, and nothing is closed or refused.
    pub(crate) fn silence(&self) {
        self.shared.silent.send_replace(true);
        for connection in self.connections() {
            connection.hold_requests();
            connection.hold_answers();
        }
    }

    /// The client's side of every connection is closed.
    pub(crate) fn cut(&self) {
        for connection in self.connections() {
            connection.cut();
        }
    }
}

impl Connection {
    pub(crate) fn hold_requests(&self) {
        self.requests_pass.send_replace(false);
    }

    pub(crate) fn release_requests(&self) {
        self.requests_pass.send_replace(true);
    }

    pub(crate) fn hold_answers(&self) {
        self.answers_pass.send_replace(false);
    }

    pub(crate) fn release_answers(&self) {
        self.answers_pass.send_replace(true);
    }

    /// Closes the client's side; what was held for etcd still gets there when it is released.
    pub(crate) fn cut(&self) {
        self.cut.send_replace(true);
    }

    /// Waits until so many bytes of requests lie here.
    pub(crate) async fn holds_requests(&self, bytes: usize) {
        reaches(&self.requests_held, bytes).await;
    }

    /// Waits until so many bytes of answers lie here.
    pub(crate) async fn holds_answers(&self, bytes: usize) {
        reaches(&self.answers_held, bytes).await;
    }

    /// How many bytes of requests lie here.
    pub(crate) fn requests_held(&self) -> usize {
        *self.requests_held.borrow()
    }

    /// How many bytes of answers lie here.
    pub(crate) fn answers_held(&self) -> usize {
        *self.answers_held.borrow()
    }

    /// How many bytes etcd has answered so far.
    pub(crate) fn answered(&self) -> usize {
        *self.answered.borrow()
    }

    /// Waits until etcd has answered so many bytes in all.
    pub(crate) async fn has_answered(&self, bytes: usize) {
        reaches(&self.answered, bytes).await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn reaches(count: &watch::Sender<usize>, bytes: usize) {
    let mut count = count.subscribe();
    let reached =
        tokio::time::timeout(Duration::from_secs(20), count.wait_for(|count| *count >= bytes)).await;
    assert!(reached.is_ok(), "{bytes} bytes were waited for");
}

fn address_of(endpoint: &str) -> SocketAddr {
    endpoint.trim_start_matches("http://").parse().unwrap()
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        if *shared.refuse.borrow() {
            continue;
        }
        let upstream = *shared.upstream.lock().unwrap();
        let passes = !*shared.silent.borrow();
        let connection = Arc::new(Connection {
            requests_pass: watch::Sender::new(passes),
            answers_pass: watch::Sender::new(passes),
            cut: watch::Sender::new(false),
            requests_held: watch::Sender::new(0),
            answers_held: watch::Sender::new(0),
            answered: watch::Sender::new(0),
        });
        shared.connections.lock().unwrap().push(Arc::clone(&connection));
        tokio::spawn(async move {
            let Ok(upstream) = TcpStream::connect(upstream).await else {
                return;
            };
            let (from_client, to_client) = client.into_split();
            let (from_etcd, to_etcd) = upstream.into_split();
            tokio::join!(
                requests(&connection, from_client, to_etcd),
                answers(&connection, from_etcd, to_client)
            );
        });
    }
}

async fn requests(connection: &Connection, from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let mut from = Some(from);
    let (mut pass, mut cut) = (connection.requests_pass.subscribe(), connection.cut.subscribe());
    let mut held = Vec::new();
    loop {
        let mut chunk = vec![0; 16 * 1024];
        tokio::select! {
            read = read(from.as_mut(), &mut chunk) => match read {
                0 => from = None,
                count => held.extend_from_slice(&chunk[..count]),
            },
            _ = cut.wait_for(|cut| *cut), if from.is_some() => from = None,
            changed = pass.changed() => if changed.is_err() { return },
        }
        if *pass.borrow_and_update() && !held.is_empty() {
            if to.write_all(&held).await.is_err() {
                return;
            }
            held.clear();
        }
        connection.requests_held.send_replace(held.len());
        if from.is_none() && held.is_empty() && !*connection.cut.borrow() {
            return;
        }
    }
}

async fn answers(connection: &Connection, from: OwnedReadHalf, to: OwnedWriteHalf) {
    let (mut from, mut to) = (Some(from), Some(to));
    let (mut pass, mut cut) = (connection.answers_pass.subscribe(), connection.cut.subscribe());
    let mut held = Vec::new();
    loop {
        let mut chunk = vec![0; 16 * 1024];
        tokio::select! {
            read = read(from.as_mut(), &mut chunk) => match read {
                0 => from = None,
                count => {
                    connection.answered.send_modify(|answered| *answered += count);
                    held.extend_from_slice(&chunk[..count]);
                }
            },
            _ = cut.wait_for(|cut| *cut), if to.is_some() => to = None,
            changed = pass.changed() => if changed.is_err() { return },
        }
        if *pass.borrow_and_update() {
            if let Some(open) = &mut to
                && open.write_all(&held).await.is_err()
            {
                to = None;
            }
            held.clear();
        }
        connection.answers_held.send_replace(held.len());
        if from.is_none() && held.is_empty() {
            return;
        }
    }
}

/// 0 at the end; never returns without a socket.
async fn read(from: Option<&mut OwnedReadHalf>, chunk: &mut [u8]) -> usize {
    match from {
        Some(from) => from.read(chunk).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}
