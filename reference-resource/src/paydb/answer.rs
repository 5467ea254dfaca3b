//! Answers, and the problems among them.

use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::response::{IntoResponse, Response};
use fence_core::{Receipt, Refusal};
use fence_http::ProblemKind;
use fence_pg::{GuardError, Refused, StoredAnswer};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, StatusCode};
use serde::Serialize;

use crate::with_causes;

/// Why a request was not done.
#[derive(Debug)]
pub(super) enum Problem {
    /// The guard's reason.
    Guard(Box<fence_http::Problem>),
    /// paydb's own.
    Own(Own),
}

/// A problem of paydb's own: RFC 9457, as the guard's are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Own {
    #[serde(rename = "type")]
    uri: &'static str,
    title: &'static str,
    #[serde(serialize_with = "as_number")]
    pub(super) status: StatusCode,
    detail: String,
}

impl Own {
    pub(super) fn unknown_account(id: &str, status: StatusCode) -> Own {
        Own::new(
            "urn:paydb:problem:unknown-account",
            "unknown account",
            status,
            format!("there is no account {id:?}"),
        )
    }

    pub(super) fn unknown_route(path: &str) -> Own {
        let detail = format!("there is nothing at {path:?}; paydb --help lists the routes");
        Own::new(
            "urn:paydb:problem:unknown-route",
            "unknown route",
            StatusCode::NOT_FOUND,
            detail,
        )
    }

    pub(super) fn wrong_method(method: &Method) -> Own {
        let detail =
            format!("{method} does nothing here; Allow says what does, paydb --help lists the routes");
        Own::new(
            "urn:paydb:problem:wrong-method",
            "wrong method",
            StatusCode::METHOD_NOT_ALLOWED,
            detail,
        )
    }

    pub(super) fn account_exists(id: &str) -> Own {
        let detail = format!("there is an account {id:?} already");
        Own::new(
            "urn:paydb:problem:account-exists",
            "account exists",
            StatusCode::CONFLICT,
            detail,
        )
    }

    pub(super) fn too_little_money() -> Own {
        let title = "too little money";
        let detail = "the account holds less than the amount";
        Own::new(
            "urn:paydb:problem:too-little-money",
            title,
            StatusCode::UNPROCESSABLE_ENTITY,
            detail,
        )
    }

    pub(super) fn too_much_money() -> Own {
        let title = "too much money";
        let detail = "the receiving account cannot hold the amount";
        Own::new(
            "urn:paydb:problem:too-much-money",
            title,
            StatusCode::UNPROCESSABLE_ENTITY,
            detail,
        )
    }

    pub(super) fn invalid(detail: impl Into<String>) -> Own {
        let title = "the request makes no sense";
        Own::new(
            "urn:paydb:problem:invalid",
            title,
            StatusCode::UNPROCESSABLE_ENTITY,
            detail,
        )
    }

    pub(super) fn malformed(detail: impl Into<String>) -> Own {
        let title = "the request cannot be read";
        Own::new(
            "urn:paydb:problem:malformed",
            title,
            StatusCode::BAD_REQUEST,
            detail,
        )
    }

    pub(super) fn too_large(limit: usize) -> Own {
        let title = "the request is too large";
        let detail = format!("a body is at most {limit} bytes");
        Own::new(
            "urn:paydb:problem:too-large",
            title,
            StatusCode::PAYLOAD_TOO_LARGE,
            detail,
        )
    }

    pub(super) fn too_slow(limit: Duration) -> Own {
        let title = "the request is too slow";
        let detail = format!("a body arrives within {limit:?}");
        Own::new(
            "urn:paydb:problem:too-slow",
            title,
            StatusCode::REQUEST_TIMEOUT,
            detail,
        )
    }

    pub(super) fn idempotency_key(detail: impl Into<String>) -> Own {
        let title = "one Idempotency-Key required";
        Own::new(
            "urn:paydb:problem:idempotency-key",
            title,
            StatusCode::BAD_REQUEST,
            detail,
        )
    }

    pub(super) fn idempotency_key_reused() -> Own {
        let title = "the Idempotency-Key belongs to another request";
        let detail = "this key was completed with another body; a new request needs a new key";
        Own::new(
            "urn:paydb:problem:idempotency-key-reused",
            title,
            StatusCode::UNPROCESSABLE_ENTITY,
            detail,
        )
    }

    fn broken() -> Own {
        let title = "paydb is broken";
        let detail = "nothing was written; its log says more";
        Own::new(
            "urn:paydb:problem:broken",
            title,
            StatusCode::INTERNAL_SERVER_ERROR,
            detail,
        )
    }

