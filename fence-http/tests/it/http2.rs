//! The same over HTTP/2.

use axum::Router;
use axum::body::Bytes;
use axum::routing::any;
use fence_http::{Linger, Problem};
use tokio::net::TcpListener;
use tower::Layer;
use tower::make::Shared;

use super::*;

async fn serve(router: Router, linger: Linger) -> String {
    let service = building().linger(linger).build().unwrap().layer(router);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Shared::new(service)).await });
    format!("http://{address}/accounts/acct-1/transfers")
}

fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .http2_prior_knowledge()
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_token_is_read_and_a_refusal_answered_while_a_body_still_arrives() {
    let refuse = async || Problem::blocked().into_response::<Body>();
    let url = serve(Router::new().fallback(any(refuse)), Linger::default()).await;
    let client = client();
    for (token, status) in [(None, 428), (Some("40"), 400), (Some(r#""40";grant="a""#), 503)] {
        let mut request = client.post(&url).body(vec![b'x'; 4 << 20]);
        if let Some(token) = token {
            request = request.header("Fencing-Token", token);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.version(), http::Version::HTTP_2);
        assert_eq!(response.status(), status);
    }
}

#[tokio::test]
async fn beyond_the_bound_one_stream_ends_and_the_connection_goes_on() {
    let read = async |body: Bytes| body.len().to_string();
    let linger = Linger {
        max_bytes: 1024,
        ..Linger::default()
    };
    let url = serve(Router::new().fallback(any(read)), linger).await;
    let client = client();
    let refused = client.post(&url).body(vec![b'x'; 1 << 20]).send().await;
    if let Ok(refused) = refused {
        assert_eq!(refused.status(), 428);
        assert!(!refused.headers().contains_key("connection"));
    }
    let admitted = client
        .post(&url)
        .header("Fencing-Token", r#""40""#)
        .body("abc")
        .send()
        .await
        .unwrap();
    assert_eq!(admitted.text().await.unwrap(), "3");
}
