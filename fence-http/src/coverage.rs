//! For a service's own tests: which of its mutating routes nothing guards.
//!
//! A layer covers what was in a router when it was put on; routes merged later, and fallbacks, write unguarded, and nothing
//! says so. [`coverage`] asks the finished service. It reads the routes of every axum [`Router`] inside from the service's
//! `Debug` text, and sends a request without a token to each of them, by every mutating method, with and without a slash at
//! its end, and to paths that no route has, where a fallback answers. A guard that stands before the handler answers for it;
//! what anybody else answers comes from behind no guard.
//!
//! ```
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! use axum::{Router, routing::post};
//! use fence_core::ClassName;
//! use fence_http::{FenceLayer, coverage::coverage};
//! use tower::Layer;
//!
//! let layer = FenceLayer::builder()
//!     .guard(ClassName::new("paydb.account")?, "/accounts/{id}/transfers")
//!     .build()?;
//! let guarded: Router = Router::new().route("/accounts/{id}/transfers", post(async || "paid"));
//!
//! // Around the finished service: everything is covered.
//! let late: Router = Router::new().route("/late", post(async || "wrote"));
//! let covered = coverage(layer.layer(guarded.clone().merge(late.clone()))).await?;
//! assert!(covered.unguarded.is_empty());
//!
//! // On the router, before the rest is merged: not.
//! let leaky = coverage(guarded.layer(layer).merge(late)).await?;
//! assert_eq!(leaky.unguarded[0].to_string(), "POST /late");
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(test()).unwrap();
//! ```
//!
//! **What is not guarded is run**, without a token and with an empty body: use it on a service whose store is a test's own.
//! A handler that answers 404 or 405 without a body passes for no handler.
//!
//! [`Router`]: https://docs.rs/axum/0.8/axum/struct.Router.html

use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::Empty;
use tower::{Service, ServiceExt};

/// What guards the mutating routes of a service. Only what some handler may answer is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Reached without a token, and no layer knows of it. Guard it, or exempt it.
    pub unguarded: Vec<Route>,
    /// Reached without a token, because a layer only counts there.
    pub observed: Vec<Route>,
    /// Reached without a token, because a layer exempts it.
    pub exempt: Vec<Route>,
    /// Reached with a token alone.
    pub guarded: Vec<Route>,
}

/// A method and a path: a route's pattern, or a path that no route has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path.
    pub path: String,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// Asks a service which of its mutating routes nothing guards. See the [module](self).
///
/// # Errors
///
/// [`CoverageError`] when the routes are not to be found, or the service fails.
pub async fn coverage<S, R>(service: S) -> Result<Coverage, CoverageError<S::Error>>
where
    S: Service<Request<Empty<Bytes>>, Response = Response<R>> + Clone + fmt::Debug,
    R: Body,
{
    let routes = routes(&format!("{service:?}"));
    if routes.is_empty() {
        return Err(CoverageError::NoRoutes);
    }
    let methods = ["POST", "PUT", "PATCH", "DELETE", "X-COVERAGE"];
    let methods = methods.map(|name| Method::from_bytes(name.as_bytes()).expect("a method's name"));
    let mut coverage = Coverage::default();
    for path in paths(&routes) {
        for method in &methods {
            let mut request = Request::new(Empty::new());
            *request.method_mut() = method.clone();
            *request.uri_mut() = filled(&path)
                .parse()
                .map_err(|_| CoverageError::Path { path: path.clone() })?;
            request.extensions_mut().insert(Probe);
            let answered = service.clone().oneshot(request).await;
            let response = answered.map_err(CoverageError::Service)?;
            let route = Route {
                method: method.clone(),
                path: path.clone(),
            };
            match response.extensions().get::<Probed>() {
                Some(Probed::Guarded) => coverage.guarded.push(route),
                Some(Probed::Exempt) => coverage.exempt.push(route),
                Some(Probed::Observed) => coverage.observed.push(route),
                Some(Probed::Closed) => {}
                None if is_nothing(&response) => {}
                None => coverage.unguarded.push(route),
            }
        }
    }
    Ok(coverage)
}

/// Why a service could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum CoverageError<E> {
    /// The service's `Debug` text shows no route of an axum router. Give the router, or a service that shows it.
    #[error("the service shows no routes")]
    NoRoutes,
    /// A route's pattern is none that can be filled in. Leave it out of the router that is asked.
    #[error("the route {path:?} is no path")]
    Path {
        /// The pattern.
        path: String,
    },
    /// The service failed instead of answering.
    #[error("the service failed")]
    Service(#[source] E),
}

/// Marks a request that a guard answers by what it would do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe;

/// What a guard would do, in the extensions of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probed {
    /// Pass it on without a token.
    Exempt,
    /// Count it, and pass it on.
    Observed,
    /// Require a token.
    Guarded,
    /// Refuse it, with a token too.
    Closed,
}

impl Probed {
    pub(crate) fn into_response<R: From<Bytes>>(self) -> Response<R> {
        let mut response = Response::new(R::from(Bytes::new()));
        *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
        response.extensions_mut().insert(self);
        response
    }
}

/// What a router answers where it has no handler.
fn is_nothing<R: Body>(response: &Response<R>) -> bool {
    let none = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
    none.contains(&response.status()) && response.body().size_hint().exact() == Some(0)
}

/// The patterns in an axum router's `Debug` text, where each stands behind its `RouteId`.
fn routes(debug: &str) -> BTreeSet<String> {
    let quoted = |text: &str| {
        let (id, rest) = text.split_once("): \"")?;
        let number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
        let (pattern, _) = rest.split_once('"')?;
        number.then(|| pattern.to_owned())
    };
    debug.split("RouteId(").skip(1).filter_map(quoted).collect()
}

/// The routes, and beside each the paths at which a fallback would answer.
fn paths(routes: &BTreeSet<String>) -> BTreeSet<String> {
    let routes: BTreeSet<String> = routes.iter().filter(|route| !is_inner(route)).cloned().collect();
    let mut paths = routes.clone();
    for route in &routes {
        let mut prefix = String::new();
        for segment in route.split('/').skip(1) {
            // Where a parameter stands, any text is that route.
            let parameter = format!("{prefix}/{{");
            if !routes.iter().any(|route| route.starts_with(&parameter)) {
                paths.insert(format!("{prefix}/no-such-route"));
            }
            prefix = format!("{prefix}/{segment}");
        }
        if !prefix.ends_with('/') && !prefix.ends_with('}') {
            paths.insert(format!("{prefix}/"));
        }
    }
    paths
}

/// The router keeps its own fallbacks under names that no request has.
fn is_inner(route: &str) -> bool {
    route.contains("__private__axum")
}

/// A path of this pattern.
fn filled(pattern: &str) -> String {
    let segments = pattern.split('/').map(|segment| match segment.find('{') {
        Some(_) => "probe",
        None => segment,
    });
    segments.collect::<Vec<_>>().join("/")
}
