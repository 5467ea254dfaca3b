//! What is wrong about the message's frame.

use super::{BODY, GOOD, KEY, PATH, Raw, bytes};

pub(super) fn framing() -> Vec<Raw> {
    let body = BODY;
    let length = body.len();
    let start = format!("POST {PATH} HTTP/1.1\r\nHost: paydb\r\nConnection: close\r\n{KEY}");
    let mut all = Vec::new();
    let mut add =
        |text: String, right: &'static [u16], what: &str| all.push(bytes(text.as_bytes(), right, what));
    let wrong: &[u16] = &[400];
    for (lines, what) in [
        (
            format!(
                "Content-Length: {length}\r\nContent-Length: {}\r\n{GOOD}",
                length + 1
            ),
            "two lengths",
        ),
        (
            format!("Content-Length: {length}, {}\r\n{GOOD}", length + 1),
            "two lengths in one",
        ),
        (format!("Content-Length: -1\r\n{GOOD}"), "a negative length"),
        (
            format!("Content-Length: +{length}\r\n{GOOD}"),
            "a length with a sign",
        ),
        (
            format!("Content-Length: 0x2f\r\n{GOOD}"),
            "a length in hexadecimal",
        ),
        (
            format!("Content-Length: 99999999999999999999\r\n{GOOD}"),
            "a length beyond 64 bits",
        ),
        (format!("Content-Length: \r\n{GOOD}"), "an empty length"),
        (
            format!("Transfer-Encoding: xchunked\r\n{GOOD}"),
            "an unknown coding",
        ),
        (
            format!("Transfer-Encoding: chunked, identity\r\n{GOOD}"),
            "chunked not last",
        ),
        (
            format!("Content-Length: {length}\r\nFencing-Token : \"281474976710690\";grant=\"g34\"\r\n"),
            "a space before the colon",
        ),
        (
            format!("Content-Length: {length}\r\nFencing-Token: \"281474976710690\";\r\n grant=\"g34\"\r\n"),
            "a folded header",
        ),
        (
            format!("Content-Length: {length}\r\nFencing-Token: \"2814\0\"\r\n"),
            "NUL in a header",
        ),
        (
            format!("Content-Length: {length}\r\nFencing-Token: \"2814\x07\"\r\n"),
            "BEL in a header",
        ),
        (
            format!("Content-Length: {length}\r\nFencing-Token: \"2814\x7f\"\r\n"),
            "DEL in a header",
        ),
        (
            format!("Content-Length: {length}\r\nFencing Token: \"281474976710690\"\r\n"),
            "a space in a header's name",
        ),
        (
            format!("Content-Length: {length}\r\nFencing-Token\r\n"),
            "a header without a colon",
        ),
        (
            format!("Content-Length: {length}\r\n: \"281474976710690\"\r\n"),
            "a header without a name",
        ),
        (
            format!("Content-Length: {length}\r\nF\u{e9}ncing-Token: \"281474976710690\"\r\n"),
            "a header's name beyond ASCII",
        ),
    ] {
        add(format!("{start}{lines}\r\n{body}"), wrong, what);
    }
    let chunked = format!("{start}Transfer-Encoding: chunked\r\n");
    for (chunks, what) in [
        ("zz\r\n{}\r\n0\r\n\r\n", "a chunk's size that is none"),
        ("-1\r\n{}\r\n0\r\n\r\n", "a negative chunk"),
        ("ffffffffffffffffff\r\n{}\r\n0\r\n\r\n", "a chunk beyond 64 bits"),
        ("2\r\n{}xx0\r\n\r\n", "a chunk longer than it says"),
    ] {
        add(format!("{chunked}{GOOD}\r\n{chunks}"), wrong, what);
    }
    let in_trailer =
        format!("{chunked}Trailer: Fencing-Token\r\n\r\n{length:x}\r\n{body}\r\n0\r\n{GOOD}\r\n");
    add(in_trailer, &[428], "the token in a trailer");
    add(
        format!("{start}Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n"),
        &[428],
        "waiting to go on without a token",
    );
    for version in [
        "HTTP/0.9",
        "HTTP/1.2",
        "HTTP/2.0",
        "HTTP/3.0",
        "HTTP/11",
        "http/1.1",
        "HTTPS/1.1",
    ] {
        add(
            format!("POST {PATH} {version}\r\nHost: x\r\n{GOOD}{KEY}\r\n"),
            &[400, 505],
            version,
        );
    }
    for line in [
        "POST  /x HTTP/1.1",
        "POST /x y HTTP/1.1",
        "POST",
        "POST /x",
        " POST /x HTTP/1.1",
        "P@ST(/x HTTP/1.1",
        "POST /\u{1} HTTP/1.1",
        "\u{0}",
    ] {
        add(
            format!("{line}\r\nHost: x\r\n{GOOD}\r\n"),
            &[400, 404],
            &format!("line {line:?}"),
        );
    }
    add(
        format!("GET {PATH} HTTP/1.1\r\nHost: x\r\n{}\r\n", "X: y\r\n".repeat(200)),
        &[431],
        "200 headers",
    );
    add(
        format!(
            "POST {PATH} HTTP/1.1\r\nHost: x\r\nFencing-Token: \"{}\"\r\n\r\n",
            "9".repeat(1 << 20)
        ),
        &[431, 400],
        "a header of 1 MiB",
    );
    all
}
