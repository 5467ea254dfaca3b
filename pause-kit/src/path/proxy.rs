//! Opening a path and steering it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use super::close::CloseRule;
use super::control::Shared;
use super::hold::{Held, Hold};
use super::log::{Connection, ConnectionNumber, Direction, Log};
use super::pump::carry;
use super::replace::{Replacement, ReplacementHandle};
use super::unread::{UnreadError, unread, wait_for_unread};

/// A proxy on a loopback port of its own. Dropping it closes its listener and every connection.
#[derive(Debug)]
pub struct Path {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: AbortHandle,
}

/// How a path treats its connections.
#[derive(Debug, Clone)]
pub struct PathOptions {
    /// When a holder's close is passed on.
    pub close_rule: CloseRule,
    /// How many bytes of one direction may have arrived without having been handed on before the path stops reading from
    /// the sender, at least 1. More than that waits in the kernel's buffers, as it would without the path.
    pub window_bytes: usize,
}

impl PathOptions {
    /// For HTTP/1.1: a holder's close waits for the answers to all of its requests.
    #[must_use]
    pub fn http() -> Self {
        Self {
            close_rule: CloseRule::Answered(crate::wire::http::answered),
            ..Self::plain()
        }
    }

    /// For PostgreSQL: a client's close waits until the server has answered every query.
    #[must_use]
    pub fn postgres() -> Self {
        Self {
            close_rule: CloseRule::Answered(crate::wire::postgres::answered),
            ..Self::plain()
        }
    }

    /// For any other protocol: a close is passed on at once.
    #[must_use]
    pub fn plain() -> Self {
        Self {
            close_rule: CloseRule::AtOnce,
            window_bytes: 1 << 20,
        }
    }
}

/// Why a path could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenPathError {
    /// No loopback port could be had. Free ports or file descriptors and try again.
    #[error("no listener on a loopback port for the path to {upstream}")]
    Listen {
        /// Where the path was to lead.
        upstream: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
}

impl Path {
    /// Opens a path to `upstream` on a free port of 127.0.0.1. The upstream need not be there yet; it is connected to once
    /// for each connection that the path accepts. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`OpenPathError`] when there is no port to listen on.
    pub async fn open(upstream: SocketAddr, options: PathOptions) -> Result<Self, OpenPathError> {
        let failed = |source| OpenPathError::Listen { upstream, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared::new(
            upstream,
            options.close_rule,
            options.window_bytes.max(1),
        ));
        let accepting = tokio::spawn(accept(Arc::clone(&shared), listener)).abort_handle();
        Ok(Self {
            shared,
            address,
            accepting,
        })
    }

    /// The address to connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Routes connections that are accepted from now on to `upstream`. Those that are open stay where they are.
    pub fn route_to(&self, upstream: SocketAddr) {
        self.shared.change(|state| state.upstream = upstream);
    }

    /// Sets a hold. It is in force when this returns.
    pub fn hold(&self, hold: Hold) -> Held {
        let id = self.shared.change(|state| state.hold(hold));
        Held {
            shared: Arc::clone(&self.shared),
            id,
        }
    }

    /// Replaces a pattern from now on, on connections that are open as well as on later ones, and in what has come whole and
    /// is held.
    pub fn replace(&self, replacement: Replacement) -> ReplacementHandle {
        let handle = replacement.handle();
        self.shared.change(|state| state.replace(replacement));
        handle
    }

    /// Takes a replacement back: what it has replaced stays as it is.
    pub fn withdraw(&self, replacement: &ReplacementHandle) {
        self.shared.change(|state| state.withdraw(replacement));
    }

    /// Sets when a holder's close is passed on, for open connections too.
    pub fn set_close_rule(&self, rule: CloseRule) {
        self.shared.change(|state| state.set_close_rule(rule));
    }

