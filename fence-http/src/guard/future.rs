use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use fence_core::Receipt;
use http::header::CONNECTION;
use http::{HeaderValue, Method, Response, StatusCode, Version};
use http_body::Body;
use pin_project_lite::pin_project;

use super::body::{Drain, Drained, Rest};
use super::count::Counted;
use super::layer::Settings;
use super::presented::Presented;
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
        Passed { #[pin] inner: F, watch: Option<Watch<B>> },
        Answering { response: Option<Response<R>>, drain: Option<Drain<B>>, version: Version },
    }
}

/// What is looked at when a request was answered.
pub(super) struct Watch<B> {
    /// Where there was a body to be read.
    pub(super) rest: Option<Rest<B>>,
    pub(super) waits_to_go_on: bool,
    pub(super) check: Option<Check>,
    pub(super) settings: Arc<Settings>,
    pub(super) version: Version,
}

/// Strict mode's question.
pub(super) struct Check {
    pub(super) presented: Presented,
    pub(super) method: Method,
    pub(super) observed: bool,
}

impl<F, B: Body + Unpin, R: From<Bytes>> ResponseFuture<F, B, R> {
    pub(super) fn passed(inner: F, watch: Watch<B>) -> Self {
        ResponseFuture {
            state: State::Passed {
                inner,
                watch: Some(watch),
            },
        }
    }

    /// Answers, after what is to be read of the body.
    pub(super) fn answered(response: Response<R>, drain: Option<Drain<B>>, version: Version) -> Self {
        ResponseFuture {
            state: State::Answering {
                response: Some(response),
                drain,
                version,
            },
        }
    }
}

impl<F, B, R, E> Future for ResponseFuture<F, B, R>
where
    F: Future<Output = Result<Response<R>, E>>,
    B: Body + Send + Unpin + 'static,
    R: From<Bytes>,
{
    type Output = Result<Response<R>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                StateProj::Passed { inner, watch } => {
                    let response = ready!(inner.poll(cx))?;
                    let watch = watch.take().expect("a future is not polled after its end");
                    let response = match &watch.check {
                        Some(check) => check.receipt(response, &watch.settings),
                        None => response,
                    };
                    // The inner future goes first: the body may still lie in it.
                    state.set(State::Answering {
                        response: None,
                        drain: None,
                        version: watch.version,
                    });
                    let unread = watch.rest.and_then(|rest| {
                        let unread = rest.take();
                        watch.settings.spare.put(rest);
                        unread
                    });
                    let drain =
                        unread.map(|unread| unread.drain(watch.waits_to_go_on, watch.settings.linger));
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
    fn receipt<R: From<Bytes>>(&self, response: Response<R>, settings: &Settings) -> Response<R> {
        let receipt = response.extensions().get::<Receipt>();
        let accounted = receipt.is_some_and(|receipt| self.presented.is(receipt.claim()));
        if accounted || response.status() >= StatusCode::BAD_REQUEST {
            return response;
        }
        let route = self.presented.route();
        let rejection = Rejection::NoReceipt {
            method: self.method.clone(),
            route: route.to_owned(),
            status: response.status(),
        };
        if self.observed {
            count(settings, &rejection, Some(route), true);
            return response;
        }
        refuse(rejection, Some(route), settings)
    }
}

/// The answer to a rejection, counted.
pub(super) fn refuse<R: From<Bytes>>(
    rejection: Rejection,
    route: Option<&str>,
    settings: &Settings,
) -> Response<R> {
    let problem = count(settings, &rejection, route, false);
    let worded = settings.answer.as_ref();
    let mut response = match worded.and_then(|answer| answer.word(&rejection, &problem)) {
        Some(response) => {
            let mut response = response.map(R::from);
            response.extensions_mut().insert(problem);
            response
        }
        None => problem.into_response(),
    };
    response.extensions_mut().insert(rejection);
    response
}

/// Counts a rejection, and makes its problem.
pub(super) fn count(
    settings: &Settings,
    rejection: &Rejection,
    route: Option<&str>,
    observed: bool,
) -> Problem {
    let problem = Problem::from(rejection);
    settings.counts.add(Counted {
        route: route.map(str::to_owned),
        kind: problem.kind(),
        observed,
    });
    problem
}
