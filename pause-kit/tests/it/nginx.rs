//! A private nginx, and what it does to requests that carry a token.

use std::net::SocketAddr;
use std::time::Duration;

use pause_kit::path::{Path, PathOptions};
use pause_kit::services::{Nginx, for_tests};
use pause_kit::target::Http;
use pause_kit::wire::http::{Exchange, Request, exchanges};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const SOON: Duration = Duration::from_secs(20);

/// nginx before a path to something that answers 204 once a request is whole.
struct Bed {
    nginx: Nginx,
    behind: Path,
}

impl Bed {
    async fn new(http: Http) -> Bed {
        let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let behind = Path::open(upstream.local_addr().unwrap(), PathOptions::http());
        let behind = behind.await.unwrap();
        tokio::spawn(async move {
            while let Ok((socket, _)) = upstream.accept().await {
                tokio::spawn(answer(socket));
            }
        });
        let services = for_tests().await.services();
        let nginx = services.start_nginx(&[behind.address()], http).await.unwrap();
        Bed { nginx, behind }
    }

    fn address(&self) -> SocketAddr {
        self.nginx.addresses()[0]
    }

    /// The first request behind nginx that is as it must be.
    async fn handed_on(&self, ready: impl Fn(&Request) -> bool) -> Request {
        let found = self.behind.wait(|log| {
            let all = log.connections().iter();
            let all: Vec<Exchange> = all.flat_map(|one| exchanges(one).unwrap()).collect();
            all.into_iter().map(|one| one.request).find(&ready)
        });
        tokio::time::timeout(SOON, found)
            .await
            .expect("a request behind nginx")
    }
}

async fn answer(mut socket: TcpStream) {
    let mut read = Vec::new();
    let mut chunk = [0; 1024];
    while !read.ends_with(b"whole") {
        match socket.read(&mut chunk).await {
            Ok(count) if count > 0 => read.extend_from_slice(&chunk[..count]),
            _ => return,
        }
    }
    let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
    socket.write_all(answer).await.unwrap();
}

fn fields(request: &Request, name: &str) -> Vec<String> {
    let all = request.headers.all(name);
    all.map(|value| String::from_utf8(value.to_vec()).unwrap())
        .collect()
}

const MINE: &str = r#""7";grant="a""#;

#[tokio::test]
async fn nginx_hands_on_what_connection_names_and_two_tokens_as_two_and_drops_names_with_underscores() {
    let bed = Bed::new(Http::One).await;
    let theirs = r#""9";grant="b""#;
    for (path, further, tokens) in [
        ("/named", "Connection: Fencing-Token".to_owned(), vec![MINE]),
        ("/twice", format!("Fencing-Token: {theirs}"), vec![MINE, theirs]),
        ("/underscore", format!("Fencing_Token: {theirs}"), vec![MINE]),
    ] {
        let mut client = TcpStream::connect(bed.address()).await.unwrap();
        let sent = format!(
            "POST {path} HTTP/1.1\r\nHost: r\r\nFencing-Token: {MINE}\r\n{further}\r\nContent-Length: 5\r\n\r\nwhole"
        );
        client.write_all(sent.as_bytes()).await.unwrap();
        let request = bed
            .handed_on(|request| request.target == path && request.complete)
            .await;
        assert_eq!(fields(&request, "fencing-token"), tokens, "{path}");
        assert_eq!(fields(&request, "fencing_token"), Vec::<String>::new(), "{path}");
        assert_eq!(fields(&request, "connection"), ["close"], "{path}");
    }
}

#[tokio::test]
async fn a_head_is_handed_on_before_its_body_is_whole() {
    let bed = Bed::new(Http::One).await;
    let mut client = TcpStream::connect(bed.address()).await.unwrap();
    let head = format!("POST /x HTTP/1.1\r\nHost: r\r\nFencing-Token: {MINE}\r\nContent-Length: 5\r\n\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    let request = bed.handed_on(|request| request.target == "/x").await;
    assert!(!request.complete);
    client.write_all(b"whole").await.unwrap();
    bed.handed_on(|request| request.complete).await;
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 204");
}

#[tokio::test]
async fn http_2_is_taken_from_the_first_byte_on_and_handed_on_in_http_1_1() {
    let bed = Bed::new(Http::Two).await;
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge();
    let request = client
        .build()
        .unwrap()
        .post(format!("http://{}/x", bed.address()));
    let request = request.header("Fencing-Token", MINE).body("whole");
    let answer = tokio::time::timeout(SOON, request.send()).await.unwrap().unwrap();
    assert_eq!(
        (answer.version(), answer.status().as_u16()),
        (reqwest::Version::HTTP_2, 204)
    );
    let request = bed.handed_on(|request| request.complete).await;
    assert_eq!(fields(&request, "fencing-token"), [MINE]);
    let began = bed
        .behind
        .read(|log| log.connections()[0].to_resource.bytes()[..20].to_vec());
    assert_eq!(began, b"POST /x HTTP/1.1\r\nHo");
    let version = bed.nginx.version();
    assert!(
        version.starts_with(|first: char| first.is_ascii_digit()),
        "{version}"
    );
    assert_eq!(Nginx::installed().unwrap(), version);
}