    /// Lets a connection's close go on, whatever the rule.
    pub fn let_close(&self, connection: ConnectionNumber) {
        self.shared.change(|state| state.let_close(connection));
    }

    /// Cuts a connection off: nothing more of it is handed on, also what is held, and both ends get a reset.
    pub fn cut(&self, connection: ConnectionNumber) {
        self.shared.change(|state| state.cut(connection));
    }

    /// Asks the upstream something on a connection that is open, before what is held on it, and keeps the answer from the side that
    /// connected. Nothing may be under way on it. `whole` says whether the answer is: it sees what has come since the question.
    /// Both stand in the log. Waits for ever when the answer never is whole: the caller bounds it.
    pub async fn ask_aside(
        &self,
        connection: ConnectionNumber,
        question: &[u8],
        whole: impl Fn(&[u8]) -> bool,
    ) {
        let answer = self.hold(Hold::new(Direction::ToHolder).on(connection).from_now());
        let before = self.read(|log| log.connection(connection).map(|one| one.to_holder.received()));
        let Some(before) = before else { return };
        self.shared
            .change(|state| state.insert(connection, Direction::ToResource, question));
        self.wait(|log| {
            let come = &log.connection(connection)?.to_holder.bytes()[before..];
            whole(come).then_some(())
        })
        .await;
        self.shared
            .change(|state| state.discard(connection, Direction::ToHolder));
        answer.release();
    }

    /// Looks at the log. The function runs under the path's lock, so it must be quick and must not call the path.
    pub fn read<T>(&self, look: impl FnOnce(&Log) -> T) -> T {
        self.shared.read(|state| look(&state.log))
    }

    /// Looks at the log now and after every change until the function returns something. Waits for ever when it never does:
    /// the caller bounds it. The function runs under the path's lock, so it must be quick and must not call the path.
    pub async fn wait<T>(&self, mut look: impl FnMut(&Log) -> Option<T>) -> T {
        self.shared.wait(|state| look(&state.log)).await
    }

    /// A copy of one connection's record.
    #[must_use]
    pub fn connection(&self, number: ConnectionNumber) -> Option<Connection> {
        self.read(|log| log.connection(number).cloned())
    }

    /// How many bytes of the connection the kernel has taken on the resource's behalf and the resource has not read, also
    /// when it has not accepted the connection yet. A close that was passed on counts as one byte.
    ///
    /// # Errors
    ///
    /// [`UnreadError`] when the connection, or the resource's end of it, does not exist on this host.
    pub fn unread_by_resource(&self, connection: ConnectionNumber) -> Result<u64, UnreadError> {
        unread(&self.read(|log| upstream_addresses(log, connection))?)
    }

    /// Waits until at least `bytes` bytes lie unread in the resource's socket and returns the time at which they were seen
    /// there. The kernel tells nobody when they come, so this looks once a millisecond.
    ///
    /// # Errors
    ///
    /// [`UnreadError::TooFew`] when they have not come after `within`; the others as for
    /// [`unread_by_resource`](Self::unread_by_resource), once `within` has passed.
    pub async fn wait_unread(
        &self,
        connection: ConnectionNumber,
        bytes: u64,
        within: Duration,
    ) -> Result<Instant, UnreadError> {
        wait_for_unread(|| self.unread_by_resource(connection), bytes, within).await
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn upstream_addresses(log: &Log, number: ConnectionNumber) -> Result<(SocketAddr, SocketAddr), UnreadError> {
    let connection = log
        .connection(number)
        .ok_or(UnreadError::NoConnection { connection: number })?;
    let local = connection
        .upstream_local
        .ok_or(UnreadError::NotConnected { connection: number })?;
    Ok((connection.upstream, local))
}

/// Accepts connections. The set of their tasks lives here, so that ending this task ends them.
async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((holder, _)) => drop(connections.spawn(carry(Arc::clone(&shared), holder))),
                // The connection went before it was accepted, or descriptors ran out: the others may still end.
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}
