use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use fence_core::Claim;
use http::header::EXPECT;
use http::{Extensions, Method, Request, Response};
use http_body::Body;
use tower::Service;

use super::body::{GuardedBody, Rest};
use super::future::{Check, ResponseFuture, Watch};
use super::layer::Settings;
use super::rejection::Rejection;
use super::rule::{Found, Rules};
use crate::header::FencingToken;

/// The claim that the layer put into a request's extensions.
///
/// It is what the request presents, no more: the write's own transaction decides.
///
/// # Errors
///
/// [`NoClaim`] when no layer did, so that a handler which was mounted without its guard fails closed.
pub fn claim(extensions: &Extensions) -> Result<&Claim, NoClaim> {
    extensions.get().ok_or(NoClaim)
}

/// The request carries no claim: its route is exempt, its method is safe, or no [`FenceLayer`](super::FenceLayer) stands
/// before it. Mend the service; do not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no fencing layer left a claim in this request")]
pub struct NoClaim;

/// Service that requires a fencing token of every mutating request. See the [module](crate::guard).
#[derive(Clone, Debug)]
pub struct Guard<S> {
    inner: S,
    rules: Arc<Rules>,
    settings: Settings,
}

impl<S> Guard<S> {
    pub(super) fn new(inner: S, rules: Arc<Rules>, settings: Settings) -> Guard<S> {
        Guard {
            inner,
            rules,
            settings,
        }
    }

    /// What the request claims, and the pattern of its rule; nothing when it needs no token.
    fn examine<B>(&self, request: &Request<B>) -> Result<Option<(Claim, String)>, Rejection> {
        if is_safe(request.method()) {
            return Ok(None);
        }
        let path = request.uri().path();
        let rule = match self.rules.find(request.method(), path) {
            Found::Exempt => return Ok(None),
            Found::Rule(rule) => rule,
            Found::Nothing => {
                return Err(Rejection::NoRule {
                    method: request.method().clone(),
                    path: path.to_owned(),
                });
            }
        };
        let header = FencingToken::from_headers(request.headers()).map_err(Rejection::Header)?;
        let claim = Claim {
            class: rule.class.clone(),
            key: rule.key(path, request.headers())?,
            token: header.token,
            grant_id: header.grant_id,
        };
        Ok(Some((claim, rule.pattern.text.clone())))
    }
}

impl<S, ReqB, ResB> Service<Request<ReqB>> for Guard<S>
where
    S: Service<Request<GuardedBody<ReqB>>, Response = Response<ResB>>,
    ReqB: Body,
    ResB: From<Bytes>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, ReqB, ResB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<ReqB>) -> Self::Future {
        let linger = self.settings.linger;
        let version = request.version();
        let expects_continue = request.headers().contains_key(EXPECT);
        match self.examine(&request) {
            Err(rejection) => {
                let body = (!expects_continue).then(|| Box::pin(request.into_body()));
                ResponseFuture::refused(rejection, body, linger, version)
            }
            Ok(None) => {
                let request = request.map(|body| GuardedBody::new(body, None));
                ResponseFuture::passed(self.inner.call(request))
            }
            Ok(Some((claim, route))) => {
                let check = self.settings.strict.then(|| Check {
                    claim: claim.clone(),
                    method: request.method().clone(),
                    route,
                });
                request.extensions_mut().insert(claim);
                let rest = Rest::new();
                let watch = Watch {
                    rest: rest.share(),
                    expects_continue,
                    check,
                    linger,
                    version,
                };
                let request = request.map(|body| GuardedBody::new(body, Some(rest)));
                ResponseFuture::guarded(self.inner.call(request), watch)
            }
        }
    }
}

/// RFC 9110, 9.2.1. A method that is not known to be safe is not.
fn is_safe(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE
    )
}
