//! What is counted and logged of every request, around the guard.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use fence_core::{ClassName, Receipt};
use fence_http::{FencingToken, Problem, Rejection};
use http::Extensions;

use super::metrics::{Metrics, reason};
use super::router::guarded_class;

/// Refusals are logged with the token and grant that were presented: neither is a secret. The mark stays out.
pub(super) async fn observe(State(metrics): State<Metrics>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let presented = FencingToken::from_headers(request.headers()).ok();
    let began = Instant::now();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    metrics.answered(&method, status);
    let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let token = presented.as_ref().map(|presented| presented.token.to_string());
    let grant = presented
        .as_ref()
        .and_then(|presented| presented.grant_id.as_ref())
        .map(ToString::to_string);
    if let Some(problem) = response.extensions().get::<Problem>() {
        if let Some(refusal) = refusal(response.extensions()) {
            metrics.refused(refusal.as_ref(), problem.kind());
        }
        let reason = reason(problem.kind());
        tracing::info!(%method, path, status, reason, token, grant, elapsed_ms, "refused");
    } else {
        let effect = response.extensions().get::<Receipt>().map(Receipt::effect);
        tracing::debug!(%method, path, status, ?effect, token, grant, elapsed_ms, "answered");
    }
    response
}

/// The class that a request was let in for, kept beside its answer.
#[derive(Clone, Debug)]
struct Claimed(ClassName);

/// Stands behind the guard, where the claim is, for [`observe`].
pub(super) async fn note_class(request: Request, next: Next) -> Response {
    let claimed = fence_http::claim(request.extensions()).map(|claim| Claimed(claim.class));
    let mut response = next.run(request).await;
    if let Ok(claimed) = claimed {
        response.extensions_mut().insert(claimed);
    }
    response
}

/// Whether a problem is the guard's refusal, and of what class: not what an unguarded request met in the database.
fn refusal(answer: &Extensions) -> Option<Option<ClassName>> {
    match (answer.get::<Rejection>(), answer.get::<Claimed>()) {
        (Some(Rejection::NoRule { .. }), _) => Some(None),
        (Some(_), _) => Some(Some(guarded_class())),
        (None, Some(Claimed(class))) => Some(Some(class.clone())),
        (None, None) => None,
    }
}
