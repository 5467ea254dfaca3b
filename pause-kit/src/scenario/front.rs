//! The kit's own requests to the resource's front door.

use std::net::SocketAddr;
use std::time::Duration;

use crate::run::RunError;
use crate::target::{Http, Place, RequestForm, Values};

use super::half::filled;

/// Where a resource's clients reach it, and what they speak.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    pub(crate) http: Http,
}

/// What a resource answered to the kit itself.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    /// The problem details' `type`.
    pub(crate) problem: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// Why the resource gave the kit no answer.
#[derive(Debug, thiserror::Error)]
#[error("{method} {path} got no answer from the resource")]
pub(crate) struct NoAnswer {
    method: String,
    path: String,
    source: reqwest::Error,
}

/// A request of a set-up, which is declared at this place: anything but 2xx ends the run.
pub(crate) async fn prepare(
    to: Door,
    form: &RequestForm,
    values: &Values,
    at: Place,
) -> Result<(), RunError> {
    let step = format!("{} {}", form.method, filled(&form.path, values)?);
    let answered = send(to, form, values, None)
        .await?
        .map_err(RunError::lost("the resource"))?;
    match answered.status {
        200..=299 => Ok(()),
        status => Err(RunError::Declared {
            at,
            why: format!(
                "{step} was answered {status}: {}",
                String::from_utf8_lossy(&answered.body)
            ),
        }),
    }
}

/// Sends one request over a connection of its own, with this `Fencing-Token` where there is one.
pub(crate) async fn send(
    to: Door,
    form: &RequestForm,
    values: &Values,
    token: Option<&str>,
) -> Result<Result<Answered, NoAnswer>, RunError> {
    let path = filled(&form.path, values)?;
    let method =
        reqwest::Method::from_bytes(form.method.as_bytes()).map_err(RunError::lost("no HTTP method"))?;
    let mut request = client(to.http).request(method, format!("http://{}{path}", to.address));
    for (name, value) in &form.headers {
        request = request.header(name, filled(value, values)?);
    }
    if let Some(token) = token {
        request = request.header("Fencing-Token", token);
    }
    if let Some(body) = &form.body {
        request = request
            .header("Content-Type", "application/json")
            .body(filled(body, values)?);
    }
    let answered = async {
        let answer = request.send().await?;
        let status = answer.status().as_u16();
        let problem = answer
            .headers()
            .get("content-type")
            .is_some_and(|media| media.as_bytes().starts_with(b"application/problem+json"));
        let body = answer.bytes().await?.to_vec();
        let problem = problem.then(|| problem_type(&body)).flatten();
        Ok(Answered {
            status,
            problem,
            body,
        })
    };
    Ok(answered.await.map_err(|source| NoAnswer {
        method: form.method.clone(),
        path,
        source,
    }))
}

fn problem_type(body: &[u8]) -> Option<String> {
    let problem: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(problem.get("type")?.as_str()?.to_owned())
}

/// One client a request: a connection that is kept could stand at a stopped replica.
fn client(http: Http) -> reqwest::Client {
    let builder = match http {
        Http::One => reqwest::Client::builder().http1_only(),
        Http::Two => reqwest::Client::builder().http2_prior_knowledge(),
    };
    builder
        .timeout(Duration::from_secs(15))
        .no_proxy()
        .build()
        .expect("a client without TLS and without a proxy can always be built")
}
