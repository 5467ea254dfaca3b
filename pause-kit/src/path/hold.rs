//! Holding bytes on their way.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::control::Shared;
use super::log::{ConnectionNumber, Direction};

/// What to hold: a direction, the connections, and the offset from which on bytes are kept.
///
/// By default it is the next connection to be accepted, from its first byte.
pub struct Hold {
    pub(crate) direction: Direction,
    pub(crate) which: Which,
    pub(crate) point: Point,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Next,
    Number(ConnectionNumber),
    Every,
}

/// Finds in a flow's bytes so far the offset from which on to hold.
pub(crate) type Finder = Arc<dyn Fn(&[u8]) -> Option<usize> + Send + Sync>;

#[derive(Clone)]
pub(crate) enum Point {
    Byte(usize),
    Now,
    Found(Finder),
    Next(Finder),
}

impl Hold {
    /// Holds bytes of `direction`.
    #[must_use]
    pub fn new(direction: Direction) -> Self {
        Self {
            direction,
            which: Which::Next,
            point: Point::Byte(0),
        }
    }

    /// Holds on the connection of that number, which may already be carrying bytes.
    #[must_use]
    pub fn on(self, connection: ConnectionNumber) -> Self {
        Self {
            which: Which::Number(connection),
            ..self
        }
    }

    /// Holds on every connection, those that are open and those to come.
    #[must_use]
    pub fn on_every(self) -> Self {
        Self {
            which: Which::Every,
            ..self
        }
    }

    /// Lets the first `bytes` bytes of the connection's direction through and keeps the rest. On a connection where more
    /// has already been handed on, or is being handed on, what comes after that is kept; [`Kept::at_byte`] tells.
    #[must_use]
    pub fn at_byte(self, bytes: usize) -> Self {
        Self {
            point: Point::Byte(bytes),
            ..self
        }
    }

    /// Keeps whatever has not been handed on when the hold is set.
    #[must_use]
    pub fn from_now(self) -> Self {
        Self {
            point: Point::Now,
            ..self
        }
    }

    /// Keeps what stands from the offset on that `find` returns. It sees all bytes of the flow at each arrival, before any
    /// of the new ones can be handed on, until it has found something; it runs under the path's lock, so it must be quick.
    #[must_use]
    pub fn from_found(self, find: impl Fn(&[u8]) -> Option<usize> + Send + Sync + 'static) -> Self {
        Self {
            point: Point::Found(Arc::new(find)),
            ..self
        }
    }

    /// The same, but `find` sees only what has not been handed on when the hold is set, and what comes after it.
    #[must_use]
    pub fn from_next(self, find: impl Fn(&[u8]) -> Option<usize> + Send + Sync + 'static) -> Self {
        Self {
            point: Point::Next(Arc::new(find)),
            ..self
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = match &self.point {
            Point::Byte(offset) => format!("byte {offset}"),
            Point::Now => "now".to_owned(),
            Point::Found(_) => "what is found".to_owned(),
            Point::Next(_) => "what is found next".to_owned(),
        };
        f.debug_struct("Hold")
            .field("direction", &self.direction)
            .field("which", &self.which)
            .field("from", &point)
            .finish()
    }
}

/// Where a hold keeps bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// On which connection.
    pub connection: ConnectionNumber,
    /// How many bytes of the direction have been let through.
    pub at_byte: usize,
    /// When the first byte that is kept arrived.
    pub since: Instant,
}

/// A hold that has been set. It stays in force until [`release`](Self::release), also when this value is dropped: bytes
/// must never go on because of an error somewhere else. Dropping the [`Path`](super::Path) ends everything.
#[derive(Debug)]
#[must_use = "bytes stay held until `release` is called"]
pub struct Held {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: usize,
}

impl Held {
    /// Waits until the hold keeps at least one byte, with all before it handed on. Waits for ever when none comes:
    /// the caller bounds it.
    pub async fn engaged(&self) -> Kept {
        self.shared.wait(|state| state.kept_by(self.id)).await
    }

    /// Lets the bytes go and returns the time, which is before any of them is handed on. A second call changes nothing and
    /// returns the first one's time.
    pub fn release(&self) -> Instant {
        self.shared.change(|state| state.release(self.id))
    }
}
