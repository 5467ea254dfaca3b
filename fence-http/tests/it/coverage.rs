//! No mutating request reaches a handler that no rule covers, whatever the router grew later.

use axum::Router;
use axum::routing::{any, post as on_post};
use fence_http::coverage::{CoverageError, Route, coverage};
use http::Method;
use tower::{Layer, ServiceExt};

use super::*;

#[tokio::test]
async fn a_wrapped_service_has_no_unguarded_mutating_route() {
    let router = Router::new()
        .route("/accounts/{id}/transfers", on_post(write))
        .merge(Router::new().route("/late", on_post(write)))
        .fallback(any(write));
    let service = layer().layer(router);
    for path in [
        "/late",
        "/accounts/acct-1/transfers/",
        "/accounts/acct-1",
        "/w/",
        "/",
        "//accounts/acct-1/transfers",
    ] {
        for header in [None, Some(r#""40";grant="a""#)] {
            let mut request = post(path);
            if let Some(value) = header {
                request = request.header(FENCING_TOKEN, value);
            }
            let request = request.body(Body::empty()).unwrap();
            let response = service.clone().oneshot(request).await.unwrap();
            let body = problem(response, StatusCode::NOT_FOUND, "no-rule").await;
            let detail = body["detail"].as_str().unwrap();
            assert!(detail.contains(&format!("POST {path};")), "{detail}");
        }
    }
}

#[tokio::test]
async fn an_exempt_route_is_exempt_for_its_method_alone() {
    let service = building()
        .exempt(Method::POST, "/accounts")
        .build()
        .unwrap()
        .layer(Router::new().fallback(any(write)));
    for (method, expected) in [
        (Method::POST, StatusCode::OK),
        (Method::DELETE, StatusCode::NOT_FOUND),
    ] {
        let request = Request::builder().method(method).uri("/accounts");
        let response = service
            .clone()
            .oneshot(request.body(Body::empty()).unwrap())
            .await;
        assert_eq!(response.unwrap().status(), expected);
    }
}

#[tokio::test]
async fn a_handler_mounted_without_its_layer_finds_no_claim() {
    let router: Router = Router::new().fallback(any(write));
    let response = router
        .oneshot(with_token("/accounts", r#""40";grant="a""#))
        .await
        .unwrap();
    assert_eq!(text(response).await, "WROTE without a claim");
}

/// A service of which some routes are guarded, one is exempt, and some came late.
fn leaky() -> Router {
    let layer = building().exempt(Method::POST, "/accounts").build().unwrap();
    Router::new()
        .route("/accounts", on_post(write).get(write))
        .route("/accounts/{id}/transfers", on_post(write))
        .layer(layer)
        .merge(Router::new().route("/late/{id}", on_post(write)))
        .nest(
            "/api",
            Router::new().route("/x", on_post(write)).fallback(any(write)),
        )
}

fn shown(routes: &[Route]) -> Vec<String> {
    let posts = routes.iter().filter(|route| route.method == Method::POST);
    posts.map(ToString::to_string).collect()
}

#[tokio::test]
async fn late_merges_and_fallbacks_are_listed_as_unguarded() {
    let found = coverage(leaky()).await.unwrap();
    let late = "POST /late/{id}";
    let nested = [
        "POST /api",
        "POST /api/no-such-route",
        "POST /api/x",
        "POST /api/x/",
    ];
    assert_eq!(shown(&found.unguarded), [&nested[..], &[late]].concat());
    let fallback = Route {
        method: Method::DELETE,
        path: "/api/no-such-route".to_owned(),
    };
    assert!(found.unguarded.contains(&fallback), "by every method");
    assert_eq!(shown(&found.guarded), ["POST /accounts/{id}/transfers"]);
    assert_eq!(shown(&found.exempt), ["POST /accounts"]);
}

#[tokio::test]
async fn around_the_finished_service_nothing_is_unguarded() {
    let late = Router::new()
        .route("/accounts/{id}/transfers", on_post(write))
        .merge(Router::new().route("/late/{id}", on_post(write)))
        .fallback(any(write));
    let found = coverage(layer().layer(late.clone())).await.unwrap();
    assert_eq!(found.unguarded, []);
    let observed = building().observe().build().unwrap().layer(late);
    let found = coverage(observed).await.unwrap();
    assert_eq!((found.unguarded, found.guarded), (vec![], vec![]));
    assert!(found.observed.iter().any(|route| route.path == "/late/{id}"));
}

#[tokio::test]
async fn a_service_that_shows_no_routes_is_not_called_covered() {
    let service =
        tower::service_fn(|_| async { Ok::<_, std::convert::Infallible>(Response::new(Body::empty())) });
    let found = coverage(Silent(service)).await;
    assert!(matches!(found, Err(CoverageError::NoRoutes)));
}

/// A service whose `Debug` text says nothing.
#[derive(Clone)]
struct Silent<S>(S);

impl<S> std::fmt::Debug for Silent<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Silent")
    }
}

impl<S: tower::Service<R>, R> tower::Service<R> for Silent<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.0.call(request)
    }
}
