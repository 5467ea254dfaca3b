//! Streams mean the same however much of them has come, and whatever way they are cut into frames.

use loona_hpack::Encoder;
use proptest::prelude::*;

use super::frame::{END_HEADERS, END_STREAM, PREFACE};
use super::stream::{Messages, answers, requests};
use super::{body_begins, is_spoken, request_begins, with_field};
use crate::wire::http::message::Message;

const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut wire = vec![length[1], length[2], length[3], kind, flags];
    wire.extend(stream.to_be_bytes());
    wire.extend_from_slice(payload);
    wire
}

fn settings() -> Vec<u8> {
    frame(0x4, 0, 0, &[0, 2, 0, 0, 0, 0])
}

/// How a message is cut into frames.
#[derive(Debug, Clone)]
struct Shape {
    /// After how many bytes a header section goes on in a CONTINUATION frame.
    section: usize,
    /// The bytes of the body in each DATA frame.
    data: usize,
    padding: u8,
    priority: bool,
    trailers: bool,
}

prop_compose! {
    fn any_shape()(section in 0_usize..40, data in 1_usize..9, padding in 0_u8..4, priority: bool, trailers: bool) -> Shape {
        Shape { section, data, padding, priority, trailers }
    }
}

impl Shape {
    /// The frames of one message, in their order.
    fn frames(
        &self,
        stream: u32,
        table: &mut Encoder<'_>,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let ends = body.is_empty() && !self.trailers;
        self.section(stream, table, fields, ends, &mut frames);
        let chunks = body.chunks(self.data).count();
        for (number, chunk) in body.chunks(self.data).enumerate() {
            let last = number + 1 == chunks && !self.trailers;
            let mut payload = vec![self.padding];
            payload.extend_from_slice(chunk);
            payload.extend(vec![0; self.padding.into()]);
            let flags = PADDED | if last { END_STREAM } else { 0 };
            frames.push(frame(0x0, flags, stream, &payload));
        }
        if self.trailers {
            self.section(stream, table, &[("digest", "x")], true, &mut frames);
        }
        frames
    }

    fn section(
        &self,
        stream: u32,
        table: &mut Encoder<'_>,
        fields: &[(&str, &str)],
        ends: bool,
        frames: &mut Vec<Vec<u8>>,
    ) {
        let fields = fields
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let block = table.encode(fields);
        let (first, rest) = block.split_at(self.section.min(block.len()));
        let mut payload = if self.priority {
            vec![0, 0, 0, 0, 16]
        } else {
            Vec::new()
        };
        payload.extend_from_slice(first);
        let flags = if ends { END_STREAM } else { 0 } | if self.priority { PRIORITY } else { 0 };
        if rest.is_empty() {
            frames.push(frame(0x1, flags | END_HEADERS, stream, &payload));
        } else {
            // Nothing may come between the parts of a section.
            let mut both = frame(0x1, flags, stream, &payload);
            both.extend(frame(0x9, END_HEADERS, stream, rest));
            frames.push(both);
        }
    }
}

/// The frames of two messages in turn, as two streams of one connection come, with frames of the connection's own among them.
fn woven(one: Vec<Vec<u8>>, other: Vec<Vec<u8>>) -> Vec<u8> {
    let (mut one, mut other) = (one.into_iter(), other.into_iter());
    let mut wire = settings();
    loop {
        let (first, second) = (one.next(), other.next());
        if first.is_none() && second.is_none() {
            return wire;
        }
        for part in [first, second].into_iter().flatten() {
            wire.extend(part);
            wire.extend(frame(0x8, 0, 0, &[0, 0, 1, 0]));
        }
    }
}

fn find<H>(messages: &Messages<H>, stream: u32) -> Option<&Message<H>> {
    let mut known = messages.messages.iter();
    Some(&known.find(|(own, _)| *own == stream)?.1)
}

/// What a part holds must be what the whole holds, as far as it goes.
fn agrees<H: PartialEq + std::fmt::Debug>(part: &Messages<H>, whole: &Messages<H>, length: usize) {
    assert_eq!(part.malformed, None);
    for (stream, full) in &whole.messages {
        let Some(found) = find(part, *stream) else {
            assert!(full.range.end > length, "stream {stream} is complete too late");
            continue;
        };
        assert_eq!(found.complete, full.range.end <= length);
        assert_eq!(found.range.start, full.range.start);
        assert!(full.body.starts_with(&found.body));
        if found.complete {
            assert_eq!(found, full);
        }
    }
}

