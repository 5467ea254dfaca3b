use std::any::Any;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use super::layer::Linger;

/// The request's body as the inner service sees it: the same frames, never buffered. What the service leaves unread goes
/// back to the layer.
#[derive(Debug)]
pub struct GuardedBody<B> {
    body: Option<B>,
    /// Whether reading began, at which a server tells a waiting client to go on.
    begun: bool,
    ended: bool,
    rest: Option<Rest<B>>,
}

impl<B> GuardedBody<B> {
    pub(super) fn new(body: B, rest: Option<Rest<B>>) -> GuardedBody<B> {
        GuardedBody {
            body: Some(body),
            begun: false,
            ended: false,
            rest,
        }
    }
}

impl<B: Body + Unpin> Body for GuardedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.get_mut();
        let Some(body) = this.body.as_mut() else {
            return Poll::Ready(None);
        };
        this.begun = true;
        let frame = ready!(Pin::new(body).poll_frame(cx));
        this.ended = !matches!(frame, Some(Ok(_)));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

// Nothing in it is pinned: the body within is used only where it is `Unpin`.
impl<B> Unpin for GuardedBody<B> {}

impl<B> Drop for GuardedBody<B> {
    fn drop(&mut self) {
        if let (Some(rest), Some(body), false) = (self.rest.take(), self.body.take(), self.ended) {
            *rest.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Unread {
                body,
                begun: self.begun,
            });
        }
    }
}

/// Where a dropped body leaves what was not read of it.
#[derive(Debug)]
pub(super) struct Rest<B>(Arc<Mutex<Option<Unread<B>>>>);

/// Places that were used and are empty again, kept so that a request costs no allocation for one.
#[derive(Debug, Default)]
pub(super) struct Spare(Mutex<Vec<Arc<dyn Any + Send + Sync>>>);

impl Spare {
    /// At most so many are kept.
    const MOST: usize = 64;

    pub(super) fn take<B: Send + 'static>(&self) -> Rest<B> {
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        // One of another kind of body is let go.
        let place = spare.and_then(|spare| spare.downcast().ok());
        Rest(place.unwrap_or_default())
    }

    /// Takes a place back, unless its body is still about.
    pub(super) fn put<B: Send + 'static>(&self, rest: Rest<B>) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::strong_count(&rest.0) == 1 && spare.len() < Spare::MOST {
            spare.push(rest.0);
        }
    }
}

impl<B> Rest<B> {
    pub(super) fn share(&self) -> Rest<B> {
        Rest(Arc::clone(&self.0))
    }

    /// What was left, if the body was dropped before its end.
    pub(super) fn take(&self) -> Option<Unread<B>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[derive(Debug)]
pub(super) struct Unread<B> {
    pub(super) body: B,
    pub(super) begun: bool,
}

impl<B: Body + Unpin> Unread<B> {
    /// How the rest of it is got rid of. A client that waits to be told to go on is not told, so nothing of its body is read.
    pub(super) fn drain(self, waits_to_go_on: bool, linger: Linger) -> Drain<B> {
        let held_back = waits_to_go_on && !self.begun;
        Drain {
            body: self.body,
            bytes_left: if held_back { 0 } else { linger.max_bytes },
            max_time: linger.max_time,
            timeout: None,
        }
    }
}

/// Reads a body and throws it away, within bounds.
#[derive(Debug)]
pub(super) struct Drain<B> {
    body: B,
    bytes_left: u64,
    max_time: Duration,
    /// Begun at the first wait: most bodies have arrived by then, and need none.
    timeout: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Drained {
    /// To its end, or the client is gone.
    Whole,
    /// A bound was reached first.
    GivenUp,
}

impl<B: Body + Unpin> Drain<B> {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Drained> {
        loop {
            if self.body.is_end_stream() {
                return Poll::Ready(Drained::Whole);
            }
            if self.body.size_hint().lower() > self.bytes_left || self.bytes_left == 0 {
                return Poll::Ready(Drained::GivenUp);
            }
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    let bytes = frame.data_ref().map_or(0, |data| data.remaining() as u64);
                    self.bytes_left = self.bytes_left.saturating_sub(bytes);
                }
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(Drained::Whole),
                Poll::Pending => {
                    let max_time = self.max_time;
                    let timeout = self
                        .timeout
                        .get_or_insert_with(|| Box::pin(tokio::time::sleep(max_time)));
                    return timeout.as_mut().poll(cx).map(|()| Drained::GivenUp);
                }
            }
        }
    }
}
