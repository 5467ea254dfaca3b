//! Signals that are passed on to the command.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What arrives from here on, in place of what it would do.
pub(super) struct Signals(Vec<(SignalKind, Signal)>);

impl Signals {
    pub(super) fn listen() -> io::Result<Signals> {
        let kinds = [
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::quit(),
            SignalKind::terminate(),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
            SignalKind::window_change(),
        ];
        let listening = kinds.into_iter().map(|kind| Ok((kind, signal(kind)?)));
        listening.collect::<io::Result<_>>().map(Signals)
    }

    /// The number of the next one.
    pub(super) async fn next(&mut self) -> i32 {
        poll_fn(|cx| {
            for (kind, listening) in &mut self.0 {
                if listening.poll_recv(cx).is_ready() {
                    return Poll::Ready(kind.as_raw_value());
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The number of the next one that ends a command which does not handle it.
    pub(super) async fn ends(&mut self) -> u8 {
        loop {
            let number = self.next().await;
            if number != SignalKind::window_change().as_raw_value() {
                return u8::try_from(number).unwrap_or(u8::MAX);
            }
        }
    }
}
