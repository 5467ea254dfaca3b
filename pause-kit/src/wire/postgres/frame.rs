//! What both streams are made of.

use std::ops::Range;

/// Bytes that are no message of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no PostgreSQL message at byte {offset}: {why}")]
pub struct MalformedPostgres {
    /// The offset at which the message begins.
    pub offset: usize,
    /// What is wrong with it.
    pub why: &'static str,
}

/// A message and where it stands in its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framed<M> {
    /// The message's bytes, tag and length included.
    pub range: Range<usize>,
    /// What it says.
    pub message: M,
}

/// A tag, if the message has one, its body, and its length in the stream; none when it has not come whole.
pub(super) type Cut<'a> = Option<(Option<u8>, &'a [u8], usize)>;

/// The largest message that is believed; PostgreSQL's own limit is below it.
const MAX_LENGTH: usize = 1 << 30;

pub(super) fn tagged(rest: &[u8], offset: usize) -> Result<Cut<'_>, MalformedPostgres> {
    let Some(length) = length_at(rest, 1) else {
        return Ok(None);
    };
    if !(4..=MAX_LENGTH).contains(&length) {
        return Err(MalformedPostgres {
            offset,
            why: "a length out of range",
        });
    }
    Ok(rest
        .get(5..length + 1)
        .map(|body| (Some(rest[0]), body, length + 1)))
}

pub(super) fn untagged(rest: &[u8], offset: usize) -> Result<Cut<'_>, MalformedPostgres> {
    let Some(length) = length_at(rest, 0) else {
        return Ok(None);
    };
    if !(8..=10_000).contains(&length) {
        return Err(MalformedPostgres {
            offset,
            why: "a startup packet's length out of range",
        });
    }
    Ok(rest.get(4..length).map(|body| (None, body, length)))
}

fn length_at(rest: &[u8], at: usize) -> Option<usize> {
    let bytes = rest.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize)
}

/// The rest of a message's body.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or("a field that is longer than its message")?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn u16(&mut self) -> Result<u16, &'static str> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u32(&mut self) -> Result<u32, &'static str> {
        self.take(4)
            .map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A string that ends in a zero byte. The kit's servers and clients speak UTF-8; what is none is shown as far as it goes.
    pub(super) fn text(&mut self) -> Result<String, &'static str> {
        let end = self
            .0
            .iter()
            .position(|&byte| byte == 0)
            .ok_or("a string without an end")?;
        let text = String::from_utf8_lossy(&self.0[..end]).into_owned();
        self.0 = &self.0[end + 1..];
        Ok(text)
    }
}
