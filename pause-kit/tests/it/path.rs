//! The path between a holder and a resource.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pause_kit::path::{
    Close, CloseRule, ConnectionNumber, Direction, Hold, Path, PathOptions, Replacement, UnreadError,
};
use pause_kit::wire::http;
use rustix::net::RecvFlags;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::wait::soon;

const REQUEST: &[u8] = b"POST /accounts/acct-1/transfers HTTP/1.1\r\nhost: r\r\ncontent-length: 2\r\n\r\n{}";
const ANSWER: &[u8] = b"HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\ndone";

/// A resource that the test plays itself.
struct Resource {
    listener: TcpListener,
}

impl Resource {
    async fn open() -> Self {
        Self {
            listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
        }
    }

    fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    async fn accept(&self) -> TcpStream {
        soon(self.listener.accept()).await.unwrap().0
    }
}

/// A path, with a connection through it.
async fn connected(options: PathOptions) -> (Resource, Path, TcpStream, TcpStream) {
    let resource = Resource::open().await;
    let path = Path::open(resource.address(), options).await.unwrap();
    let holder = TcpStream::connect(path.address()).await.unwrap();
    let server = resource.accept().await;
    (resource, path, holder, server)
}

async fn read_exactly(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    soon(stream.read_exact(&mut bytes)).await.unwrap();
    bytes
}

async fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    soon(stream.read_to_end(&mut bytes)).await.unwrap();
    bytes
}

/// Whether the kernel has nothing for the stream, although the path has had every reason to send: the test has seen the
/// bytes at the path.
fn is_silent(stream: &TcpStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(
        rustix::net::recv(stream, &mut [0; 1], flags),
        Err(rustix::io::Errno::AGAIN)
    )
}

fn only(path: &Path) -> ConnectionNumber {
    path.read(|log| log.connections()[0].number)
}