    /// The body of the answer.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers always serialize")
    }

    fn new(uri: &'static str, title: &'static str, status: StatusCode, detail: impl Into<String>) -> Own {
        Own {
            uri,
            title,
            status,
            detail: detail.into(),
        }
    }
}

impl Problem {
    /// Whether it stays so, whenever it is asked again: an operator may still register an epoch, and a store come back.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Problem::Guard(problem) => {
                let kind = problem.kind();
                kind.status().is_client_error() && kind != ProblemKind::UnknownEpoch
            }
            Problem::Own(own) => own.status.is_client_error(),
        }
    }

    /// The problem details, as an answer's body has them.
    pub(super) fn details(self) -> serde_json::Value {
        let body = match self {
            Problem::Guard(problem) => problem.into_response::<Vec<u8>>().into_body(),
            Problem::Own(own) => own.text().into_bytes(),
        };
        serde_json::from_slice(&body).expect("problem details are JSON")
    }
}

impl From<Own> for Problem {
    fn from(own: Own) -> Problem {
        Problem::Own(own)
    }
}

impl From<fence_http::Problem> for Problem {
    fn from(problem: fence_http::Problem) -> Problem {
        Problem::Guard(Box::new(problem))
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Problem {
        Own::malformed(rejection.body_text()).into()
    }
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Problem {
        fence_pg::sqlx::sort(error).into()
    }
}

impl From<GuardError> for Problem {
    fn from(error: GuardError) -> Problem {
        let problem = match &error {
            GuardError::Refused(Refused::Claim(refusal)) => refused(refusal),
            // One claim is presented at a time; were there several, each is as stale as the first.
            GuardError::Refused(Refused::StaleKeys(keys)) => match keys.first() {
                Some(key) => refused(&Refusal::Stale {
                    presented: key.presented,
                    seen: key.seen,
                }),
                None => fence_http::Problem::new(ProblemKind::Misconfigured, with_causes(&error)),
            },
            GuardError::Refused(Refused::HistoryInDoubt(_)) => fence_http::Problem::unavailable(),
            GuardError::Refused(Refused::BelowOne) => fence_http::Problem::from(&Refusal::Malformed),
            GuardError::Refused(Refused::WrongKey(_) | Refused::UnknownClass(_)) | GuardError::Misuse(_) => {
                fence_http::Problem::new(ProblemKind::Misconfigured, with_causes(&error))
            }
            GuardError::Blocked { .. } => fence_http::Problem::blocked(),
            GuardError::Retryable { sqlstate, .. } => fence_http::Problem::retryable(sqlstate),
            GuardError::Unavailable { .. } => fence_http::Problem::unavailable(),
            GuardError::Unknown { .. } => fence_http::Problem::unknown_outcome(),
            GuardError::NotFound | GuardError::Database { .. } => {
                tracing::error!(error = with_causes(&error), "broken");
                return Own::broken().into();
            }
        };
        if problem.kind().status().is_server_error() {
            tracing::warn!(error = with_causes(&error), "the guard could not decide");
        }
        problem.into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        match self {
            Problem::Guard(problem) => problem.into_response::<Body>(),
            Problem::Own(own) => stored(StoredAnswer {
                status: own.status.as_u16(),
                content_type: content_type(own.status).to_owned(),
                body: own.text().into_bytes(),
            }),
        }
    }
}

/// An answer as it was stored, or is with its effect.
pub(super) fn stored(answer: StoredAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, answer.body).into_response();
    if let Ok(content_type) = HeaderValue::try_from(answer.content_type) {
        response.headers_mut().insert(CONTENT_TYPE, content_type);
    }
    response
}

/// JSON, a problem from 400 on.
pub(super) fn content_type(status: StatusCode) -> &'static str {
    if status.is_success() {
        "application/json"
    } else {
        "application/problem+json"
    }
}

/// Puts the guard's receipt beside an answer, where the layer looks for it.
pub(super) fn with_receipt(receipt: Receipt, response: impl IntoResponse) -> Response {
    let mut response = response.into_response();
    response.extensions_mut().insert(receipt);
    response
}

/// A refusal in the guard's words, and for an unknown epoch what its operator would run.
fn refused(refusal: &Refusal) -> fence_http::Problem {
    let problem = fence_http::Problem::from(refusal);
    match refusal {
        Refusal::UnknownEpoch { presented } => {
            let command = match presented.split() {
                Some((epoch, _)) => format!("SELECT fence.register_epoch('entity', {epoch})"),
                None => return problem,
            };
            let detail = format!("{}: {command}", problem.detail());
            problem.with_detail(detail)
        }
        _ => problem,
    }
}

fn as_number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}
