//! A client that writes its whole body before it reads gets its answer.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::any;
use fence_http::{Linger, Problem};
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::Layer;
use tower::make::Shared;

use super::*;

const MIB: usize = 1 << 20;

/// A handler that refuses before it reads the body, as one does that is fenced.
async fn refuse() -> Response<Body> {
    Problem::blocked().into_response()
}

/// A handler that reads the body whole.
async fn read(body: Bytes) -> String {
    body.len().to_string()
}

async fn serve(router: Router, linger: Linger) -> SocketAddr {
    let layer = building()
        .exempt(Method::POST, "/accounts")
        .linger(linger)
        .build()
        .unwrap();
    let service = layer.layer(router);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Shared::new(service)).await });
    address
}

fn head(length: usize, more: &str) -> String {
    head_of("POST /accounts/acct-1/transfers HTTP/1.1", length, more)
}

fn head_of(line: &str, length: usize, more: &str) -> String {
    format!("{line}\r\nHost: x\r\nContent-Length: {length}\r\n{more}\r\n")
}

/// Reads one answer: its head, and its body by Content-Length.
async fn answer(stream: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length: usize = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        let mut chunk = [0; 4096];
        let read = tokio::time::timeout(Duration::from_secs(30), stream.read(&mut chunk));
        match read.await.expect("an answer within 30 s").unwrap() {
            0 => return text,
            n => seen.extend_from_slice(&chunk[..n]),
        }
    }
}

/// Sends head and body whole, then reads, then asks for another answer on the same connection.
async fn write_all_then_read(
    address: SocketAddr,
    length: usize,
    headers: &str,
) -> std::io::Result<(String, bool)> {
    write_both_then_read(address, &head(length, headers), length).await
}

async fn write_both_then_read(
    address: SocketAddr,
    head: &str,
    length: usize,
) -> std::io::Result<(String, bool)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&vec![b'x'; length]).await?;
    let first = answer(&mut stream).await;
    let again = stream
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .is_ok();
    let alive = again && answer(&mut stream).await.starts_with("HTTP/1.1 ");
    Ok((first, alive))
}

const TOKEN: &str = "Fencing-Token: \"40\";grant=\"a\"\r\n";

#[tokio::test]
async fn a_large_body_is_drained_before_a_refusal_at_the_door_and_in_the_handler() {
    let address = serve(Router::new().fallback(any(refuse)), Linger::default()).await;
    for (headers, status) in [("", "HTTP/1.1 428 "), (TOKEN, "HTTP/1.1 503 ")] {
        let (first, alive) = write_all_then_read(address, 20 * MIB, headers).await.unwrap();
        assert!(first.starts_with(status), "{first}");
        assert!(alive, "the connection goes on");
    }
}

#[tokio::test]
async fn a_large_body_is_drained_where_no_token_is_needed_and_before_a_success_that_did_not_read_it() {
    let refusing = serve(Router::new().fallback(any(refuse)), Linger::default()).await;
    let writing = serve(Router::new().fallback(any(write)), Linger::default()).await;
    for (address, line, headers, status) in [
        (refusing, "POST /accounts HTTP/1.1", "", "HTTP/1.1 503 "),
        (refusing, "GET /accounts HTTP/1.1", "", "HTTP/1.1 503 "),
        (writing, "POST /accounts HTTP/1.1", "", "HTTP/1.1 200 "),
        (
            writing,
            "POST /accounts/acct-1/transfers HTTP/1.1",
            TOKEN,
            "HTTP/1.1 200 ",
        ),
    ] {
        let head = head_of(line, 20 * MIB, headers);
        let (first, alive) = write_both_then_read(address, &head, 20 * MIB).await.unwrap();
        assert!(first.starts_with(status), "{line}: {first}");
        assert!(alive, "{line}: the connection goes on");
    }
}

