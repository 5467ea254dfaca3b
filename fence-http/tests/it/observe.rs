//! Observing: what would be refused is counted and let through, without a claim.

use axum::Router;
use axum::routing::any;
use fence_http::{Counted, Counts, ProblemKind, Rule};
use tower::{Layer, ServiceExt};

use super::*;

const TRANSFERS: &str = "/accounts/acct-1/transfers";

async fn send(layer: &FenceLayer, request: Request<Body>) -> (StatusCode, String) {
    let service = layer.layer(Router::new().fallback(any(write)));
    let response = service.oneshot(request).await.unwrap();
    (response.status(), text(response).await)
}

fn bare(path: &str) -> Request<Body> {
    post(path).body(Body::empty()).unwrap()
}

fn counted(counts: &Counts) -> Vec<(Option<String>, ProblemKind, bool, u64)> {
    let flat = |(
        Counted {
            route,
            kind,
            observed,
        },
        count,
    )| (route, kind, observed, count);
    counts.snapshot().into_iter().map(flat).collect()
}

#[tokio::test]
async fn an_observing_layer_counts_what_it_would_refuse_and_lets_it_through() {
    let layer = building().observe().strict().build().unwrap();
    let nothing = (StatusCode::OK, "WROTE without a claim".to_owned());
    assert_eq!(send(&layer, bare(TRANSFERS)).await, nothing);
    assert_eq!(send(&layer, bare(TRANSFERS)).await, nothing);
    assert_eq!(send(&layer, with_token(TRANSFERS, "40")).await, nothing);
    assert_eq!(send(&layer, bare("/elsewhere")).await, nothing);
    let (status, text) = send(&layer, with_token(TRANSFERS, r#""40";grant="a""#)).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        text, r#"WROTE paydb.account acct-1 40 Some(GrantId("a"))"#,
        "a good claim is handed on"
    );
    let route = Some("/accounts/{id}/transfers".to_owned());
    assert_eq!(
        counted(&layer.counts()),
        [
            (None, ProblemKind::NoRule, true, 1),
            (route.clone(), ProblemKind::MissingToken, true, 2),
            (route, ProblemKind::Malformed, true, 1),
        ]
    );
}

#[tokio::test]
async fn a_missing_receipt_is_counted_and_not_answered_while_observing() {
    let layer = building().observe().strict().build().unwrap();
    let forgetful = any(async || "WROTE");
    let service = layer.layer(Router::new().fallback(forgetful));
    let response = service
        .oneshot(with_token(TRANSFERS, r#""40";grant="a""#))
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let [(.., kind, observed, count)] = counted(&layer.counts())[..] else {
        panic!("{:?}", layer.counts());
    };
    assert_eq!((kind, observed, count), (ProblemKind::NoReceipt, true, 1));
}

#[tokio::test]
async fn one_observed_rule_leaves_the_others_guarded() {
    let observed = Rule::by_path(class(), "/later/{id}").observed();
    let layer = building().rule(observed).build().unwrap();
    assert_eq!(send(&layer, bare("/later/acct-1")).await.0, StatusCode::OK);
    assert_eq!(
        send(&layer, bare(TRANSFERS)).await.0,
        StatusCode::PRECONDITION_REQUIRED
    );
    assert_eq!(send(&layer, bare("/elsewhere")).await.0, StatusCode::NOT_FOUND);
    let observed: Vec<bool> = counted(&layer.counts())
        .into_iter()
        .map(|(_, _, observed, _)| observed)
        .collect();
    assert_eq!(
        observed,
        [false, false, true],
        "in the order of no route, /accounts and /later"
    );
}

#[tokio::test]
async fn two_layers_of_one_builder_count_apart() {
    let builder = building();
    let (first, second) = (builder.clone().build().unwrap(), builder.build().unwrap());
    send(&first, bare(TRANSFERS)).await;
    assert_eq!(first.counts().snapshot().len(), 1);
    assert_eq!(second.counts().snapshot(), []);
}
