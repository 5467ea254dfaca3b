//! HTTP/2 as it is spoken from the first byte on.

mod alter;
mod frame;
mod stream;

pub(crate) use alter::with_field;
pub(super) use stream::{answers, requests};

use frame::{Kind, PREFACE, frames};

/// Whether a client speaks HTTP/2, as far as its bytes have come. No method of HTTP/1.1 begins as the preface goes on.
pub(super) fn is_spoken(sent: &[u8]) -> bool {
    sent.starts_with(PREFACE) || sent.len() > 1 && PREFACE.starts_with(sent)
}

/// Where the first request of a client begins: its first HEADERS frame.
pub(super) fn request_begins(sent: &[u8]) -> Option<usize> {
    first(sent, Kind::Headers)
}

/// Where the first body of a client begins: its first DATA frame.
pub(super) fn body_begins(sent: &[u8]) -> Option<usize> {
    first(sent, Kind::Data)
}

fn first(sent: &[u8], kind: Kind) -> Option<usize> {
    let mut frames = frames(sent, PREFACE.len());
    Some(frames.find(|frame| frame.kind == kind)?.range.start)
}

#[cfg(test)]
mod tests;
