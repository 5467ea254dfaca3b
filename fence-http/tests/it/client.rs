//! The layer for clients, around hyper's client and reqwest's, against servers on sockets.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::any;
use fence_core::{Claim, Key, Refusal, Token};
use fence_http::Problem;
use fence_http::client::{
    Client, ClientError, ClientLayer, Holder, ReadBack, Resolved, Unknown, resolve, resolve_after_raise,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower::{Layer, Service, ServiceExt};

use super::*;

/// A hold of a test.
#[derive(Clone)]
struct Hold(Arc<Mutex<Option<i64>>>);

#[derive(Debug, thiserror::Error)]
#[error("the hold is over")]
struct Over;

impl Hold {
    fn of(token: i64) -> Hold {
        Hold(Arc::new(Mutex::new(Some(token))))
    }

    fn set(&self, token: Option<i64>) {
        *self.0.lock().unwrap() = token;
    }
}

impl Holder for Hold {
    type Error = Over;

    fn claim(&self) -> Result<Claim, Over> {
        let token = self.0.lock().unwrap().ok_or(Over)?;
        Ok(Claim {
            class: class(),
            key: Key::text("acct-1").unwrap(),
            token: Token::new(token).unwrap(),
            grant_id: Some(format!("g{token}").parse().unwrap()),
        })
    }
}

/// A resource that answers one problem or status, and keeps the tokens that it saw.
struct Resource {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Resource {
    async fn new(answer: impl Fn() -> Response<Body> + Clone + Send + Sync + 'static) -> Resource {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let handler = move |request: Request<Body>| {
            let (log, answer) = (Arc::clone(&log), answer.clone());
            async move {
                let tokens = request.headers().get_all(FENCING_TOKEN);
                let tokens: Vec<_> = tokens.iter().map(|value| value.to_str().unwrap()).collect();
                log.lock().unwrap().push(tokens.join(" and "));
                answer()
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!(
            "http://{}/accounts/acct-1/transfers",
            listener.local_addr().unwrap()
        );
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(any(handler))).await });
        Resource { url, seen }
    }

    async fn problem(problem: Problem) -> Resource {
        Resource::new(move || problem.clone().into_response()).await
    }

    async fn status(status: u16) -> Resource {
        Resource::new(move || {
            let mut response = Response::new(Body::from("in its own words"));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            response
        })
        .await
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    fn request(&self) -> reqwest::Request {
        reqwest::Request::new(http::Method::POST, self.url.parse().unwrap())
    }
}

fn client<H: Holder>(hold: H) -> Client<reqwest::Client, H> {
    let plain = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build();
    ClientLayer::new(hold)
        .timeout(Duration::from_secs(20))
        .layer(plain.unwrap())
}

async fn send<H: Holder>(
    client: &mut Client<reqwest::Client, H>,
    resource: &Resource,
) -> Result<StatusCode, ClientError> {
    let answered = client.ready().await.unwrap().call(resource.request()).await;
    answered.map(|answer| answer.status())
}

fn stale() -> Problem {
    Problem::from(&Refusal::Stale {
        presented: Token::new(33).unwrap(),
        seen: Token::new(34).unwrap(),
    })
}

#[tokio::test]
async fn a_request_carries_the_holds_token_and_grant() {
    let resource = Resource::status(201).await;
    let mut client = client(Hold::of(33));
    assert_eq!(send(&mut client, &resource).await.unwrap(), 201);
    assert_eq!(resource.seen(), [r#""33";grant="g33""#]);
}

#[tokio::test]
async fn hypers_client_is_served_as_well() {
    use hyper_util::client::legacy::Client as Hyper;
    use hyper_util::rt::TokioExecutor;

    let resource = Resource::problem(stale()).await;
    let plain: Hyper<_, Body> = Hyper::builder(TokioExecutor::new()).build_http();
    let mut client = ClientLayer::new(Hold::of(33)).layer(plain.clone());
    let request = || post(&resource.url).body(Body::empty()).unwrap();
    let refused = client.ready().await.unwrap().call(request()).await.unwrap_err();
    assert!(matches!(refused, ClientError::Refused(refused) if refused.is_terminal()));
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let mut client = ClientLayer::new(Hold::of(33)).layer(plain);
    let nowhere = post(&format!("http://{free}/")).body(Body::empty()).unwrap();
    let failed = client.ready().await.unwrap().call(nowhere).await.unwrap_err();
    assert!(matches!(failed, ClientError::NotConnected(_)), "{failed:?}");
}

#[tokio::test]
async fn after_the_deadline_nothing_is_sent() {
    let resource = Resource::status(201).await;
    let hold = Hold::of(33);
    let mut client = client(hold.clone());
    hold.set(None);
    let refused = send(&mut client, &resource).await.unwrap_err();
    assert!(matches!(refused, ClientError::NotHeld(_)), "{refused:?}");
    assert_eq!(resource.seen(), [""; 0]);
}

#[tokio::test]
async fn a_refusal_ends_the_grant_and_no_newer_token_is_ever_swapped_in() {
    let resource = Resource::problem(stale()).await;
    let hold = Hold::of(33);
    let mut client = client(hold.clone());
    for sent in [true, false, false] {
        let Err(ClientError::Refused(refused)) = send(&mut client, &resource).await else {
            panic!("not refused");
        };
        assert_eq!(refused.sent, sent);
        assert_eq!(refused.kind, fence_http::ProblemKind::Stale);
    }
    // Whoever retries around it with a hold that was acquired anew gets nowhere either.
    hold.set(Some(35));
    let again = send(&mut client.clone(), &resource).await.unwrap_err();
    assert!(matches!(again, ClientError::Refused(_)), "{again:?}");
    assert_eq!(
        resource.seen(),
        [r#""33";grant="g33""#],
        "sent once, and never another token"
    );
}

#[tokio::test]
async fn a_client_belongs_to_its_first_grant() {
    let resource = Resource::status(201).await;
    let hold = Hold::of(33);
    let layer = ClientLayer::new(hold.clone());
    let plain = reqwest::Client::builder().no_proxy().build().unwrap();
    let (mut first, mut second) = (layer.layer(plain.clone()), layer.layer(plain));
    send(&mut first, &resource).await.unwrap();
    hold.set(Some(34));
    for client in [&mut first, &mut second] {
        let refused = send(client, &resource).await.unwrap_err();
        assert!(matches!(refused, ClientError::OtherGrant), "{refused:?}");
    }
    assert_eq!(resource.seen().len(), 1);
}

#[tokio::test]
async fn a_request_with_a_token_of_its_own_is_not_sent() {
    let resource = Resource::status(201).await;
    let mut client = client(Hold::of(33));
    let mut request = resource.request();
    request
        .headers_mut()
        .insert(FENCING_TOKEN, r#""99""#.parse().unwrap());
    let refused = client.ready().await.unwrap().call(request).await.unwrap_err();
    assert!(matches!(refused, ClientError::TokenGiven), "{refused:?}");
    assert_eq!(resource.seen(), [""; 0]);
}

#[tokio::test]
async fn answers_become_their_outcomes() {
    type Is = fn(&ClientError) -> bool;
    let refused: Is = |error| matches!(error, ClientError::Refused(refused) if !refused.is_terminal());
    let rejected: Is = |error| matches!(error, ClientError::Rejected(_));
    let unknown: Is = |error| matches!(error, ClientError::Unknown(Unknown::Answered(_)));
    let later = |error: &ClientError| error.retry_after() == Some(Duration::from_secs(1));
    let problems: Vec<(Problem, Is)> = vec![
        (
            Problem::from(&Refusal::UnknownEpoch {
                presented: Token::new(33).unwrap(),
            }),
            refused,
        ),
        (Problem::from(&fence_http::HeaderError::Missing), refused),
        (Problem::blocked(), |error| {
            matches!(error, ClientError::Blocked(_))
        }),
        (Problem::retryable("40001"), |error| {
            matches!(error, ClientError::Retryable(_))
        }),
        (Problem::unavailable(), |error| {
            matches!(error, ClientError::Retryable(_))
        }),
        (Problem::unknown_outcome(), unknown),
        (Problem::new(fence_http::ProblemKind::NoReceipt, "x"), unknown),
        (Problem::new(fence_http::ProblemKind::NoRule, "x"), rejected),
    ];
    for (problem, is) in problems {
        let kind = problem.kind();
        let resource = Resource::problem(problem).await;
        let error = send(&mut client(Hold::of(33)), &resource).await.unwrap_err();
        assert!(is(&error), "{kind:?}: {error:?}");
        assert_eq!(later(&error), kind.status() == 503, "{kind:?}");
    }
    for (status, is) in [
        (404, (|error| matches!(error, ClientError::NotFound(_))) as Is),
        (409, rejected),
        (412, rejected),
        (422, rejected),
        (307, rejected),
        (500, unknown),
        (502, unknown),
        (503, unknown),
    ] {
        let resource = Resource::status(status).await;
        let error = send(&mut client(Hold::of(33)), &resource).await.unwrap_err();
        assert!(is(&error), "{status}: {error:?}");
    }
}

#[tokio::test]
async fn a_stored_answer_that_only_looks_like_a_refusal_is_none() {
    let body = stale().into_response::<axum::body::Bytes>().into_body();
    let resource = Resource::new(move || {
        let mut response = Response::new(Body::from(body.clone()));
        *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
        let kind = "application/problem+json".parse().unwrap();
        response.headers_mut().insert("content-type", kind);
        response
    })
    .await;
    let error = send(&mut client(Hold::of(33)), &resource).await.unwrap_err();
    assert!(matches!(error, ClientError::Rejected(_)), "{error:?}");
}

/// A server that reads a request and then does `what` with its connection; it counts requests.
async fn mute(hang: bool) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&requests);
    tokio::spawn(async move {
        let mut held = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut some = [0; 1024];
            let read = stream.read(&mut some).await.unwrap();
            count.fetch_add(u32::from(read > 0), Ordering::SeqCst);
            if hang {
                held.push(stream);
            } else {
                stream.write_all(b"HTTP/1.1 2").await.unwrap();
            }
        }
    });
    (url, requests)
}

#[tokio::test]
async fn a_cut_connection_and_a_time_that_ran_out_are_unknown_and_sent_once() {
    for hang in [false, true] {
        let (url, requests) = mute(hang).await;
        let plain = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut client = ClientLayer::new(Hold::of(33))
            .timeout(Duration::from_millis(300))
            .layer(plain);
        let request = reqwest::Request::new(http::Method::POST, url.parse().unwrap());
        let error = client.ready().await.unwrap().call(request).await.unwrap_err();
        match error {
            ClientError::Unknown(Unknown::TimedOut(_)) if hang => {}
            ClientError::Unknown(Unknown::Lost(_)) if !hang => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(requests.load(Ordering::SeqCst), 1, "nothing is sent twice");
    }
}

#[tokio::test]
async fn where_no_connection_comes_about_nothing_was_sent() {
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let mut client = client(Hold::of(33));
    let request = reqwest::Request::new(http::Method::POST, format!("http://{free}/").parse().unwrap());
    let error = client.ready().await.unwrap().call(request).await.unwrap_err();
    assert!(matches!(error, ClientError::NotConnected(_)), "{error:?}");
}

#[tokio::test]
async fn reading_back_resolves_what_is_unknown() {
    let quick = ReadBack {
        reads: 3,
        pause: Duration::from_millis(1),
    };
    let mut found = [Err("down"), Ok(None), Ok(Some(7))].into_iter();
    let landed = resolve(quick, async || found.next().unwrap()).await;
    assert_eq!(landed, Ok(Resolved::Landed(7)));
    let mut reads = 0;
    let absent = resolve(quick, async || {
        reads += 1;
        Ok::<Option<u8>, &str>(None)
    });
    assert_eq!(absent.await, Ok(Resolved::NotSeen), "it may still come");
    assert_eq!(reads, 3);
    let broken = resolve(quick, async || Err::<Option<u8>, _>("down")).await;
    assert_eq!(broken, Err("down"));
}

#[tokio::test]
async fn absence_is_final_only_after_a_later_grant_has_raised_the_mark() {
    let raised = AtomicBool::new(false);
    let raise = async || {
        raised.store(true, Ordering::SeqCst);
        Ok::<(), &str>(())
    };
    let read = async || {
        assert!(raised.load(Ordering::SeqCst), "the mark goes first");
        Ok::<Option<u8>, &str>(None)
    };
    assert_eq!(resolve_after_raise(raise, read).await, Ok(Resolved::NotLanded));
    let failed = resolve_after_raise(async || Err("blocked"), async || Ok(Some(1))).await;
    assert_eq!(failed, Err("blocked"));
}
