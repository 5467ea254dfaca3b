//! Cutting one direction of a connection into frames (RFC 9113, section 4.1).

use std::ops::Range;

/// What a client sends first.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const END_STREAM: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// The kinds of frames that are a message's, and those that end one or begin one unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Headers,
    ResetStream,
    PushPromise,
    Continuation,
    /// One that has no part in any message.
    Other,
}

/// A frame, whole or the beginning of one whose kind is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) kind: Kind,
    pub(super) flags: u8,
    pub(super) stream: u32,
    /// Where it stands in its direction, as far as it has come.
    pub(super) range: Range<usize>,
    /// What follows its nine bytes of header; absent until all of it has come.
    pub(super) payload: Option<&'a [u8]>,
}

impl<'a> Frame<'a> {
    /// The bytes of a HEADERS frame.
    pub(super) fn headers(flags: u8, stream: u32, block: &[u8]) -> Vec<u8> {
        let length = u32::try_from(block.len()).unwrap_or(u32::MAX).to_be_bytes();
        let mut bytes = vec![length[1], length[2], length[3], 0x1, flags];
        bytes.extend(stream.to_be_bytes());
        bytes.extend_from_slice(block);
        bytes
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The payload without padding and priority, which HEADERS and DATA may have.
    pub(super) fn content(&self, payload: &'a [u8]) -> Result<&'a [u8], String> {
        let (padding, rest) = match (self.has(PADDED), payload) {
            (false, rest) => (0, rest),
            (true, [length, rest @ ..]) => (usize::from(*length), rest),
            (true, []) => return Err("padding without its length".to_owned()),
        };
        let before = match self.kind == Kind::Headers && self.has(PRIORITY) {
            true => 5,
            false => 0,
        };
        let end = rest.len().checked_sub(padding);
        end.and_then(|end| rest.get(before..end))
            .ok_or_else(|| "more padding than payload".to_owned())
    }
}

/// The frames from an offset on. The last one may be incomplete; fewer than nine bytes are none.
pub(super) fn frames(bytes: &[u8], from: usize) -> impl Iterator<Item = Frame<'_>> {
    let mut at = from;
    std::iter::from_fn(move || {
        let &[high, middle, low, kind, flags, a, b, c, d] = bytes.get(at..at + HEADER)? else {
            return None;
        };
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        let whole = at + HEADER..at + HEADER + length;
        let frame = Frame {
            kind: match kind {
                0x0 => Kind::Data,
                0x1 => Kind::Headers,
                0x3 => Kind::ResetStream,
                0x5 => Kind::PushPromise,
                0x9 => Kind::Continuation,
                _ => Kind::Other,
            },
            flags,
            stream: u32::from_be_bytes([a, b, c, d]) & !(1 << 31),
            range: at..whole.end.min(bytes.len()),
            payload: bytes.get(whole.clone()),
        };
        at = whole.end;
        Some(frame)
    })
}

const HEADER: usize = 9;
