//! Extractors: a handler writes through its request's claim, or is not run.

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use axum::response::{IntoResponse, Response as Answer};
use axum::routing::post as on_post;
use fence_core::{Claim, Decision, Mark, Presented as Brought, Ranges, Refusal, admit};
use fence_http::axum::{Presented, Receipted};
use fence_http::{Fenced, GuardedStore, NoClaim, Problem};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tower::{Layer, ServiceExt};

use super::*;

/// A balance and its mark.
#[derive(Clone, Default, Debug)]
struct Ledger(Arc<Mutex<(Option<Mark>, i64)>>);

impl GuardedStore for Ledger {
    type Transaction = OwnedMutexGuard<(Option<Mark>, i64)>;
    type Error = Refusal;

    async fn open(&self, claim: &Claim) -> Result<Self::Transaction, Refusal> {
        let mut ledger = Arc::clone(&self.0).lock_owned().await;
        let brought = Brought::Token(claim.token, claim.grant_id.clone());
        match admit(ledger.0.as_ref(), &Ranges::Open, &brought) {
            Decision::Admit => {}
            Decision::Raise(mark) => ledger.0 = Some(mark),
            Decision::Refuse(refusal) => return Err(refusal),
        }
        Ok(ledger)
    }
}

#[derive(Clone, Default)]
struct App {
    ledger: Ledger,
}

impl FromRef<App> for Ledger {
    fn from_ref(app: &App) -> Ledger {
        app.ledger.clone()
    }
}

async fn pay(ledger: Fenced<Ledger>) -> Answer {
    match ledger.open().await {
        Ok(mut open) => {
            open.1 += 1;
            let receipt = Receipt::danger_assume(ledger.claim().clone(), Effect::Applied);
            Receipted(receipt, open.1.to_string()).into_response()
        }
        Err(refusal) => Problem::from(&refusal).into_response(),
    }
}

async fn look(claim: Option<Presented>) -> String {
    claim.map_or("none".to_owned(), |claim| claim.key.to_string())
}

fn router(app: App) -> Router {
    let route = on_post(pay).put(look);
    Router::new()
        .route("/accounts/{id}/transfers", route)
        .with_state(app)
}

const TRANSFERS: &str = "/accounts/acct-1/transfers";

#[tokio::test]
async fn a_handler_writes_under_the_claim_of_its_request_and_a_stale_one_does_not() {
    let app = App::default();
    let service = building().strict().build().unwrap().layer(router(app.clone()));
    for (token, status) in [("34", 200), ("33", 412), ("34", 200)] {
        let request = with_token(TRANSFERS, &format!("\"{token}\""));
        let response = service.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), status, "{token}");
    }
    assert_eq!(app.ledger.0.lock().await.1, 2);
}

#[tokio::test]
async fn a_handler_without_its_layer_is_not_run() {
    let app = App::default();
    let request = with_token(TRANSFERS, "\"40\"");
    let response = router(app.clone()).oneshot(request).await.unwrap();
    problem(response, StatusCode::INTERNAL_SERVER_ERROR, "misconfigured").await;
    assert_eq!(app.ledger.0.lock().await.1, 0);
    let plain = Fenced::from_extensions(&Extensions::new(), app.ledger.clone());
    assert_eq!(plain.unwrap_err(), NoClaim);
}

#[tokio::test]
async fn a_claim_is_optional_where_a_route_is_observed() {
    let service = building()
        .observe()
        .build()
        .unwrap()
        .layer(router(App::default()));
    for (request, expected) in [
        (with_token(TRANSFERS, "\"40\""), "acct-1"),
        (post(TRANSFERS).body(Body::empty()).unwrap(), "none"),
    ] {
        let mut request = request;
        *request.method_mut() = http::Method::PUT;
        let response = service.clone().oneshot(request).await.unwrap();
        assert_eq!(text(response).await, expected);
    }
}
