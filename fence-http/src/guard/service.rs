use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::EXPECT;
use http::request::Parts;
use http::{HeaderValue, Request, Response, Version};
use http_body::Body;
use tower::Service;

use super::body::{GuardedBody, Rest, Unread};
use super::future::{Check, ResponseFuture, Watch, count, refuse};
use super::layer::Settings;
use super::presented::Presented;
use super::rejection::Rejection;
use super::rule::{Found, Rules};
use crate::coverage::{Probe, Probed};

/// Service that requires a fencing token of every mutating request. See the [module](crate::guard).
#[derive(Clone, Debug)]
pub struct Guard<S> {
    inner: S,
    rules: Arc<Rules>,
    settings: Arc<Settings>,
}

/// What becomes of a request.
enum Verdict {
    /// It needs no token.
    Free,
    /// It presents this; `observed` where nothing is refused.
    Presented { presented: Presented, observed: bool },
    /// It is not let in, or only counted where that is `observed`.
    Rejected {
        rejection: Rejection,
        rule: Option<usize>,
        observed: bool,
    },
}

impl<S> Guard<S> {
    pub(super) fn new(inner: S, rules: Arc<Rules>, settings: Arc<Settings>) -> Guard<S> {
        Guard {
            inner,
            rules,
            settings,
        }
    }

    fn examine(&self, head: &Parts) -> Verdict {
        let observe = self.settings.observe;
        let path = head.uri.path();
        match self.rules.find(&head.method, path) {
            Found::Free => Verdict::Free,
            Found::Rule(number, rule) => {
                let observed = observe || rule.observed;
                match self.rules.present(number, head) {
                    Ok(presented) => Verdict::Presented { presented, observed },
                    Err(rejection) => Verdict::Rejected {
                        rejection,
                        rule: Some(number),
                        observed,
                    },
                }
            }
            Found::Nothing => Verdict::Rejected {
                rejection: Rejection::NoRule {
                    method: head.method.clone(),
                    path: path.to_owned(),
                },
                rule: None,
                observed: observe,
            },
        }
    }

    fn route(&self, rule: Option<usize>) -> Option<&str> {
        rule.map(|number| self.rules.rule(number).pattern.text.as_str())
    }
}

impl<S, ReqB, ResB> Service<Request<ReqB>> for Guard<S>
where
    S: Service<Request<GuardedBody<ReqB>>, Response = Response<ResB>>,
    ReqB: Body + Send + Unpin + 'static,
    ResB: From<Bytes>,
{
    type Response = Response<ResB>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, ReqB, ResB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReqB>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        let verdict = self.examine(&head);
        if head.extensions.get::<Probe>().is_some() {
            let response = Probed::from(&verdict).into_response();
            return ResponseFuture::answered(response, None, head.version);
        }
        match verdict {
            Verdict::Free => self.pass(head, body, None),
            Verdict::Rejected {
                rejection,
                rule,
                observed: true,
            } => {
                count(&self.settings, &rejection, self.route(rule), true);
                self.pass(head, body, None)
            }
            Verdict::Rejected { rejection, rule, .. } => {
                let response = refuse(rejection, self.route(rule), &self.settings);
                let unread = Unread { body, begun: false };
                let drain = unread.drain(waits_to_go_on(&head), self.settings.linger);
                ResponseFuture::answered(response, Some(drain), head.version)
            }
            Verdict::Presented { presented, observed } => {
                let check = self.settings.strict.then(|| Check {
                    presented: presented.clone(),
                    method: head.method.clone(),
                    observed,
                });
                head.extensions.insert(presented);
                self.pass(head, body, check)
            }
        }
    }
}

impl<S> Guard<S> {
    /// Hands the request on, and keeps an eye on what is left of its body.
    fn pass<ReqB, ResB>(
        &mut self,
        head: Parts,
        body: ReqB,
        check: Option<Check>,
    ) -> ResponseFuture<S::Future, ReqB, ResB>
    where
        S: Service<Request<GuardedBody<ReqB>>, Response = Response<ResB>>,
        ReqB: Body + Send + Unpin + 'static,
        ResB: From<Bytes>,
    {
        // A body that is over has no rest.
        let rest = (!body.is_end_stream()).then(|| self.settings.spare.take());
        let watch = Watch {
            rest: rest.as_ref().map(Rest::share),
            waits_to_go_on: waits_to_go_on(&head),
            check,
            settings: Arc::clone(&self.settings),
            version: head.version,
        };
        let request = Request::from_parts(head, GuardedBody::new(body, rest));
        ResponseFuture::passed(self.inner.call(request), watch)
    }
}

/// Whether the client may hold its body back until it is told to go on. Other versions of HTTP tell nobody, and other
/// expectations are none.
fn waits_to_go_on(head: &Parts) -> bool {
    let expects = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    head.version == Version::HTTP_11 && head.headers.get_all(EXPECT).iter().any(expects)
}

impl From<&Verdict> for Probed {
    fn from(verdict: &Verdict) -> Probed {
        match verdict {
            Verdict::Free => Probed::Exempt,
            Verdict::Presented { observed: true, .. } | Verdict::Rejected { observed: true, .. } => {
                Probed::Observed
            }
            Verdict::Presented { .. } | Verdict::Rejected { rule: Some(_), .. } => Probed::Guarded,
            Verdict::Rejected { rule: None, .. } => Probed::Closed,
        }
    }
}
