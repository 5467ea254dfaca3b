//! The one place that tells the outcomes of a request apart.

use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::Deserialize;

use super::error::{Answer, ClientError, Refused, Unknown};
use super::wire::Reply;
use crate::problem::ProblemKind;

/// The most that is read of an answer that is not success.
const LIMIT_BYTES: usize = 64 << 10;

pub(super) async fn sort<R: Reply>(reply: R) -> Result<R, ClientError> {
    let status = reply.status();
    if status.is_success() || status == StatusCode::SEE_OTHER {
        return Ok(reply);
    }
    let headers = Box::new(reply.headers().clone());
    let answer = Answer {
        status,
        headers,
        body: reply.read(LIMIT_BYTES).await,
    };
    Err(judge(answer))
}

/// What an answer that is not success means.
fn judge(answer: Answer) -> ClientError {
    use ProblemKind as K;
    match kind(&answer) {
        Some(
            kind @ (K::Stale
            | K::Collision
            | K::UnknownEpoch
            | K::MissingToken
            | K::MissingGrant
            | K::Malformed
            | K::MoreThanOne),
        ) => ClientError::Refused(Refused {
            kind,
            answer,
            sent: true,
        }),
        Some(K::Blocked) => ClientError::Blocked(answer),
        Some(K::Retryable | K::Unavailable) => ClientError::Retryable(answer),
        Some(K::UnknownOutcome | K::NoReceipt) => ClientError::Unknown(Unknown::Answered(answer)),
        Some(K::MalformedKey | K::NoRule | K::Misconfigured) => ClientError::Rejected(answer),
        // A proxy's 502 or 504, or a handler that broke: the request may have been done.
        None if answer.status.is_server_error() => ClientError::Unknown(Unknown::Answered(answer)),
        None if answer.status == StatusCode::NOT_FOUND => ClientError::NotFound(answer),
        None => ClientError::Rejected(answer),
    }
}

/// The guard's own kind of problem, where the answer is one. Its status must be the kind's, so that no body that was stored
/// elsewhere is taken for a refusal.
fn kind(answer: &Answer) -> Option<ProblemKind> {
    #[derive(Deserialize)]
    struct Problem {
        #[serde(rename = "type")]
        uri: String,
    }
    let content_type = answer.headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let essence = content_type.split(';').next()?.trim();
    if !essence.eq_ignore_ascii_case("application/problem+json") {
        return None;
    }
    let problem: Problem = serde_json::from_slice(&answer.body).ok()?;
    let kind = ProblemKind::from_uri(&problem.uri)?;
    (kind.status() == answer.status).then_some(kind)
}
