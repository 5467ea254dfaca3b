//! paydb, as a worker speaks to it.

use std::time::{Duration, Instant};

use fence_core::{Claim, Key};
use fence_http::{FENCING_TOKEN, header_value};
use http::{StatusCode, Version};
use reqwest::{Client, RequestBuilder, Url};
use serde::Deserialize;
use serde_json::json;

use super::exit::WorkerError;
use super::journal::Entry;
use crate::with_causes;

/// How long an answer is waited for, and a job.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long until a job is asked for again.
const BETWEEN: Duration = Duration::from_millis(50);

/// Every request goes out on a connection of its own and waits a minute for its answer. It is never cut short when the hold
/// ends: that would be a write that may or may not be on its way. Nothing is sent a second time.
pub(super) struct Resource<'a> {
    base: &'a Url,
    account: &'a Key,
    version: Version,
}

/// A transfer, as far as a worker needs it.
#[derive(Debug, Deserialize)]
pub(super) struct Transfer {
    pub(super) reference: String,
    pub(super) amount: i64,
}

/// A transfer that is made later, as far as a worker needs it.
#[derive(Debug, Deserialize)]
struct Job {
    idempotency_key: String,
    state: State,
    problem: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Accepted,
    Done,
    Refused,
}

/// An answer below 400, or the resource's reason.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: String,
}

impl<'a> Resource<'a> {
    pub(super) fn new(base: &'a Url, account: &'a Key) -> Resource<'a> {
        Resource {
            base,
            account,
            version: Version::HTTP_11,
        }
    }

    /// The same, spoken to in HTTP/2 or HTTP/1.1.
    pub(super) fn over(self, version: Version) -> Resource<'a> {
        Resource { version, ..self }
    }

    /// Raises the mark of the account to this claim.
    pub(super) async fn fence(&self, claim: &Claim) -> Result<Answer, WorkerError> {
        let request = client(self.version)?
            .post(self.url("fence")?)
            .header(FENCING_TOKEN, header_value(claim));
        answer("raise the mark", request).await
    }

    /// The account's transfers.
    pub(super) async fn transfers(&self) -> Result<Vec<Transfer>, WorkerError> {
        let step = "read the transfers";
        let answer = answer(step, client(self.version)?.get(self.url("transfers")?)).await?;
        serde_json::from_str(&answer.body).map_err(|error| WorkerError::Refused {
            step,
            answer: error.to_string(),
        })
    }

    /// Makes a transfer.
    pub(super) async fn transfer(&self, entry: &Entry) -> Result<Answer, WorkerError> {
        answer("make the transfer", self.order(entry)?).await
    }

    /// Has a transfer made, at once or later.
    pub(super) async fn transfer_later(&self, entry: &Entry) -> Result<Answer, WorkerError> {
        let request = self.order(entry)?.header("Prefer", "respond-async");
        answer("have the transfer made", request).await
    }

    /// Waits until the transfer that was accepted for later is made, or refused. Nobody tells when that is, so it is asked.
    pub(super) async fn job_of(&self, entry: &Entry) -> Result<Answer, WorkerError> {
        let step = "wait for the job";
        let give_up = Instant::now() + PATIENCE;
        while Instant::now() < give_up {
            let request = client(self.version)?.get(self.url("jobs")?);
            let answer = answer(step, request).await?;
            let jobs: Vec<Job> =
                serde_json::from_str(&answer.body).map_err(|error| WorkerError::Refused {
                    step,
                    answer: error.to_string(),
                })?;
            let job = jobs
                .into_iter()
                .find(|job| job.idempotency_key == entry.idempotency_key);
            match job.map(|job| (job.state, job.problem)) {
                Some((State::Done, _)) => return Ok(answer),
                Some((State::Refused, problem)) => {
                    let answer = problem.map_or_else(String::new, |problem| problem.to_string());
                    return Err(match is_fence_problem(&answer) {
                        true => WorkerError::Fenced { step, answer },
                        false => WorkerError::Refused { step, answer },
                    });
                }
                Some((State::Accepted, _)) | None => tokio::time::sleep(BETWEEN).await,
            }
        }
        Err(WorkerError::Unsettled {
            step,
            why: format!("it was neither made nor refused within {PATIENCE:?}"),
        })
    }

    fn order(&self, entry: &Entry) -> Result<RequestBuilder, WorkerError> {
        let body = json!({ "to": entry.to, "amount": entry.amount, "reference": entry.reference });
        let request = client(self.version)?.post(self.url("transfers")?);
        Ok(request
            .header(FENCING_TOKEN, header_value(&entry.claim()))
            .header("Idempotency-Key", &entry.idempotency_key)
            .json(&body))
    }

    fn url(&self, what: &str) -> Result<Url, WorkerError> {
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut path) => {
                path.pop_if_empty()
                    .extend(["accounts", self.account.as_str(), what]);
            }
            Err(()) => {
                return Err(WorkerError::Refused {
                    step: "address the resource",
                    answer: format!("{} has no path", self.base),
                });
            }
        }
        Ok(url)
    }
}

/// A client of its own for each request, so that no connection is used twice. HTTP/2 is spoken from the first byte on: nothing
/// is asked beforehand.
pub(super) fn client(version: Version) -> Result<Client, WorkerError> {
    let builder = match version {
        Version::HTTP_2 => Client::builder().http2_prior_knowledge(),
        _ => Client::builder().http1_only(),
    };
    builder
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .pool_max_idle_per_host(0)
        .timeout(PATIENCE)
        .build()
        .map_err(|error| WorkerError::unreachable("the resource", error))
}

/// Sends a request once, and tells the outcomes apart.
pub(super) async fn answer(step: &'static str, request: RequestBuilder) -> Result<Answer, WorkerError> {
    let unsettled = |error: reqwest::Error| WorkerError::Unsettled {
        step,
        why: with_causes(&error),
    };
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) if error.is_connect() => return Err(WorkerError::unreachable("the resource", error)),
        Err(error) => return Err(unsettled(error)),
    };
    let status = response.status();
    println!("{step}: answered {}", status.as_u16());
    let body = response.text().await.map_err(unsettled)?;
    if status.is_success() {
        return Ok(Answer { status, body });
    }
    Err(match status.as_u16() {
        // Guard problems, and a replay of the guard's own words is never among them.
        409 | 412 | 428 if is_fence_problem(&body) => WorkerError::Fenced { step, answer: body },
        500.. => WorkerError::Unsettled { step, why: body },
        _ => WorkerError::Refused { step, answer: body },
    })
}

fn is_fence_problem(body: &str) -> bool {
    #[derive(Deserialize)]
    struct Problem {
        #[serde(rename = "type")]
        uri: String,
    }
    serde_json::from_str(body).is_ok_and(|problem: Problem| problem.uri.starts_with("urn:fence:problem:"))
}
