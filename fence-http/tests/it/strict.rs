//! Strict mode: success needs a receipt.

use axum::Router;
use axum::routing::any;
use fence_core::{Claim, Key, Token};
use tower::{Layer, ServiceExt};

use super::*;

/// Answers as a handler that has, or has not, a receipt to show.
async fn answer(strict: bool, status: StatusCode, receipt: Option<Receipt>) -> Response<Body> {
    let handler = move || {
        let receipt = receipt.clone();
        async move {
            let mut response = Response::new(Body::from("WROTE"));
            *response.status_mut() = status;
            if let Some(receipt) = receipt {
                response.extensions_mut().insert(receipt);
            }
            response
        }
    };
    let layer = if strict { building().strict() } else { building() };
    let service = layer.build().unwrap().layer(Router::new().fallback(any(handler)));
    service
        .oneshot(with_token("/accounts/acct-1/transfers", r#""40";grant="a""#))
        .await
        .unwrap()
}

fn claim(key: &str) -> Claim {
    Claim {
        class: class(),
        key: Key::text(key).unwrap(),
        token: Token::new(40).unwrap(),
        grant_id: Some("a".parse().unwrap()),
    }
}

#[tokio::test]
async fn success_without_a_receipt_becomes_a_500_that_names_the_route() {
    for status in [
        StatusCode::OK,
        StatusCode::CREATED,
        StatusCode::NO_CONTENT,
        StatusCode::SEE_OTHER,
    ] {
        let response = answer(true, status, None).await;
        let body = problem(response, StatusCode::INTERNAL_SERVER_ERROR, "no-receipt").await;
        let detail = body["detail"].as_str().unwrap();
        assert!(
            detail.starts_with("POST /accounts/{id}/transfers answered"),
            "{detail}"
        );
        assert!(detail.contains(status.as_str()), "{detail}");
    }
}

#[tokio::test]
async fn a_receipt_of_another_claim_is_none() {
    let other = Receipt::danger_assume(claim("acct-2"), Effect::Applied);
    let response = answer(true, StatusCode::OK, Some(other)).await;
    problem(response, StatusCode::INTERNAL_SERVER_ERROR, "no-receipt").await;
}

#[tokio::test]
async fn a_receipt_of_any_effect_passes() {
    let effects = [
        Effect::Applied,
        Effect::Replayed,
        Effect::Deferred,
        Effect::NoWrite("raised the mark".to_owned()),
    ];
    for effect in effects {
        let own = Receipt::danger_assume(claim("acct-1"), effect);
        let response = answer(true, StatusCode::OK, Some(own)).await;
        assert_eq!(text(response).await, "WROTE");
    }
}

#[tokio::test]
async fn a_refusal_needs_no_receipt_and_neither_does_a_lenient_layer() {
    let refused = answer(true, StatusCode::PRECONDITION_FAILED, None).await;
    assert_eq!(refused.status(), StatusCode::PRECONDITION_FAILED);
    let lenient = answer(false, StatusCode::OK, None).await;
    assert_eq!(lenient.status(), StatusCode::OK);
}
