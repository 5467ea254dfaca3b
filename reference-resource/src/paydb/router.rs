use axum::Router;
use axum::routing::{get, post};
use fence_core::ClassName;
use fence_http::{FenceLayer, Guard};
use http::{Method, StatusCode, Uri};
use sqlx::PgPool;
use tower::Layer;

use super::answer::{Own, Problem};
use super::deadline::in_time;
use super::{accounts, transfers};

/// The largest body of a request, in bytes.
pub(super) const MAX_BODY: usize = 64 << 10;

/// The finished service: the router, and the guard around all of it.
pub(super) fn service(pool: PgPool) -> Guard<Router> {
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/accounts", post(accounts::create))
        .route("/accounts/{id}", get(accounts::show))
        .route(
            "/accounts/{id}/transfers",
            post(transfers::create).get(transfers::list),
        )
        .route("/accounts/{id}/fence", post(transfers::fence))
        .fallback(async |uri: Uri| Problem::from(Own::unknown_route(uri.path())))
        .method_not_allowed_fallback(async |method: Method| Problem::from(Own::wrong_method(&method)))
        .with_state(pool);
    let class = ClassName::new("paydb.account").expect("a class name");
    let layer = FenceLayer::builder()
        .guard(class.clone(), "/accounts/{id}/transfers")
        .guard(class, "/accounts/{id}/fence")
        .exempt(Method::POST, "/accounts")
        .strict()
        .build()
        .expect("patterns that do not overlap");
    layer.layer(router)
}

async fn healthz(state: axum::extract::State<PgPool>) -> Result<StatusCode, Problem> {
    in_time(async { Ok(sqlx::query("SELECT 1").execute(&*state).await?) }).await?;
    Ok(StatusCode::NO_CONTENT)
}