proptest! {
    #[test]
    fn requests_of_two_streams_are_told_apart_and_cut_from_any_part_equal_those_of_the_whole(
        shapes in (any_shape(), any_shape()),
        bodies in (proptest::collection::vec(any::<u8>(), 0..40), proptest::collection::vec(any::<u8>(), 0..40)),
    ) {
        let mut table = Encoder::new();
        let post = [(":method", "POST"), (":path", "/accounts/a%2Fb/transfers"), ("fencing-token", "\"7\";grant=\"a\"")];
        let put = [(":method", "PUT"), (":path", "/x"), ("fencing-token", "\"8\";grant=\"b\""), ("fencing-token", "9")];
        // The second one's header sections are written in terms of the first one's.
        let one = Shape { trailers: false, ..shapes.0 }.frames(1, &mut table, &post, &bodies.0);
        let other = shapes.1.frames(3, &mut table, &put, &bodies.1);
        let wire = [PREFACE, &woven(one, other)].concat();
        let whole = requests(&wire);
        prop_assert_eq!(whole.malformed.as_ref(), None);
        prop_assert_eq!(whole.messages.len(), 2);
        for (stream, method, target, body) in [
            (1, "POST", "/accounts/a%2Fb/transfers", &bodies.0), (3, "PUT", "/x", &bodies.1),
        ] {
            let message = find(&whole, stream).unwrap();
            let head = message.head.as_ref().unwrap();
            prop_assert_eq!((head.method.as_str(), head.target.as_str()), (method, target));
            prop_assert_eq!(&message.body, body);
            prop_assert!(message.complete);
        }
        let first = &find(&whole, 1).unwrap().headers;
        prop_assert_eq!(first.only("Fencing-Token"), Some("\"7\";grant=\"a\""));
        prop_assert_eq!(first.only(":path"), None);
        let second = &find(&whole, 3).unwrap().headers;
        prop_assert_eq!(second.all("fencing-token").count(), 2);
        prop_assert_eq!(second.only("fencing-token"), None);
        for length in PREFACE.len()..wire.len() {
            agrees(&requests(&wire[..length]), &whole, length);
        }
        let begins = request_begins(&wire);
        prop_assert_eq!(begins, Some(find(&whole, 1).unwrap().range.start));
        prop_assert_eq!(body_begins(&wire).is_some(), !(bodies.0.is_empty() && bodies.1.is_empty()));
        prop_assert!(body_begins(&wire) > begins || body_begins(&wire).is_none());
    }

    #[test]
    fn answers_are_those_that_are_not_interim_and_cut_from_any_part_equal_those_of_the_whole(
        shapes in (any_shape(), any_shape()), body in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut table = Encoder::new();
        let interim = Shape { trailers: false, ..shapes.0.clone() };
        let mut hints = Vec::new();
        interim.section(1, &mut table, &[(":status", "103"), ("link", "y")], false, &mut hints);
        let one = shapes.0.frames(1, &mut table, &[(":status", "412"), ("content-type", "text/plain")], &body);
        let began = settings().len() + hints.concat().len() + frame(0x8, 0, 0, &[0; 4]).len();
        let wire = woven([hints, one].concat(), Vec::new());
        let whole = answers(&wire);
        prop_assert_eq!(whole.messages.len(), 1);
        let message = find(&whole, 1).unwrap();
        prop_assert_eq!(message.head.unwrap().status, 412);
        prop_assert_eq!(message.range.start, began);
        prop_assert_eq!(message.headers.only("content-type"), Some("text/plain"));
        prop_assert_eq!(message.headers.only("link"), None);
        prop_assert_eq!(&message.body, &body);
        for length in began..wire.len() {
            agrees(&answers(&wire[..length]), &whole, length);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        requests(&[PREFACE, &bytes].concat());
        answers(&bytes);
    }
}

#[test]
fn http_2_is_known_by_its_preface_as_soon_as_no_method_begins_so() {
    assert!(!is_spoken(b"") && !is_spoken(b"P") && !is_spoken(b"PUT / HTTP/1.1\r\n"));
    assert!(is_spoken(b"PR") && is_spoken(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0"));
    assert!(!is_spoken(b"PRI * HTTP/1.1\r\n"));
}

#[test]
fn what_breaks_the_protocol_is_told_with_its_offset() {
    let whole = |frames: &[Vec<u8>]| requests(&[PREFACE, &frames.concat()].concat()).malformed.unwrap();
    let block = Encoder::new().encode([(b":method".as_slice(), b"GET".as_slice()), (b":path", b"/")]);
    let head = frame(0x1, 0, 1, &block);
    let broken = whole(&[head.clone(), frame(0x0, END_STREAM, 1, b"x")]);
    assert_eq!(
        (broken.offset, broken.why.as_str()),
        (PREFACE.len() + head.len(), "a header section that is broken off")
    );
    let padded = whole(&[frame(0x0, PADDED, 1, &[9, 0])]);
    assert_eq!(
        (padded.offset, padded.why.as_str()),
        (PREFACE.len(), "more padding than payload")
    );
    assert_eq!(whole(&[frame(0x1, END_HEADERS, 1, &[0x82])]).why, "no :path");
}

proptest! {
    #[test]
    fn a_request_written_otherwise_is_the_same_but_for_its_field(
        shape in any_shape(), body in proptest::collection::vec(any::<u8>(), 0..40),
        values in proptest::collection::vec("[ -~]{0,20}", 0..3),
    ) {
        let fields = [(":method", "POST"), (":path", "/x"), ("fencing-token", "\"7\""), ("idempotency-key", "a:1")];
        let shape = Shape { trailers: false, ..shape };
        let frames = shape.frames(1, &mut Encoder::new(), &fields, &body);
        let sent = [PREFACE, &woven(frames, Vec::new())].concat();
        let made = with_field(&sent, "Fencing-Token", &values).unwrap();
        let (before, after) = (requests(&sent), requests(&made));
        prop_assert_eq!(after.malformed.as_ref(), None);
        let (before, after) = (find(&before, 1).unwrap(), find(&after, 1).unwrap());
        let found: Vec<&[u8]> = after.headers.all("fencing-token").collect();
        let wanted: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        prop_assert_eq!(found, wanted);
        prop_assert_eq!(after.headers.only("idempotency-key"), Some("a:1"));
        prop_assert_eq!((&after.head, &after.body, after.complete), (&before.head, &before.body, true));
        prop_assert_eq!(with_field(b"POST / HTTP/1.1\r\n\r\n", "a", &values), None);
    }
}
