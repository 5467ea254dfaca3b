//! A stream means the same however much of it has come.

use proptest::prelude::*;

use super::message::{AnswerHead, RequestHead, Stream, answers, requests};

/// A request with its body, and its bytes on the wire.
#[derive(Debug, Clone)]
struct Sent {
    method: &'static str,
    body: Vec<u8>,
    wire: Vec<u8>,
}

fn any_body() -> impl Strategy<Value = Vec<u8>> {
    // Bytes that look like framing are the ones that could be taken for it.
    proptest::collection::vec(
        prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'0'), any::<u8>()],
        0..40,
    )
}

/// The body in chunks of at most `size` bytes, with a trailer if asked.
fn chunked(body: &[u8], size: usize, trailer: bool) -> Vec<u8> {
    let mut wire = Vec::new();
    for chunk in body.chunks(size) {
        wire.extend_from_slice(format!("{:x};note=1\r\n", chunk.len()).as_bytes());
        wire.extend_from_slice(chunk);
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(if trailer {
        b"0\r\nDigest: x\r\n\r\n"
    } else {
        b"0\r\n\r\n"
    });
    wire
}

fn with_body(head: &str, body: &[u8], chunk: usize, trailer: bool) -> Vec<u8> {
    let (field, framed) = match chunk {
        0 => (format!("Content-Length: {}", body.len()), body.to_vec()),
        size => (
            "Transfer-Encoding: chunked".to_owned(),
            chunked(body, size, trailer),
        ),
    };
    let mut wire = format!("{head}\r\n{field}\r\nfencing-token: \"7\";grant=\"a\"\r\n\r\n").into_bytes();
    wire.extend(framed);
    wire
}

prop_compose! {
    fn any_request()(
        method in prop_oneof![Just("GET"), Just("POST"), Just("HEAD")],
        body in any_body(),
        chunk in 0_usize..12,
        trailer: bool,
    ) -> Sent {
        if method == "POST" {
            let wire = with_body("POST /accounts/a%2Fb/transfers HTTP/1.1", &body, chunk, trailer);
            Sent { method, body, wire }
        } else {
            let wire = format!("{method} /accounts/a%2Fb/transfers HTTP/1.1\r\nhost: r\r\n\r\n").into_bytes();
            Sent { method, body: Vec::new(), wire }
        }
    }
}

prop_compose! {
    fn any_answer()(status in prop_oneof![Just(201_u16), Just(204), Just(412)], body in any_body(), chunk in 0_usize..12)
        -> (u16, Vec<u8>, usize) {
        (status, if status == 204 { Vec::new() } else { body }, chunk)
    }
}

fn answer_wire(method: &str, status: u16, body: &[u8], chunk: usize) -> Vec<u8> {
    let mut wire = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
    if status == 204 {
        wire.extend_from_slice(b"HTTP/1.1 204 No Content\r\n\r\n");
    } else if method == "HEAD" {
        wire.extend_from_slice(format!("HTTP/1.1 {status} X\r\ncontent-length: 10\r\n\r\n").as_bytes());
    } else {
        wire.extend(with_body(&format!("HTTP/1.1 {status} X"), body, chunk, false));
    }
    wire
}

/// What a part of a stream holds must be what the whole holds, as far as it goes.
fn agrees<H: PartialEq + std::fmt::Debug>(part: &Stream<H>, whole: &Stream<H>, length: usize) {
    assert_eq!(part.malformed, None);
    let complete = part
        .messages
        .iter()
        .take_while(|message| message.complete)
        .count();
    assert!(
        part.messages.len() - complete <= 1,
        "only the last one is incomplete"
    );
    assert_eq!(part.messages[..complete], whole.messages[..complete]);
    assert!(
        whole
            .messages
            .get(complete)
            .is_none_or(|next| next.range.end > length),
        "none is complete too late"
    );
    if let Some(last) = part.messages.get(complete) {
        let full = &whole.messages[complete];
        assert_eq!(last.range, full.range.start..length);
        assert!(full.body.starts_with(&last.body));
    }
}

proptest! {
    #[test]
    fn requests_cut_from_any_part_of_a_stream_equal_those_of_the_whole(
        sent in proptest::collection::vec(any_request(), 1..5),
    ) {
        let wire: Vec<u8> = sent.iter().flat_map(|one| one.wire.clone()).collect();
        let whole = requests(&wire);
        prop_assert_eq!(whole.messages.len(), sent.len());
        for (message, one) in whole.messages.iter().zip(&sent) {
            let head = RequestHead { method: one.method.to_owned(), target: "/accounts/a%2Fb/transfers".to_owned() };
            prop_assert_eq!(message.head.as_ref(), Some(&head));
            prop_assert_eq!(&message.body, &one.body);
            prop_assert!(message.complete);
        }
        for length in 0..=wire.len() {
            agrees(&requests(&wire[..length]), &whole, length);
        }
    }

    #[test]
    fn answers_cut_from_any_part_of_a_stream_equal_those_of_the_whole(
        sent in proptest::collection::vec((any_request(), any_answer()), 1..5),
    ) {
        let methods: Vec<&str> = sent.iter().map(|(request, _)| request.method).collect();
        let parts = sent.iter().map(|(request, (status, body, chunk))| {
            answer_wire(request.method, *status, body, *chunk)
        });
        let wire: Vec<u8> = parts.flatten().collect();
        let whole = answers(&wire, &methods, false);
        prop_assert_eq!(whole.messages.len(), sent.len());
        for (message, (request, (status, body, _))) in whole.messages.iter().zip(&sent) {
            prop_assert_eq!(message.head, Some(AnswerHead { status: *status }));
            let expected: &[u8] = if request.method == "HEAD" { b"" } else { body };
            prop_assert_eq!(&message.body[..], expected);
        }
        for length in 0..=wire.len() {
            let part = answers(&wire[..length], &methods, false);
            let complete = part.messages.iter().filter(|message| message.complete).count();
            prop_assert_eq!(part.malformed, None);
            prop_assert_eq!(&part.messages[..complete], &whole.messages[..complete]);
        }
    }
}

#[test]
fn an_answer_without_a_length_is_complete_when_its_sender_has_closed() {
    let wire = b"HTTP/1.1 500 Oops\r\n\r\nso far";
    let open = answers(wire, &["GET"], false);
    assert_eq!(
        (open.messages[0].complete, open.messages[0].body.as_slice()),
        (false, b"so far".as_slice())
    );
    assert!(answers(wire, &["GET"], true).messages[0].complete);
}

#[test]
fn what_is_no_message_is_named_with_its_place() {
    let good = b"GET / HTTP/1.1\r\n\r\n";
    for (bad, why) in [
        (
            &b"POST / HTTP/1.1\r\ncontent-length: +2\r\n\r\n{}"[..],
            "content-length \"+2\"",
        ),
        (
            b"POST / HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
            "several content-length",
        ),
        (
            b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n",
            "longer than its size",
        ),
        (
            b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
            "chunk without a size",
        ),
        (b"\x16\x03\x01\x02\x00", "invalid"),
    ] {
        let stream = requests(&[good, bad].concat());
        let malformed = stream.malformed.unwrap();
        assert_eq!((stream.messages.len(), malformed.offset), (1, good.len()));
        assert!(malformed.why.contains(why), "{malformed}");
    }
}

#[test]
fn a_field_that_comes_twice_is_not_the_only_one() {
    let wire = b"POST / HTTP/1.1\r\nFencing-Token: \"40\"\r\nfencing-token: \"1\"\r\nhost: r\r\n\r\n";
    let headers = requests(wire).messages.remove(0).headers;
    assert_eq!(headers.only("fencing-token"), None);
    assert_eq!(
        headers.all("FENCING-TOKEN").collect::<Vec<_>>(),
        [b"\"40\"".as_slice(), b"\"1\""]
    );
    assert_eq!(headers.only("Host"), Some("r"));
}
