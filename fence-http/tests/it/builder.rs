//! Mistakes are found when the layer is built, and a rule covers what it says.

use axum::Router;
use axum::routing::any;
use fence_core::Key;
use fence_http::{ConfigError, Rule, Unnamed};
use http::{HeaderName, Method};
use tower::{Layer, ServiceExt};

use super::*;

fn mistake(builder: FenceLayerBuilder) -> ConfigError {
    builder.build().unwrap_err()
}

#[test]
fn patterns_that_cannot_be_told_apart_are_refused() {
    for second in [
        "/accounts/{id}/transfers",
        "/accounts/{id}/{what}",
        "/accounts/special/{what}",
        "/*/*/{id}",
    ] {
        assert_eq!(
            mistake(building().guard(class(), second)),
            ConfigError::Overlap {
                first: "/accounts/{id}/transfers".to_owned(),
                second: second.to_owned()
            }
        );
    }
    let exempt = |method| building().exempt(method, "/accounts/*/transfers");
    assert!(matches!(
        mistake(exempt(Method::POST)),
        ConfigError::Overlap { .. }
    ));
    assert!(building().guard(class(), "/accounts/{id}/fence").build().is_ok());
}

#[test]
fn rules_of_one_path_are_told_apart_by_their_methods() {
    let rule = |method| Rule::by_path(class(), "/accounts/{id}").methods([method]);
    let layer = FenceLayer::builder().rule(rule(Method::PUT));
    assert!(layer.clone().rule(rule(Method::DELETE)).build().is_ok());
    assert!(layer.clone().exempt(Method::POST, "/accounts/*").build().is_ok());
    let overlap = |layer| matches!(mistake(layer), ConfigError::Overlap { .. });
    assert!(overlap(layer.clone().rule(rule(Method::PUT))));
    assert!(overlap(layer.clone().exempt(Method::PUT, "/accounts/*")));
    assert!(
        overlap(layer.guard(class(), "/accounts/{id}")),
        "a rule for all methods has this one too"
    );
}

#[test]
fn malformed_patterns_are_refused() {
    let refused = |pattern: &str| mistake(FenceLayer::builder().guard(class(), pattern));
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

#[test]
fn rules_that_guard_nothing_are_refused() {
    assert_eq!(mistake(FenceLayer::builder()), ConfigError::NoRules);
    let no_methods = Rule::by_path(class(), "/accounts/{id}").methods([]);
    assert!(matches!(
        mistake(building().rule(no_methods)),
        ConfigError::NoMethods { .. }
    ));
    let token_as_key = Rule::by_header(class(), "/x", FENCING_TOKEN);
    assert!(matches!(
        mistake(building().rule(token_as_key)),
        ConfigError::KeyIsToken { .. }
    ));
    assert!(matches!(
        mistake(building().exempt(Method::GET, "/accounts")),
        ConfigError::NothingToExempt { .. }
    ));
}

#[tokio::test]
async fn a_rule_covers_the_methods_that_it_names_a_safe_one_too() {
    let rule = Rule::by_path(class(), "/accounts/{id}").methods([Method::PUT, Method::GET]);
    let layer = FenceLayer::builder().rule(rule).build().unwrap();
    let service = layer.layer(Router::new().fallback(any(write)));
    for (method, status) in [
        (Method::PUT, 428),
        (Method::GET, 428),
        (Method::HEAD, 200),
        (Method::DELETE, 404),
    ] {
        let request = Request::builder().method(method.clone()).uri("/accounts/acct-1");
        let response = service.clone().oneshot(request.body(Body::empty()).unwrap());
        assert_eq!(response.await.unwrap().status(), status, "{method}");
    }
}

#[tokio::test]
async fn class_and_key_may_be_found_by_a_function_of_the_head() {
    let tenant = HeaderName::from_static("x-tenant");
    let find = move |head: &http::request::Parts| match head.headers.get(&tenant).map(|value| value.to_str())
    {
        Some(Ok(tenant)) => {
            let class =
                ClassName::new(format!("{tenant}.account")).map_err(|error| Unnamed(error.to_string()))?;
            let key = Key::text(head.uri.path()).map_err(|error| Unnamed(error.to_string()))?;
            Ok((class, key))
        }
        _ => Err(Unnamed("send X-Tenant".to_owned())),
    };
    let layer = FenceLayer::builder()
        .rule(Rule::by_head("/pay/*", find))
        .strict()
        .build()
        .unwrap();
    let service = layer.layer(Router::new().fallback(any(write)));
    let send = |tenant: Option<&'static str>| {
        let mut request = with_token("/pay/x%20y", r#""40";grant="a""#);
        if let Some(tenant) = tenant {
            request.headers_mut().insert("x-tenant", tenant.parse().unwrap());
        }
        service.clone().oneshot(request)
    };
    let response = send(Some("shop")).await.unwrap();
    assert_eq!(
        text(response).await,
        r#"WROTE shop.account /pay/x%20y 40 Some(GrantId("a"))"#
    );
    for (tenant, detail) in [(None, "send X-Tenant"), (Some("No Tenant"), "a class name is")] {
        let body = problem(
            send(tenant).await.unwrap(),
            StatusCode::BAD_REQUEST,
            "malformed-key",
        )
        .await;
        assert!(body["detail"].as_str().unwrap().starts_with(detail), "{body}");
    }
}

#[tokio::test]
async fn refusals_may_be_worded_otherwise_but_never_as_success() {
    for (status, expected) in [(418, 418), (200, 428), (302, 428)] {
        let layer = building().answer_with(move |_, problem| {
            let body = format!("<p>{}</p>", problem.kind().title());
            let mut response = Response::new(bytes::Bytes::from(body));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            response
        });
        let service = layer.build().unwrap().layer(Router::new().fallback(any(write)));
        let request = post("/accounts/acct-1/transfers").body(Body::empty()).unwrap();
        let response = service.oneshot(request).await.unwrap();
        assert_eq!(response.status(), expected);
        assert!(response.extensions().get::<fence_http::Rejection>().is_some());
        assert!(response.extensions().get::<fence_http::Problem>().is_some());
        assert_eq!(
            text(response).await.starts_with("<p>fencing token required"),
            expected == 418
        );
    }
}
