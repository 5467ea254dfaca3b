use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use fence_core::{Claim, Receipt};
use http::header::CONNECTION;
use http::{HeaderValue, Method, Response, StatusCode, Version};
use http_body::Body;
use pin_project_lite::pin_project;

use super::body::{Drain, Drained, Rest};
use super::layer::Linger;
use super::rejection::Rejection;
use crate::problem::Problem;

pin_project! {
    /// Response future of [`Guard`](super::Guard).
    pub struct ResponseFuture<F, B, R> {
        #[pin]
        state: State<F, B, R>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, B, R> {
        Passed { #[pin] inner: F },
        Guarded { #[pin] inner: F, watch: Option<Watch<B>> },
        Answering { response: Option<Response<R>>, drain: Option<Drain<B>>, version: Version },
    }
}

/// What is looked at when a guarded request was answered.
pub(super) struct Watch<B> {
    pub(super) rest: Rest<B>,
    pub(super) expects_continue: bool,
    pub(super) check: Option<Check>,
    pub(super) linger: Linger,
    pub(super) version: Version,
}

/// Strict mode's question.
pub(super) struct Check {
    pub(super) claim: Claim,
    pub(super) method: Method,
    pub(super) route: String,
}

impl<F, B: Body, R: From<Bytes>> ResponseFuture<F, B, R> {
    pub(super) fn passed(inner: F) -> Self {
        ResponseFuture {
            state: State::Passed { inner },
        }
    }

    pub(super) fn guarded(inner: F, watch: Watch<B>) -> Self {
        ResponseFuture {
            state: State::Guarded {
                inner,
                watch: Some(watch),
            },
        }
    }

    pub(super) fn refused(
        rejection: Rejection,
        body: Option<Pin<Box<B>>>,
        linger: Linger,
        version: Version,
    ) -> Self {
        ResponseFuture {
            state: State::Answering {
                response: Some(answer(rejection)),
                drain: body.map(|body| Drain::new(body, linger)),
                version,
            },
        }
    }
}

impl<F, B, R, E> Future for ResponseFuture<F, B, R>
where
    F: Future<Output = Result<Response<R>, E>>,
    B: Body,
    R: From<Bytes>,
{
    type Output = Result<Response<R>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                StateProj::Passed { inner } => return inner.poll(cx),
                StateProj::Guarded { inner, watch } => {
                    let response = ready!(inner.poll(cx))?;
                    let watch = watch.take().expect("a future is not polled after its end");
                    let response = match &watch.check {
                        Some(check) => check.receipt(response),
                        None => response,
                    };
                    // The inner future goes first: the body may still lie in it.
                    state.set(State::Answering {
                        response: None,
                        drain: None,
                        version: watch.version,
                    });
                    let refused = response.status() >= StatusCode::BAD_REQUEST;
                    let drain = watch
                        .rest
                        .take()
                        .filter(|unread| refused && (unread.begun || !watch.expects_continue))
                        .map(|unread| Drain::new(unread.body, watch.linger));
                    state.set(State::Answering {
                        response: Some(response),
                        drain,
                        version: watch.version,
                    });
                }
                StateProj::Answering {
                    response,
                    drain,
                    version,
                } => {
                    let drained = match drain {
                        Some(drain) => ready!(drain.poll(cx)),
                        None => Drained::Whole,
                    };
                    *drain = None;
                    let mut response = response.take().expect("a future is not polled after its end");
                    // HTTP/2 has no such header: it ends the stream, not the connection.
                    if drained == Drained::GivenUp && *version < Version::HTTP_2 {
                        response
                            .headers_mut()
                            .insert(CONNECTION, HeaderValue::from_static("close"));
                    }
                    return Poll::Ready(Ok(response));
                }
            }
        }
    }
}

impl Check {
    /// The response, or the alarm in its place.
    fn receipt<R: From<Bytes>>(&self, response: Response<R>) -> Response<R> {
        let receipt = response.extensions().get::<Receipt>();
        let accounted = receipt.is_some_and(|receipt| *receipt.claim() == self.claim);
        if accounted || response.status() >= StatusCode::BAD_REQUEST {
            return response;
        }
        answer(Rejection::NoReceipt {
            method: self.method.clone(),
            route: self.route.clone(),
            status: response.status(),
        })
    }
}

fn answer<R: From<Bytes>>(rejection: Rejection) -> Response<R> {
    let mut response = Problem::from(&rejection).into_response();
    response.extensions_mut().insert(rejection);
    response
}