#[tokio::test]
async fn an_expectation_that_holds_no_body_back_does_not_stop_the_draining() {
    let address = serve(Router::new().fallback(any(refuse)), Linger::default()).await;
    for (version, headers) in [
        ("HTTP/1.1", "Expect: bananas\r\n"),
        ("HTTP/1.0", "Expect: 100-continue\r\nConnection: keep-alive\r\n"),
    ] {
        for (token, status) in [("", " 428 "), (TOKEN, " 503 ")] {
            let line = format!("POST /accounts/acct-1/transfers {version}");
            let head = head_of(&line, 20 * MIB, &format!("{token}{headers}"));
            let (first, alive) = write_both_then_read(address, &head, 20 * MIB).await.unwrap();
            assert!(first.contains(status), "{head}: {first}");
            assert!(alive, "{head}: the connection goes on");
        }
    }
}

#[tokio::test]
async fn beyond_the_bound_the_answer_says_that_the_connection_closes() {
    let linger = Linger {
        max_bytes: 1024,
        ..Linger::default()
    };
    let address = serve(Router::new().fallback(any(refuse)), linger).await;
    for headers in ["", TOKEN] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The head alone: a client that looks before it writes sees the answer at once.
        stream
            .write_all(head(20 * MIB, headers).as_bytes())
            .await
            .unwrap();
        let first = answer(&mut stream).await;
        assert!(first.contains("connection: close\r\n"), "{first}");
    }
}

#[tokio::test]
async fn a_client_that_stops_sending_gets_its_answer_at_the_time_bound() {
    let linger = Linger {
        max_time: Duration::from_millis(50),
        ..Linger::default()
    };
    let address = serve(Router::new().fallback(any(refuse)), linger).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head(MIB, TOKEN).as_bytes()).await.unwrap();
    stream.write_all(b"some of it").await.unwrap();
    let first = answer(&mut stream).await;
    assert!(first.starts_with("HTTP/1.1 503 "), "{first}");
    assert!(first.contains("connection: close\r\n"), "{first}");
}

#[tokio::test]
async fn a_client_that_waits_to_be_told_to_go_on_is_answered_at_once() {
    let address = serve(Router::new().fallback(any(refuse)), Linger::default()).await;
    for (headers, status) in [("", "HTTP/1.1 428 "), (TOKEN, "HTTP/1.1 503 ")] {
        for expectation in ["100-continue", "100-Continue"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let headers = format!("{headers}Expect: {expectation}\r\n");
            stream.write_all(head(MIB, &headers).as_bytes()).await.unwrap();
            let first = answer(&mut stream).await;
            assert!(first.starts_with(status), "{first}");
            assert!(first.contains("connection: close\r\n"), "{first}");
        }
    }
}

#[tokio::test]
async fn an_admitted_body_streams_through_as_it_comes() {
    let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |body: Body| {
        let send = send.clone();
        async move {
            let mut body = body;
            while let Some(frame) = body.frame().await {
                if let Ok(data) = frame.unwrap().into_data() {
                    send.send(data.len()).unwrap();
                }
            }
        }
    };
    let address = serve(Router::new().fallback(any(handler)), Linger::default()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head(20, TOKEN).as_bytes()).await.unwrap();
    for _ in 0..2 {
        // The second half is sent only once the handler has seen the first.
        stream.write_all(b"0123456789").await.unwrap();
        assert_eq!(receive.recv().await, Some(10));
    }
    assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_body_that_was_read_whole_leaves_nothing_to_wait_for() {
    let address = serve(Router::new().fallback(any(read)), Linger::default()).await;
    let (first, alive) = write_all_then_read(address, 100, TOKEN).await.unwrap();
    assert!(
        first.starts_with("HTTP/1.1 200 ") && first.ends_with("100"),
        "{first}"
    );
    assert!(alive);
    let (too_large, alive) = write_all_then_read(address, 3 * MIB, TOKEN).await.unwrap();
    assert!(too_large.starts_with("HTTP/1.1 413 "), "{too_large}");
    assert!(alive, "what the extractor left was drained");
}
