//! What reaches the handler, and as what.

use axum::Router;
use axum::routing::any;
use fence_http::{Guard, HeaderError, ProblemKind, Rejection, Rule};
use http::Method;
use tower::{Layer, ServiceExt};

use super::*;

const TRANSFERS: &str = "/accounts/acct-1/transfers";

fn service() -> Guard<Router> {
    layer().layer(Router::new().fallback(any(write)))
}

async fn send(request: Request<Body>) -> Response<Body> {
    service().oneshot(request).await.unwrap()
}

#[tokio::test]
async fn one_clean_token_reaches_the_handler_as_a_claim() {
    let response = send(with_token(TRANSFERS, r#""9223372036854775807";grant="b2f1""#)).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        text(response).await,
        r#"WROTE paydb.account acct-1 9223372036854775807 Some(GrantId("b2f1"))"#
    );
}

#[tokio::test]
async fn safe_methods_need_no_token_and_every_other_method_does() {
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE] {
        let request = Request::builder().method(method.clone()).uri(TRANSFERS);
        let response = send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK, "{method}");
    }
    let own = Method::from_bytes(b"SETTLE").unwrap();
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, own] {
        let request = Request::builder().method(method).uri(TRANSFERS);
        let response = send(request.body(Body::empty()).unwrap()).await;
        problem(response, StatusCode::PRECONDITION_REQUIRED, "missing-token").await;
    }
}

