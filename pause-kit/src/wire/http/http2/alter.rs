//! Writing a request otherwise than it came.

use loona_hpack::{Decoder, Encoder};

use super::frame::{END_HEADERS, END_STREAM, Frame, Kind, PREFACE, frames};
use super::is_spoken;

/// What a client sent, with these values in the place of a field in its first request, whose header section is written anew.
/// Nothing when it speaks no HTTP/2 or no whole section has come.
pub(crate) fn with_field(sent: &[u8], name: &str, values: &[String]) -> Option<Vec<u8>> {
    if !is_spoken(sent) {
        return None;
    }
    let mut following = frames(sent, PREFACE.len()).skip_while(|frame| frame.kind != Kind::Headers);
    let first = following.next()?;
    let mut block = content(&first)?.to_vec();
    let mut end = first.range.end;
    let mut is_whole = first.has(END_HEADERS);
    while !is_whole {
        let next = following.next()?;
        block.extend_from_slice(content(&next)?);
        end = next.range.end;
        is_whole = next.has(END_HEADERS);
    }
    let name = name.to_ascii_lowercase().into_bytes();
    let fields = Decoder::new().decode(&block).ok()?;
    let at = fields.iter().position(|(field, _)| *field == name);
    let (before, after) = fields.split_at(at.unwrap_or(fields.len()));
    let before = before
        .iter()
        .map(|(field, value)| (field.as_slice(), value.as_slice()));
    let own = values.iter().map(|value| (name.as_slice(), value.as_bytes()));
    let after = after
        .iter()
        .map(|(field, value)| (field.as_slice(), value.as_slice()));
    let after = after.filter(|(field, _)| *field != name);
    let block = Encoder::new().encode(before.chain(own).chain(after));
    let section = Frame::headers(first.flags & END_STREAM | END_HEADERS, first.stream, &block);
    Some([&sent[..first.range.start], &section, &sent[end..]].concat())
}

fn content<'a>(frame: &Frame<'a>) -> Option<&'a [u8]> {
    frame.content(frame.payload?).ok()
}
