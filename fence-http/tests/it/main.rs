//! The layer around real axum routers, in memory and on a socket.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says where"
)]

mod builder;
mod client;
mod cors;
mod coverage;
mod door;
mod extract;
mod http2;
mod linger;
mod observe;
mod problems;
mod strict;

use axum::body::Body;
use fence_core::{ClassName, Effect, Receipt};
use fence_http::{FENCING_TOKEN, FenceLayer, FenceLayerBuilder};
use http::{Extensions, Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;

/// A class for tests.
fn class() -> ClassName {
    ClassName::new("paydb.account").unwrap()
}

/// The layer as a payments service uses it.
fn layer() -> FenceLayer {
    building().build().unwrap()
}

fn building() -> FenceLayerBuilder {
    FenceLayer::builder().guard(class(), "/accounts/{id}/transfers")
}

/// A handler that writes, answering what it would have written under.
async fn write(extensions: Extensions) -> Response<Body> {
    let text = match fence_http::claim(&extensions) {
        Ok(claim) => format!(
            "WROTE {} {} {} {:?}",
            claim.class, claim.key, claim.token, claim.grant_id
        ),
        Err(_) => "WROTE without a claim".to_owned(),
    };
    let mut response = Response::new(Body::from(text));
    if let Ok(claim) = fence_http::claim(&extensions) {
        let receipt = Receipt::danger_assume(claim, Effect::Applied);
        response.extensions_mut().insert(receipt);
    }
    response
}

fn post(path: &str) -> http::request::Builder {
    Request::post(path)
}

fn with_token(path: &str, value: &str) -> Request<Body> {
    post(path)
        .header(FENCING_TOKEN, value)
        .body(Body::empty())
        .unwrap()
}

async fn text(response: Response<Body>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The problem in a response, checked to be one.
async fn problem(response: Response<Body>, status: StatusCode, kind: &str) -> Value {
    assert_eq!(response.status(), status);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let body: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(body["type"], format!("urn:fence:problem:{kind}"));
    assert_eq!(body["status"], status.as_u16());
    body
}