#[tokio::test]
async fn two_tokens_are_refused_however_they_come() {
    for pair in [["40", "1"], ["1", "40"], ["40", "40"]] {
        let [first, second] = pair.map(|token| format!(r#""{token}";grant="a""#));
        let lines = post(TRANSFERS)
            .header("fencing-token", &first)
            .header("Fencing-Token", &second);
        let response = send(lines.body(Body::empty()).unwrap()).await;
        problem(response, StatusCode::BAD_REQUEST, "more-than-one").await;
        let response = send(with_token(TRANSFERS, &format!("{first}, {second}"))).await;
        problem(response, StatusCode::BAD_REQUEST, "more-than-one").await;
    }
}

#[tokio::test]
async fn whatever_is_not_the_text_form_is_a_400_that_shows_the_right_form() {
    for value in [
        "40",
        "",
        r#""40","#,
        r#""+40""#,
        r#""0040""#,
        r#"" 40""#,
        r#""40";grant="a b""#,
    ] {
        let response = send(with_token(TRANSFERS, value)).await;
        let rejection = response.extensions().get::<Rejection>().unwrap();
        assert!(matches!(rejection, Rejection::Header(_)));
        let body = problem(response, StatusCode::BAD_REQUEST, "malformed").await;
        let detail = body["detail"].as_str().unwrap();
        let presented = if value == "40" { "40" } else { "TOKEN" };
        let form =
            format!(r#"send Fencing-Token: "{presented}";grant="GRANT-ID", with the token and grant id"#);
        assert!(detail.contains(&form), "{detail}");
    }
}

#[tokio::test]
async fn the_right_form_never_shows_a_token_that_the_caller_did_not_send() {
    for (value, shown) in [
        ("281474976710691", r#""281474976710691";grant="GRANT-ID""#),
        ("9223372036854775807", r#""9223372036854775807";grant="GRANT-ID""#),
        ("9223372036854775808", r#""TOKEN";grant="GRANT-ID""#),
        ("0281474976710691", r#""TOKEN";grant="GRANT-ID""#),
        (r#""28147497671069x""#, r#""TOKEN";grant="GRANT-ID""#),
    ] {
        let response = send(with_token(TRANSFERS, value)).await;
        let body = problem(response, StatusCode::BAD_REQUEST, "malformed").await;
        let detail = body["detail"].as_str().unwrap();
        assert!(
            detail.contains(&format!("send Fencing-Token: {shown}")),
            "{detail}"
        );
    }
    let response = send(post(TRANSFERS).body(Body::empty()).unwrap()).await;
    let body = problem(response, StatusCode::PRECONDITION_REQUIRED, "missing-token").await;
    let detail = body["detail"].as_str().unwrap();
    let is_token = |word: &str| word.parse::<fence_core::Token>().is_ok();
    assert!(
        !detail.split(|c: char| !c.is_ascii_digit()).any(is_token),
        "{detail}"
    );
}

#[tokio::test]
async fn a_token_in_another_header_or_in_the_trailers_is_no_token() {
    let frames = [
        Ok::<_, std::convert::Infallible>(http_body::Frame::data(bytes::Bytes::from("{}"))),
        Ok(http_body::Frame::trailers(
            [(FENCING_TOKEN, http::HeaderValue::from_static(r#""40";grant="a""#))]
                .into_iter()
                .collect(),
        )),
    ];
    let body = Body::new(Frames(frames.into()));
    let request = post(TRANSFERS).header("fence_token", "40").body(body).unwrap();
    problem(
        send(request).await,
        StatusCode::PRECONDITION_REQUIRED,
        "missing-token",
    )
    .await;
}

#[tokio::test]
async fn the_typed_refusal_rides_in_the_extensions() {
    let response = send(post(TRANSFERS).body(Body::empty()).unwrap()).await;
    let rejection = response.extensions().get::<Rejection>().unwrap();
    assert_eq!(*rejection, Rejection::Header(HeaderError::Missing));
    let problem = response.extensions().get::<fence_http::Problem>().unwrap();
    assert_eq!(problem.kind(), ProblemKind::MissingToken);
}

#[tokio::test]
async fn the_key_is_percent_decoded_once() {
    for (segment, key) in [
        ("a%20b", "a b"),
        ("a%2Fb", "a/b"),
        ("a%2520b", "a%20b"),
        ("100%", "100%"),
        ("%C3%A9", "é"),
        ("+", "+"),
    ] {
        let path = format!("/accounts/{segment}/transfers");
        let response = send(with_token(&path, r#""40""#)).await;
        assert_eq!(text(response).await, format!("WROTE paydb.account {key} 40 None"));
    }
}

#[tokio::test]
async fn a_key_that_is_no_key_is_a_400() {
    let long = "x".repeat(513);
    for segment in ["", "%00", "%FF", long.as_str()] {
        let path = format!("/accounts/{segment}/transfers");
        let response = send(with_token(&path, r#""40""#)).await;
        problem(response, StatusCode::BAD_REQUEST, "malformed-key").await;
    }
}

#[tokio::test]
async fn a_key_in_a_header_comes_exactly_once() {
    let account = http::HeaderName::from_static("x-account");
    let layer = FenceLayer::builder()
        .rule(Rule::by_header(class(), "/payments", account))
        .build()
        .unwrap();
    let service = layer.layer(Router::new().fallback(any(write)));
    for (accounts, expected) in [(&["a%20b"][..], 200), (&[], 400), (&["a", "b"], 400)] {
        let mut request = post("/payments").header(FENCING_TOKEN, r#""40""#);
        for account in accounts {
            request = request.header("x-account", *account);
        }
        let request = request.body(Body::empty()).unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), expected, "{accounts:?}");
        if expected == 200 {
            assert_eq!(text(response).await, "WROTE paydb.account a b 40 None");
        }
    }
}

#[tokio::test]
async fn several_parameters_make_a_composite_key() {
    let layer = FenceLayer::builder()
        .guard(class(), "/v1/*/tenants/{tenant}/accounts/{id}")
        .build()
        .unwrap();
    let service = layer.layer(Router::new().fallback(any(write)));
    let request = with_token("/v1/beta/tenants/a%2Fb/accounts/c", r#""40""#);
    let response = service.oneshot(request).await.unwrap();
    assert_eq!(text(response).await, r"WROTE paydb.account a\/b/c 40 None");
}

/// A stream of ready frames.
struct Frames(std::collections::VecDeque<Result<http_body::Frame<bytes::Bytes>, std::convert::Infallible>>);

impl http_body::Body for Frames {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        std::task::Poll::Ready(self.get_mut().0.pop_front())
    }
}
