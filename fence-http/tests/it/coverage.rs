//! No mutating request reaches a handler that no rule covers, whatever the router grew later.

use axum::Router;
use axum::routing::{any, post as on_post};
use fence_http::ConfigError;
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
    let service = layer()
        .exempt(Method::POST, "/accounts")
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
async fn a_layer_without_rules_lets_nothing_write() {
    let service = FenceLayer::new().layer(Router::new().fallback(any(write)));
    let response = service
        .oneshot(with_token("/accounts", r#""40";grant="a""#))
        .await
        .unwrap();
    problem(response, StatusCode::NOT_FOUND, "no-rule").await;
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

#[test]
fn patterns_that_cannot_be_told_apart_are_refused() {
    let overlap = |second: &str| layer().guard(class(), second).unwrap_err();
    for second in [
        "/accounts/{id}/transfers",
        "/accounts/{id}/{what}",
        "/accounts/special/{what}",
        "/*/*/{id}",
    ] {
        assert_eq!(
            overlap(second),
            ConfigError::Overlap {
                first: "/accounts/{id}/transfers".to_owned(),
                second: second.to_owned()
            }
        );
    }
    assert!(layer().exempt(Method::POST, "/accounts/*/transfers").is_err());
    assert!(layer().guard(class(), "/accounts/{id}/fence").is_ok());
}

#[test]
fn malformed_patterns_are_refused() {
    let refused = |pattern: &str| FenceLayer::new().guard(class(), pattern).unwrap_err();
    assert!(matches!(
        refused("accounts/{id}"),
        ConfigError::NotAbsolute { .. }
    ));
    assert!(matches!(refused("/accounts"), ConfigError::NoKey { .. }));
    for segment in ["{}", "{id", "id}", "{a}{b}", "a*", "**", "{i d}", "x?y"] {
        let pattern = format!("/accounts/{segment}/{{id}}");
        assert_eq!(
            refused(&pattern),
            ConfigError::MalformedSegment {
                segment: segment.to_owned(),
                pattern
            }
        );
    }
}
