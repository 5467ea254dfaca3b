//! What a path has seen.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the side that connected to the path, usually a holder, to the upstream, usually the resource.
    ToResource,
    /// From the upstream to the side that connected.
    ToHolder,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Self; 2] = [Self::ToResource, Self::ToHolder];
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ToResource => "to the resource",
            Self::ToHolder => "to the holder",
        })
    }
}

/// The number of a connection on its path: 1 for the first one accepted, then 2, 3, and so on without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionNumber(u32);

impl ConnectionNumber {
    pub(crate) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index + 1).expect("a path carries fewer than 2^32 connections"))
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize - 1
    }

    /// The number, at least 1.
    #[must_use]
    pub fn value(self) -> u32 {
        self.0
    }
}

impl fmt::Display for ConnectionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Everything that a path has carried since it was opened.
#[derive(Debug, Clone, Default)]
pub struct Log {
    pub(crate) connections: Vec<Connection>,
}

impl Log {
    /// The connections in the order in which they were accepted.
    #[must_use]
    pub fn connections(&self) -> &[Connection] {
        &self.connections
    }

    /// The connection of that number, if there has been one.
    #[must_use]
    pub fn connection(&self, number: ConnectionNumber) -> Option<&Connection> {
        self.connections.get(number.index())
    }

    /// The connection that was accepted last.
    #[must_use]
    pub fn last(&self) -> Option<&Connection> {
        self.connections.last()
    }
}

/// One connection through the path.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Its number on this path.
    pub number: ConnectionNumber,
    /// When the path accepted it.
    pub accepted: Instant,
    /// The address of the side that connected.
    pub peer: SocketAddr,
    /// Where the path routed it to.
    pub upstream: SocketAddr,
    /// The path's own address on its connection to the upstream; absent until that is established.
    pub upstream_local: Option<SocketAddr>,
    /// Why the upstream could not be reached, if it could not. The connecting side then gets a reset.
    pub unreachable: Option<String>,
    /// The bytes from the side that connected.
    pub to_resource: Flow,
    /// The bytes from the upstream.
    pub to_holder: Flow,
    /// When the path was told to cut it off. What had not been handed on by then never is.
    pub cut: Option<Instant>,
    /// When the path had let go of both of its sockets.
    pub ended: Option<Instant>,
}

impl Connection {
    pub(crate) fn accepted(number: ConnectionNumber, peer: SocketAddr, upstream: SocketAddr) -> Self {
        Self {
            number,
            accepted: Instant::now(),
            peer,
            upstream,
            upstream_local: None,
            unreachable: None,
            to_resource: Flow::default(),
            to_holder: Flow::default(),
            cut: None,
            ended: None,
        }
    }

    /// The flow of that direction.
    #[must_use]
    pub fn flow(&self, direction: Direction) -> &Flow {
        match direction {
            Direction::ToResource => &self.to_resource,
            Direction::ToHolder => &self.to_holder,
        }
    }

    pub(crate) fn flow_mut(&mut self, direction: Direction) -> &mut Flow {
        match direction {
            Direction::ToResource => &mut self.to_resource,
            Direction::ToHolder => &mut self.to_holder,
        }
    }
}

/// One direction of one connection. Offsets count bytes from 0; a replacement does not move them.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    pub(crate) bytes: Vec<u8>,
    pub(crate) received: Vec<Mark>,
    pub(crate) forwarded: Vec<Mark>,
    pub(crate) replaced: Vec<Replaced>,
    pub(crate) close: Option<(Close, Instant)>,
    pub(crate) close_passed: Option<Instant>,
    pub(crate) broken: Option<Instant>,
    pub(crate) impatient: u32,
}

/// Up to where a direction had come at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The number of bytes of the flow up to and including this chunk.
    pub end: usize,
    /// When.
    pub at: Instant,
}

/// How a sender ended its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// It sent its end of stream in order.
    End,
    /// The connection was reset.
    Reset,
}

/// One place where a replacement fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaced {
    /// The offset of the first byte that was replaced.
    pub offset: usize,
    /// How many bytes were replaced.
    pub length: usize,
    /// When.
    pub at: Instant,
}

impl Flow {
    /// All bytes that have arrived, with replacements applied: what is or would be handed on. Bytes at the very end may
    /// yet be replaced while they could be the beginning of a pattern.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes have arrived.
    #[must_use]
    pub fn received(&self) -> usize {
        self.bytes.len()
    }

    /// How many bytes have been handed on.
    #[must_use]
    pub fn forwarded(&self) -> usize {
        self.forwarded.last().map_or(0, |mark| mark.end)
    }

    /// The chunks as they arrived.
    #[must_use]
    pub fn arrivals(&self) -> &[Mark] {
        &self.received
    }

    /// The chunks as they were handed on.
    #[must_use]
    pub fn departures(&self) -> &[Mark] {
        &self.forwarded
    }

    /// When the byte at `offset` arrived; none when it has not.
    #[must_use]
    pub fn received_at(&self, offset: usize) -> Option<Instant> {
        time_of(&self.received, offset)
    }

    /// When the byte at `offset` was handed on, just before the kernel took it; none when it has not been.
    #[must_use]
    pub fn forwarded_at(&self, offset: usize) -> Option<Instant> {
        time_of(&self.forwarded, offset)
    }

    /// Where replacements fired.
    #[must_use]
    pub fn replaced(&self) -> &[Replaced] {
        &self.replaced
    }

    /// How often the path handed on the beginning of a pattern because nothing came after it in time. The rest of the
    /// pattern would no longer have been replaced, so a run that counts on a replacement asks that this is 0 or that the
    /// replacement fired as often as it expects.
    #[must_use]
    pub fn impatient(&self) -> u32 {
        self.impatient
    }

    /// How and when the sender ended this direction.
    #[must_use]
    pub fn close(&self) -> Option<(Close, Instant)> {
        self.close
    }

    /// When that end was passed on, from just before. None while it is kept back.
    #[must_use]
    pub fn close_passed(&self) -> Option<Instant> {
        self.close_passed
    }

    /// When handing on failed because the receiver was gone. What arrives afterwards is still recorded.
    #[must_use]
    pub fn broken(&self) -> Option<Instant> {
        self.broken
    }
}

fn time_of(marks: &[Mark], offset: usize) -> Option<Instant> {
    marks
        .get(marks.partition_point(|mark| mark.end <= offset))
        .map(|mark| mark.at)
}
