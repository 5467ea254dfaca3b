//! A page of another origin may be allowed to send the header.

use axum::Router;
use axum::routing::post as on_post;
use http::Method;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use tower::{Layer, ServiceExt};
use tower_http::cors::CorsLayer;

use super::*;

#[tokio::test]
async fn a_preflight_passes_the_guard_and_may_allow_the_header() {
    let cors = CorsLayer::new()
        .allow_origin(["http://shop.example".parse().unwrap()])
        .allow_methods([Method::POST])
        .allow_headers([FENCING_TOKEN]);
    let router = Router::new().route("/accounts/{id}/transfers", on_post(write));
    // Outside the guard, so that its answers to refused requests may be read by the page as well.
    let around = cors.clone().layer(layer().layer(router.clone()));
    // Inside it: a preflight is an OPTIONS request, and so is let in.
    let within = layer().layer(router.layer(cors));
    let preflight = || {
        Request::builder()
            .method(Method::OPTIONS)
            .uri("/accounts/acct-1/transfers")
            .header(ORIGIN, "http://shop.example")
            .header(ACCESS_CONTROL_REQUEST_METHOD, "POST")
            .header(ACCESS_CONTROL_REQUEST_HEADERS, "fencing-token")
            .body(Body::empty())
            .unwrap()
    };
    for response in [
        around.clone().oneshot(preflight()).await.unwrap(),
        within.oneshot(preflight()).await.unwrap(),
    ] {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[ACCESS_CONTROL_ALLOW_HEADERS], "fencing-token");
    }
    let mut refused = with_token("/accounts/acct-1/transfers", "40");
    refused
        .headers_mut()
        .insert(ORIGIN, "http://shop.example".parse().unwrap());
    let response = around.oneshot(refused).await.unwrap();
    assert_eq!(
        response.headers()["access-control-allow-origin"],
        "http://shop.example"
    );
    problem(response, StatusCode::BAD_REQUEST, "malformed").await;
}
