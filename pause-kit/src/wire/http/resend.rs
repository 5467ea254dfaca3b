//! Sending a request of a connection once more, on another one.

use super::http2;
use super::{Request, request_begins};

/// The bytes that send a request on a connection of its own. In HTTP/2 these are all that the client sent before it as well;
/// so there is nothing where another request came before it, which would be sent once more, too.
pub(crate) fn alone(sent: &[u8], request: &Request) -> Option<Vec<u8>> {
    let (from, end) = (request.offset, request.offset + request.length);
    let from = match http2::is_spoken(sent) {
        true if request_begins(sent) == Some(from) => 0,
        true => return None,
        false => from,
    };
    sent.get(from..end).map(<[u8]>::to_vec)
}

/// Such bytes with these values in the place of a field, each in a field of its own.
pub(crate) fn with_field(sent: &[u8], name: &str, values: &[String]) -> Option<Vec<u8>> {
    match http2::is_spoken(sent) {
        true => http2::with_field(sent, name, values),
        false => in_lines(sent, name, values),
    }
}

/// HTTP/1.1: line by line to the empty one; what follows is the body.
fn in_lines(sent: &[u8], name: &str, values: &[String]) -> Option<Vec<u8>> {
    let mut made = Vec::with_capacity(sent.len() + 256);
    let (mut rest, mut placed) = (sent, false);
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let (line, after) = rest.split_at(end + 2);
        rest = after;
        let colon = line.iter().position(|byte| *byte == b':');
        let is_it = colon.is_some_and(|colon| line[..colon].eq_ignore_ascii_case(name.as_bytes()));
        if (is_it || end == 0) && !placed {
            placed = true;
            for value in values {
                made.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
            }
        }
        if !is_it {
            made.extend_from_slice(line);
        }
        if end == 0 {
            made.extend_from_slice(rest);
            return Some(made);
        }
    }
}