#[tokio::test]
async fn what_is_held_on_a_connection_that_is_cut_off_never_arrives_and_both_ends_learn_of_it() {
    let (_resource, path, mut holder, mut server) = connected(PathOptions::http()).await;
    let held = path.hold(Hold::new(Direction::ToResource).on_every().at_byte(9));
    holder.write_all(REQUEST).await.unwrap();
    let kept = soon(held.engaged()).await;
    assert_eq!(read_exactly(&mut server, 9).await, REQUEST[..9]);
    path.cut(kept.connection);
    held.release();
    for end in [&mut holder, &mut server] {
        let error = soon(end.read(&mut [0; 1])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    let connection = path.connection(kept.connection).unwrap();
    assert_eq!(connection.to_resource.forwarded(), 9);
    assert_eq!(
        connection.to_resource.bytes(),
        REQUEST,
        "what came is still known"
    );
    assert!(connection.cut.is_some_and(|cut| cut >= kept.since));
}

#[tokio::test]
async fn what_is_asked_aside_goes_before_what_is_held_and_its_answer_to_nobody_else() {
    let (_resource, path, mut holder, mut server) = connected(PathOptions::plain()).await;
    holder.write_all(b"begin").await.unwrap();
    assert_eq!(read_exactly(&mut server, 5).await, b"begin");
    server.write_all(b"begun.").await.unwrap();
    assert_eq!(read_exactly(&mut holder, 6).await, b"begun.");
    let held = path.hold(Hold::new(Direction::ToResource).on(only(&path)).from_now());
    holder.write_all(b"commit").await.unwrap();
    soon(held.engaged()).await;
    let asked = path.ask_aside(only(&path), b"fail", |come| come.ends_with(b"."));
    let answered = async {
        assert_eq!(read_exactly(&mut server, 4).await, b"fail");
        assert!(is_silent(&server), "what is held went along");
        server.write_all(b"failed.").await.unwrap();
    };
    soon(async { tokio::join!(asked, answered) }).await;
    assert!(is_silent(&holder), "the answer went on");
    held.release();
    assert_eq!(read_exactly(&mut server, 6).await, b"commit");
    server.write_all(b"rolled back.").await.unwrap();
    assert_eq!(read_exactly(&mut holder, 12).await, b"rolled back.");
    let connection = path.connection(only(&path)).unwrap();
    assert_eq!(connection.to_resource.bytes(), b"beginfailcommit");
    assert_eq!(connection.to_holder.bytes(), b"begun.failed.rolled back.");
    let (asked, held) = (&connection.to_resource, connection.to_resource.forwarded_at(9));
    assert!(asked.forwarded_at(5) < held, "the question was handed on first");
}

#[tokio::test]
async fn an_exchange_goes_through_whole_and_is_recorded_with_its_times() {
    let (_resource, path, mut holder, mut server) = connected(PathOptions::http()).await;
    let before = Instant::now();
    holder.write_all(REQUEST).await.unwrap();
    assert_eq!(read_exactly(&mut server, REQUEST.len()).await, REQUEST);
    let received = Instant::now();
    server.write_all(ANSWER).await.unwrap();
    assert_eq!(read_exactly(&mut holder, ANSWER.len()).await, ANSWER);

    let exchange = soon(path.wait(|log| {
        let exchange = http::exchanges(log.last()?).unwrap().pop()?;
        exchange.answer.as_ref()?.ended.is_some().then_some(exchange)
    }))
    .await;
    let (request, answer) = (exchange.request, exchange.answer.unwrap());
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("POST", "/accounts/acct-1/transfers")
    );
    assert_eq!((answer.status, answer.body.as_slice()), (201, b"done".as_slice()));
    let times = [
        before,
        request.began,
        request.sent.unwrap(),
        answer.began,
        answer.received.unwrap(),
        answer.ended.unwrap(),
    ];
    assert!(times.is_sorted(), "{times:?}");
    assert!(
        answer.began >= received,
        "the answer cannot have begun before the resource had the request"
    );
}

#[tokio::test]
async fn a_hold_lets_exactly_its_bytes_through_at_each_byte_of_a_request() {
    let resource = Resource::open().await;
    let path = Path::open(resource.address(), PathOptions::http()).await.unwrap();
    for byte in 0..REQUEST.len() {
        let hold = path.hold(Hold::new(Direction::ToResource).at_byte(byte));
        let mut holder = TcpStream::connect(path.address()).await.unwrap();
        let mut server = resource.accept().await;
        holder.write_all(REQUEST).await.unwrap();
        let kept = soon(hold.engaged()).await;
        assert_eq!(kept.at_byte, byte);
        let number = kept.connection;
        assert_eq!(
            number.value() as usize,
            byte + 1,
            "a hold on the next connection concerns that one only"
        );
        assert_eq!(read_exactly(&mut server, byte).await, &REQUEST[..byte]);
        soon(
            path.wait(|log| (log.connection(number)?.to_resource.received() == REQUEST.len()).then_some(())),
        )
        .await;
        assert!(is_silent(&server), "held at byte {byte}");
        let released = hold.release();
        assert_eq!(
            read_exactly(&mut server, REQUEST.len() - byte).await,
            &REQUEST[byte..]
        );
        let record = path.connection(number).unwrap();
        assert!(record.to_resource.forwarded_at(byte).unwrap() >= released);
        assert!(byte == 0 || record.to_resource.forwarded_at(byte - 1).unwrap() <= released);
    }
}

#[tokio::test]
async fn an_answer_can_be_held_from_its_first_byte_while_other_connections_go_on() {
    let (resource, path, mut holder, mut server) = connected(PathOptions::http()).await;
    let hold = path.hold(Hold::new(Direction::ToHolder).on(only(&path)).from_now());
    holder.write_all(REQUEST).await.unwrap();
    read_exactly(&mut server, REQUEST.len()).await;
    server.write_all(ANSWER).await.unwrap();
    assert_eq!(soon(hold.engaged()).await.at_byte, 0);

    let mut other = TcpStream::connect(path.address()).await.unwrap();
    let mut other_server = resource.accept().await;
    other_server.write_all(ANSWER).await.unwrap();
    assert_eq!(read_exactly(&mut other, ANSWER.len()).await, ANSWER);

    assert!(is_silent(&holder));
    let first = hold.release();
    assert_eq!(read_exactly(&mut holder, ANSWER.len()).await, ANSWER);
    assert_eq!(hold.release(), first, "the time of the release stays");
}

#[tokio::test]
async fn a_hold_from_now_keeps_only_what_has_not_been_handed_on() {
    let (_resource, path, mut holder, mut server) = connected(PathOptions::plain()).await;
    holder.write_all(b"first").await.unwrap();
    assert_eq!(read_exactly(&mut server, 5).await, b"first");
    soon(path.wait(|log| (log.last()?.to_resource.forwarded() == 5).then_some(()))).await;
    let hold = path.hold(Hold::new(Direction::ToResource).on_every().from_now());
    holder.write_all(b"second").await.unwrap();
    assert_eq!(soon(hold.engaged()).await.at_byte, 5);
    assert!(is_silent(&server));
    hold.release();
    assert_eq!(read_exactly(&mut server, 6).await, b"second");
}

#[tokio::test]
async fn a_hold_can_look_for_its_place_in_the_bytes() {
    let (_resource, path, mut holder, mut server) = connected(PathOptions::plain()).await;
    let find = |bytes: &[u8]| bytes.windows(6).position(|window| window == b"COMMIT");
    let hold = path.hold(Hold::new(Direction::ToResource).on(only(&path)).from_found(find));
    holder.write_all(b"BEGIN; UPDATE; COMMIT;").await.unwrap();
    assert_eq!(soon(hold.engaged()).await.at_byte, 15);
    assert_eq!(read_exactly(&mut server, 15).await, b"BEGIN; UPDATE; ");
    assert!(is_silent(&server));
    hold.release();
    assert_eq!(read_exactly(&mut server, 7).await, b"COMMIT;");
}

#[tokio::test]
async fn of_two_holds_both_must_be_released() {
    let (_resource, path, mut holder, mut server) = connected(PathOptions::plain()).await;
    let early = path.hold(Hold::new(Direction::ToResource).on(only(&path)).at_byte(2));
    let late = path.hold(Hold::new(Direction::ToResource).on(only(&path)).at_byte(4));
    holder.write_all(b"abcdef").await.unwrap();
    soon(early.engaged()).await;
    early.release();
    assert_eq!(soon(late.engaged()).await.at_byte, 4);
    assert_eq!(read_exactly(&mut server, 4).await, b"abcd");
    assert!(is_silent(&server));
    late.release();
    assert_eq!(read_exactly(&mut server, 2).await, b"ef");
}

#[tokio::test]
async fn a_pattern_in_two_chunks_is_replaced_and_counted() {
    let (_resource, path, mut holder, mut server) = connected(PathOptions::plain()).await;
    let replacement = Replacement::new(
        Direction::ToResource,
        "lock_timeout = 2000",
        "lock_timeout = 0000",
    )
    .unwrap();
    let replaced = path.replace(replacement);
    holder.write_all(b"SET lock_timeout").await.unwrap();
    assert_eq!(read_exactly(&mut server, 4).await, b"SET ");
    holder.write_all(b" = 2000;").await.unwrap();
    assert_eq!(read_exactly(&mut server, 20).await, b"lock_timeout = 0000;");
    assert_eq!(replaced.fired(), 1);
    let flow = path.connection(only(&path)).unwrap().to_resource;
    assert_eq!(
        (
            flow.replaced()[0].offset,
            flow.replaced()[0].length,
            flow.impatient()
        ),
        (4, 19, 0)
    );
}

#[tokio::test]
async fn a_replacement_that_comes_later_reaches_what_is_held_and_not_what_has_gone() {
    let (_resource, path, mut holder, mut server) = connected(PathOptions::plain()).await;
    let hold = path.hold(Hold::new(Direction::ToResource).on_every().at_byte(6));
    holder.write_all(b"token1;token1;aab token").await.unwrap();
    assert_eq!(read_exactly(&mut server, 6).await, b"token1");
    assert_eq!(soon(hold.engaged()).await.at_byte, 6);
    soon(path.wait(|log| (log.connections()[0].to_resource.received() == 23).then_some(()))).await;
    let first = path.replace(Replacement::new(Direction::ToResource, "aab", "aaa").unwrap());
    let fresher = path.replace(Replacement::new(Direction::ToResource, "token1", "token2").unwrap());
    hold.release();
    assert_eq!(read_exactly(&mut server, 17).await, b";token2;aaa token");
    assert_eq!((first.fired(), fresher.fired()), (1, 1));
    // What stands in the place of a pattern is not searched again, and a rule that was taken back replaces nothing more.
    path.withdraw(&fresher);
    holder.write_all(b";token1;aab;").await.unwrap();
    assert_eq!(read_exactly(&mut server, 12).await, b";token1;aaa;");
    assert_eq!((first.fired(), fresher.fired()), (2, 1));
}

#[tokio::test]
async fn the_beginning_of_a_pattern_goes_on_when_nothing_follows() {
    let (_resource, path, mut holder, mut server) = connected(PathOptions::plain()).await;
    let replaced = path.replace(Replacement::new(Direction::ToResource, "aab", "xyz").unwrap());
    holder.write_all(b"waa").await.unwrap();
    assert_eq!(read_exactly(&mut server, 3).await, b"waa");
    assert_eq!(
        (
            replaced.fired(),
            path.connection(only(&path)).unwrap().to_resource.impatient()
        ),
        (0, 1)
    );
}

#[tokio::test]
async fn a_holders_close_waits_for_the_answer_that_the_resource_owes() {
    let (_resource, path, mut holder, mut server) = connected(PathOptions::http()).await;
    holder.write_all(REQUEST).await.unwrap();
    read_exactly(&mut server, REQUEST.len()).await;
    drop(holder);
    let closed = soon(path.wait(|log| log.last()?.to_resource.close())).await;
    assert_eq!(closed.0, Close::End);
    assert!(is_silent(&server), "the close is kept back");
    let (half, rest) = ANSWER.split_at(10);
    server.write_all(half).await.unwrap();
    soon(path.wait(|log| (log.last()?.to_holder.received() == half.len()).then_some(()))).await;
    assert!(is_silent(&server), "half an answer is none");
    server.write_all(rest).await.unwrap();
    assert_eq!(read_to_end(&mut server).await, b"");
    let record = soon(path.wait(|log| {
        log.last()?
            .to_resource
            .close_passed()
            .map(|_| log.last().cloned())
    }))
    .await
    .unwrap();
    assert_eq!(
        record.to_holder.bytes(),
        ANSWER,
        "the answer to a holder that is gone is on record"
    );
    let answer = http::exchanges(&record).unwrap().remove(0).answer.unwrap();
    assert!(record.to_resource.close_passed() >= answer.received);
}

#[tokio::test]
async fn a_holders_reset_waits_for_the_answer_and_then_reaches_the_resource_as_a_reset() {
    let (_resource, path, mut holder, mut server) = connected(PathOptions::http()).await;
    holder.write_all(REQUEST).await.unwrap();
    read_exactly(&mut server, REQUEST.len()).await;
    holder.set_zero_linger().unwrap();
    drop(holder);
    assert_eq!(
        soon(path.wait(|log| log.last()?.to_resource.close())).await.0,
        Close::Reset
    );
    assert!(is_silent(&server), "the reset is kept back");
    server.write_all(ANSWER).await.unwrap();
    let error = soon(server.read(&mut [0; 1])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let record = soon(path.wait(|log| log.last()?.ended.map(|_| log.last().cloned())))
        .await
        .unwrap();
    assert_eq!(record.to_holder.bytes(), ANSWER);
}

#[tokio::test]
async fn an_answer_to_a_holder_that_is_gone_is_recorded_to_its_last_byte() {
    let options = PathOptions {
        window_bytes: 1024,
        ..PathOptions::http()
    };
    let (_resource, path, mut holder, mut server) = connected(options).await;
    holder.write_all(REQUEST).await.unwrap();
    read_exactly(&mut server, REQUEST.len()).await;
    holder.set_zero_linger().unwrap();
    drop(holder);
    soon(path.wait(|log| log.last()?.to_resource.close())).await;
    let body = vec![b'x'; 1 << 20];
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    soon(server.write_all(&[head.as_bytes(), &body].concat()))
        .await
        .unwrap();
    let record = soon(path.wait(|log| log.last()?.ended.map(|_| log.last().cloned())))
        .await
        .unwrap();
    let answer = http::exchanges(&record).unwrap().remove(0).answer.unwrap();
    assert_eq!((answer.complete, answer.body, answer.ended), (true, body, None));
    assert!(record.to_holder.broken().is_some());
}

#[tokio::test]
async fn a_close_between_exchanges_passes_at_once() {
    let (_resource, _path, mut holder, mut server) = connected(PathOptions::http()).await;
    holder.write_all(REQUEST).await.unwrap();
    read_exactly(&mut server, REQUEST.len()).await;
    server.write_all(ANSWER).await.unwrap();
    read_exactly(&mut holder, ANSWER.len()).await;
    drop(holder);
    assert_eq!(read_to_end(&mut server).await, b"");
}

#[tokio::test]
async fn a_close_can_be_let_by_hand_or_by_another_rule() {
    let options = PathOptions {
        close_rule: CloseRule::WhenLet,
        ..PathOptions::plain()
    };
    let (resource, path, holder, mut server) = connected(options).await;
    drop(holder);
    soon(path.wait(|log| log.last()?.to_resource.close())).await;
    assert!(is_silent(&server));
    path.let_close(only(&path));
    assert_eq!(read_to_end(&mut server).await, b"");

    drop(TcpStream::connect(path.address()).await.unwrap());
    let mut second = resource.accept().await;
    soon(path.wait(|log| log.connections().get(1)?.to_resource.close())).await;
    assert!(is_silent(&second));
    path.set_close_rule(CloseRule::AtOnce);
    assert_eq!(read_to_end(&mut second).await, b"");
}

#[tokio::test]
async fn each_half_closes_by_itself() {
    let (_resource, path, mut holder, mut server) = connected(PathOptions::plain()).await;
    holder.write_all(b"question").await.unwrap();
    holder.shutdown().await.unwrap();
    assert_eq!(read_to_end(&mut server).await, b"question");
    server.write_all(b"answer").await.unwrap();
    drop(server);
    assert_eq!(read_to_end(&mut holder).await, b"answer");
    soon(path.wait(|log| log.last()?.ended)).await;
}

#[tokio::test]
async fn a_reset_by_the_resource_reaches_the_holder_after_the_bytes_before_it() {
    let (_resource, path, mut holder, mut server) = connected(PathOptions::http()).await;
    server.write_all(b"HTTP").await.unwrap();
    assert_eq!(read_exactly(&mut holder, 4).await, b"HTTP");
    server.set_zero_linger().unwrap();
    drop(server);
    let error = soon(holder.read(&mut [0; 1])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(
        path.connection(only(&path)).unwrap().to_holder.close().unwrap().0,
        Close::Reset
    );
}

#[tokio::test]
async fn connections_go_to_the_upstream_that_is_set_when_they_are_accepted() {
    let (first, path, mut holder, mut server) = connected(PathOptions::plain()).await;
    let second = Resource::open().await;
    path.route_to(second.address());
    let mut later = TcpStream::connect(path.address()).await.unwrap();
    let mut later_server = second.accept().await;
    later.write_all(b"to two").await.unwrap();
    assert_eq!(read_exactly(&mut later_server, 6).await, b"to two");
    holder.write_all(b"to one").await.unwrap();
    assert_eq!(read_exactly(&mut server, 6).await, b"to one");
    let upstreams = path.read(|log| {
        log.connections()
            .iter()
            .map(|one| one.upstream)
            .collect::<Vec<_>>()
    });
    assert_eq!(upstreams, [first.address(), second.address()]);
}

#[tokio::test]
async fn an_upstream_that_is_not_there_resets_the_holder() {
    let resource = Resource::open().await;
    let gone = resource.address();
    drop(resource);
    let path = Path::open(gone, PathOptions::http()).await.unwrap();
    let mut holder = TcpStream::connect(path.address()).await.unwrap();
    assert_eq!(
        soon(holder.read(&mut [0; 1])).await.unwrap_err().kind(),
        ErrorKind::ConnectionReset
    );
    let why = soon(path.wait(|log| log.last()?.unreachable.clone())).await;
    assert!(why.contains("refused"), "{why}");
}

#[tokio::test]
async fn bytes_unread_by_the_resource_are_counted_before_and_after_it_accepts() {
    let resource = Resource::open().await;
    let path = Path::open(resource.address(), PathOptions::http()).await.unwrap();
    let mut holder = TcpStream::connect(path.address()).await.unwrap();
    let number = soon(path.wait(|log| log.last()?.upstream_local.map(|_| log.last().unwrap().number))).await;
    assert_eq!(path.unread_by_resource(number).unwrap(), 0);
    holder.write_all(REQUEST).await.unwrap();
    let wanted = REQUEST.len() as u64;
    let seen = path
        .wait_unread(number, wanted, Duration::from_secs(10))
        .await
        .unwrap();
    let sent = path
        .connection(number)
        .unwrap()
        .to_resource
        .forwarded_at(0)
        .unwrap();
    assert!(seen >= sent);

    let mut server = resource.accept().await;
    read_exactly(&mut server, 10).await;
    assert_eq!(path.unread_by_resource(number).unwrap(), wanted - 10);
    let short = path
        .wait_unread(number, wanted, Duration::from_millis(5))
        .await
        .unwrap_err();
    assert!(
        matches!(short, UnreadError::TooFew { seen, .. } if seen == wanted - 10),
        "{short}"
    );
    drop((server, holder));
    soon(path.wait(|log| log.last()?.ended)).await;
    assert!(matches!(
        path.unread_by_resource(number),
        Err(UnreadError::NoSocket { .. })
    ));
}

#[tokio::test]
async fn a_resource_that_takes_nothing_stops_its_sender_and_nobody_else() {
    let options = PathOptions {
        window_bytes: 64 * 1024,
        ..PathOptions::plain()
    };
    let (resource, path, holder, mut server) = connected(options).await;
    let hold = path.hold(Hold::new(Direction::ToResource).on(only(&path)).from_now());
    let sent = flood(&holder).await;
    let received = path.read(|log| log.last().unwrap().to_resource.received());
    assert!(
        received < 64 * 1024 + 64 * 1024,
        "the path took {received} bytes of {sent}"
    );

    let mut other = TcpStream::connect(path.address()).await.unwrap();
    let mut other_server = resource.accept().await;
    other.write_all(b"hello").await.unwrap();
    assert_eq!(read_exactly(&mut other_server, 5).await, b"hello");

    hold.release();
    assert_eq!(read_exactly(&mut server, sent).await, vec![b'x'; sent]);
}

/// Writes until the kernel has taken nothing for a while, and returns how much it took.
async fn flood(stream: &TcpStream) -> usize {
    let mut sent = 0;
    let chunk = [b'x'; 16 * 1024];
    while tokio::time::timeout(Duration::from_millis(200), stream.writable())
        .await
        .is_ok()
    {
        match stream.try_write(&chunk) {
            Ok(count) => sent += count,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    sent
}

#[tokio::test]
async fn dropping_a_path_ends_its_connections_and_its_tasks() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let (_resource, path, mut holder, mut server) = connected(PathOptions::http()).await;
    let hold = path.hold(Hold::new(Direction::ToResource).on(only(&path)));
    holder.write_all(REQUEST).await.unwrap();
    soon(hold.engaged()).await;
    let address = path.address();
    assert!(tasks() > before);
    drop(path);
    assert_eq!(read_to_end(&mut holder).await, b"");
    assert_eq!(read_to_end(&mut server).await, b"", "held bytes stay held");
    assert_eq!(
        TcpStream::connect(address).await.unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
    assert_eq!(tasks(), before);
}
