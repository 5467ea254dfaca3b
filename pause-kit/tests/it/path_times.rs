//! The order of a path's times, when the machine has much else to do.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pause_kit::path::{Path, PathOptions};

/// Exchanges on one connection: enough that a stamp on the wrong side of a write is met many times.
const EXCHANGES: usize = 4_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_begins_before_the_answer_that_its_sender_had_read() {
    let resource = TcpListener::bind("127.0.0.1:0").unwrap();
    let path = Path::open(resource.local_addr().unwrap(), PathOptions::plain())
        .await
        .unwrap();
    let address = path.address();
    let over = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    let answering = std::thread::spawn(move || {
        let (mut server, _) = resource.accept().unwrap();
        server.set_nodelay(true).unwrap();
        (0..EXCHANGES)
            .map(|_| {
                server.read_exact(&mut [0]).unwrap();
                let read = Instant::now();
                server.write_all(b"a").unwrap();
                read
            })
            .collect::<Vec<_>>()
    });
    let asking = std::thread::spawn(move || {
        let mut holder = TcpStream::connect(address).unwrap();
        holder.set_nodelay(true).unwrap();
        let read = (0..EXCHANGES)
            .map(|_| {
                holder.write_all(b"q").unwrap();
                holder.read_exact(&mut [0]).unwrap();
                Instant::now()
            })
            .collect::<Vec<_>>();
        (holder, read)
    });
    let (_holder, read) = tokio::task::spawn_blocking(|| asking.join().unwrap())
        .await
        .unwrap();
    let taken = answering.join().unwrap();
    over.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|thread| thread.join().unwrap());

    let record = path
        .wait(|log| {
            let last = log.last()?;
            (last.to_holder.forwarded() == EXCHANGES).then(|| last.clone())
        })
        .await;
    let at = |flow: &pause_kit::path::Flow, offset: usize| {
        (
            flow.received_at(offset).unwrap(),
            flow.forwarded_at(offset).unwrap(),
        )
    };
    for number in 0..EXCHANGES {
        let (asked, handed_on) = at(&record.to_resource, number);
        let (answered, ended) = at(&record.to_holder, number);
        assert!(
            asked <= handed_on && handed_on <= taken[number],
            "request {number}"
        );
        assert!(handed_on <= answered && answered <= ended, "answer {number}");
        assert!(ended <= read[number], "answer {number} was read before it ended");
        if let Some(next) = record.to_resource.received_at(number + 1) {
            let ahead = ended.saturating_duration_since(next);
            assert!(
                ahead.is_zero(),
                "request {} began {ahead:?} before the answer that its sender had read",
                number + 1
            );
        }
    }
}
