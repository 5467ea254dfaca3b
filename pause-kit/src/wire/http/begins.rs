//! Where in a holder's bytes its first request begins, for holds.

use super::http2;

/// The offset of the first byte of the first request, once it is known.
#[must_use]
pub fn request_begins(sent: &[u8]) -> Option<usize> {
    match http2::is_spoken(sent) {
        true => http2::request_begins(sent),
        false => (!sent.is_empty()).then_some(0),
    }
}

/// The offset of the first byte of the first request's body, once its head is whole.
#[must_use]
pub fn body_begins(sent: &[u8]) -> Option<usize> {
    if http2::is_spoken(sent) {
        return http2::body_begins(sent);
    }
    let end = b"\r\n\r\n";
    let head = sent.windows(end.len()).position(|bytes| bytes == end)?;
    Some(head + end.len())
}
