use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use fence_core::ClassName;
use fence_http::{FenceLayer, Guard};
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode, Uri};
use sqlx::PgPool;
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceBuilder};

use super::answer::{Own, Problem};
use super::app::App;
use super::deadline::in_time;
use super::metrics::Metrics;
use super::observe::{note_class, observe};
use super::turns::Turns;
use super::{accounts, jobs, transfers};

/// The largest body of a request, in bytes.
pub(super) const MAX_BODY: usize = 64 << 10;

/// What the routes take and answer, as OpenAPI 3.1.
pub(super) const OPENAPI: &str = include_str!("../../openapi.json");

/// The finished service: the router, the guard around all of it, and the counters around that.
pub(super) fn service(pool: PgPool) -> BoxCloneSyncService<Request<Body>, Response, Infallible> {
    let metrics = Metrics::new();
    let guarded = guarded(App {
        pool,
        metrics: metrics.clone(),
        turns: Turns::default(),
    });
    let counted = ServiceBuilder::new()
        .layer(from_fn_with_state(metrics, observe))
        .service(guarded);
    BoxCloneSyncService::new(counted)
}

fn guarded(app: App) -> Guard<Router> {
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(openapi))
        .route("/accounts", post(accounts::create))
        .route("/accounts/{id}", get(accounts::show))
        .route(
            "/accounts/{id}/transfers",
            post(transfers::create).get(transfers::list),
        )
        .route("/accounts/{id}/jobs", get(jobs::list))
        .route("/accounts/{id}/fence", post(transfers::fence))
        .fallback(async |uri: Uri| Problem::from(Own::unknown_route(uri.path())))
        .method_not_allowed_fallback(async |method: Method| Problem::from(Own::wrong_method(&method)))
        .layer(from_fn(note_class))
        .with_state(app);
    let class = guarded_class();
    let layer = FenceLayer::builder()
        .guard(class.clone(), "/accounts/{id}/transfers")
        .guard(class, "/accounts/{id}/fence")
        .exempt(Method::POST, "/accounts")
        .strict()
        .build()
        .expect("patterns that do not overlap");
    layer.layer(router)
}

/// All that paydb guards over HTTP is of one class.
pub(super) fn guarded_class() -> ClassName {
    ClassName::new("paydb.account").expect("a class name")
}

async fn healthz(State(pool): State<PgPool>) -> Result<StatusCode, Problem> {
    in_time(async { Ok(sqlx::query("SELECT 1").execute(&pool).await?) }).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn metrics(State(metrics): State<Metrics>) -> impl IntoResponse {
    let text = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, text)], metrics.page())
}

async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], OPENAPI)
}

#[cfg(test)]
mod tests {
    use fence_http::coverage::coverage;

    use super::*;

    /// Nothing is reached, and so nothing connects.
    fn unused() -> App {
        App {
            pool: PgPool::connect_lazy("postgres://nobody@127.0.0.1:1/none").expect("an address"),
            metrics: Metrics::new(),
            turns: Turns::default(),
        }
    }

    #[tokio::test]
    async fn every_mutating_route_is_guarded_but_for_the_one_that_makes_accounts() {
        let coverage = coverage(guarded(unused())).await.expect("an axum router");
        assert_eq!(coverage.unguarded, []);
        assert_eq!(coverage.observed, []);
        let posts = |routes: &[fence_http::coverage::Route]| -> Vec<String> {
            let posts = routes.iter().filter(|route| route.method == Method::POST);
            posts.map(|route| route.path.clone()).collect()
        };
        assert_eq!(posts(&coverage.exempt), ["/accounts"]);
        assert_eq!(
            posts(&coverage.guarded),
            ["/accounts/{id}/fence", "/accounts/{id}/transfers"]
        );
    }

    #[tokio::test]
    async fn the_document_names_every_route_of_the_router() {
        let document: serde_json::Value = serde_json::from_str(OPENAPI).expect("JSON");
        let shown = format!("{:?}", guarded(unused()));
        let paths = document["paths"].as_object().expect("paths");
        assert_eq!(document["openapi"], "3.1.0");
        for path in paths.keys() {
            assert!(shown.contains(&format!("{path:?}")), "{path} is no route");
        }
        assert_eq!(paths.len(), 8, "every route is in the document");
    }
}
