//! Laws of the path, for chunks and patterns of any kind.

use pause_kit::path::{CloseRule, Direction, Hold, Path, PathOptions, Replacement};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::wait::soon;

/// Bytes of a small alphabet, so that patterns match, overlap and break off often.
fn any_bytes(size: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b')], size)
}

fn any_chunks() -> impl Strategy<Value = Vec<Vec<u8>>> {
    proptest::collection::vec(any_bytes(1..12), 1..8)
}

/// Patterns with what takes their place, in capitals, so that it is seen where one fired.
fn any_rules() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    let rule = any_bytes(1..6).prop_map(|pattern| {
        let with = pattern.to_ascii_uppercase().into_iter().rev().collect();
        (pattern, with)
    });
    proptest::collection::vec(rule, 0..3)
}

/// What the rules make of the whole stream, said as simply as can be.
fn replaced(stream: &[u8], rules: &[(Vec<u8>, Vec<u8>)]) -> (Vec<u8>, usize) {
    let (mut out, mut fired) = (Vec::new(), 0);
    while out.len() < stream.len() {
        let rest = &stream[out.len()..];
        match rules.iter().find(|(pattern, _)| rest.starts_with(pattern)) {
            Some((_, with)) => {
                out.extend_from_slice(with);
                fired += 1;
            }
            None => out.push(rest[0]),
        }
    }
    (out, fired)
}

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(soon(test))
}

/// A path with a connection through it: the path, the holder's end, the resource's end.
async fn connected() -> (Path, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = PathOptions {
        close_rule: CloseRule::AtOnce,
        window_bytes: 16,
    };
    let path = Path::open(listener.local_addr().unwrap(), options).await.unwrap();
    let holder = TcpStream::connect(path.address()).await.unwrap();
    let (resource, _) = listener.accept().await.unwrap();
    (path, holder, resource)
}

/// Sends chunk by chunk, each seen by the path as an arrival of its own, then ends the direction.
async fn send(path: &Path, direction: Direction, stream: &mut TcpStream, chunks: &[Vec<u8>]) {
    let mut sent = 0;
    for chunk in chunks {
        stream.write_all(chunk).await.unwrap();
        sent += chunk.len();
        path.wait(|log| (log.last()?.flow(direction).received() == sent).then_some(()))
            .await;
    }
    stream.shutdown().await.unwrap();
}

async fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn both_directions_come_out_as_they_went_in_but_for_what_is_replaced(
        asked in any_chunks(),
        answered in any_chunks(),
        rules in any_rules(),
    ) {
        run(async {
            let (path, mut holder, mut resource) = connected().await;
            for (pattern, with) in &rules {
                path.replace(Replacement::new(Direction::ToResource, pattern.clone(), with.clone()).unwrap());
            }
            let (expected, fired) = replaced(&asked.concat(), &rules);
            let question = async {
                send(&path, Direction::ToResource, &mut holder, &asked).await;
                receive(&mut holder).await
            };
            let reply = async {
                let got = receive(&mut resource).await;
                send(&path, Direction::ToHolder, &mut resource, &answered).await;
                got
            };
            let (got_answer, got_question) = tokio::join!(question, reply);
            assert_eq!(String::from_utf8(got_question), String::from_utf8(expected.clone()));
            assert_eq!(got_answer, answered.concat());

            let record = path.read(|log| log.last().cloned()).unwrap();
            assert_eq!(record.to_resource.bytes(), expected);
            assert_eq!(record.to_resource.replaced().len(), fired);
            for direction in Direction::BOTH {
                let flow = record.flow(direction);
                assert_eq!(flow.forwarded(), flow.received());
                let mut before = None;
                for offset in 0..flow.received() {
                    let times = (flow.received_at(offset), flow.forwarded_at(offset));
                    assert!(times.0 <= times.1, "handed on before it came, at {offset}");
                    assert!(before <= Some(times), "out of order at {offset}");
                    before = Some(times);
                }
                assert_eq!(flow.received_at(flow.received()), None);
            }
        });
    }

    #[test]
    fn a_hold_keeps_a_prefix_whatever_the_chunks(chunks in any_chunks(), at in 0_usize..90) {
        let whole = chunks.concat();
        // The path keeps its window and one read more; what is held beyond stays in the kernel.
        run(async {
            let (path, mut holder, mut resource) = connected().await;
            let number = path.read(|log| log.last().map(|one| one.number)).unwrap();
            let byte = at % whole.len();
            let hold = path.hold(Hold::new(Direction::ToResource).on(number).at_byte(byte));
            for chunk in &chunks {
                holder.write_all(chunk).await.unwrap();
                tokio::task::yield_now().await;
            }
            holder.shutdown().await.unwrap();
            assert_eq!(hold.engaged().await.at_byte, byte);
            let mut first = vec![0; byte];
            resource.read_exact(&mut first).await.unwrap();
            assert_eq!(path.connection(number).unwrap().to_resource.forwarded(), byte);
            hold.release();
            first.extend(receive(&mut resource).await);
            assert_eq!(first, whole);
        });
    }
}
