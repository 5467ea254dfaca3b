//! RFC 9457 problem details for everything that a guard answers.

use std::fmt;

use bytes::Bytes;
use fence_core::{MissingPart, Refusal, Token};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use crate::header::HeaderError;

/// The kinds of problem, each with its own `type`, status and title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemKind {
    /// No token where one is needed. Present what the grant gave.
    MissingToken,
    /// No grant id where the class needs one. Present what the grant gave.
    MissingGrant,
    /// The header is not in its form. Send it as it was granted.
    Malformed,
    /// More than one header or value. Send one.
    MoreThanOne,
    /// The key in the path or header is no key. Name the row as the resource does.
    MalformedKey,
    /// A newer holder has been here. Terminal: stop, and do not fetch a newer token for the same work.
    Stale,
    /// Another grant has used this token. Terminal, and the operator must advance the epoch.
    Collision,
    /// The token's epoch is not registered. May resolve once an operator has registered it.
    UnknownEpoch,
    /// An older holder's open transaction is in the way. Nothing was written; the same request may be sent again.
    Blocked,
    /// The database asked for another try. Nothing was written; the same request may be sent again.
    Retryable,
    /// The guard's store cannot answer, and nothing can have been written. The same request may be sent again.
    Unavailable,
    /// The answer got lost: the write may have landed. Send the same request with the same token and idempotency key, or
    /// read back. There is no `Retry-After`, because a proxy would take it as leave to send it again.
    UnknownOutcome,
    /// No rule of the layer covers this route. The service's owner must guard or exempt it.
    NoRule,
    /// Strict mode: the handler answered success without a receipt. The write has happened; the handler is wrong.
    NoReceipt,
    /// The guard is set up wrongly: an unknown class, or a key that the write does not touch. Nothing was written; the
    /// service's owner must mend it.
    Misconfigured,
}

impl ProblemKind {
    /// Every kind.
    pub const ALL: [ProblemKind; 15] = [
        ProblemKind::MissingToken,
        ProblemKind::MissingGrant,
        ProblemKind::Malformed,
        ProblemKind::MoreThanOne,
        ProblemKind::MalformedKey,
        ProblemKind::Stale,
        ProblemKind::Collision,
        ProblemKind::UnknownEpoch,
        ProblemKind::Blocked,
        ProblemKind::Retryable,
        ProblemKind::Unavailable,
        ProblemKind::UnknownOutcome,
        ProblemKind::NoRule,
        ProblemKind::NoReceipt,
        ProblemKind::Misconfigured,
    ];

    /// The kind that a problem's `type` names.
    pub fn from_uri(uri: &str) -> Option<ProblemKind> {
        ProblemKind::ALL.into_iter().find(|kind| kind.uri() == uri)
    }

    /// The URI that names the kind, the problem's `type`.
    pub fn uri(self) -> &'static str {
        self.row().0
    }

    /// The status that the kind is answered with.
    pub fn status(self) -> StatusCode {
        self.row().1
    }

    /// The problem's `title`, the same for every problem of the kind.
    pub fn title(self) -> &'static str {
        self.row().2
    }

    /// The seconds of `Retry-After`, where sending the same request again is right.
    pub fn retry_after_seconds(self) -> Option<u32> {
        (self.status() == StatusCode::SERVICE_UNAVAILABLE).then_some(1)
    }

    fn row(self) -> (&'static str, StatusCode, &'static str) {
        use ProblemKind as K;
        use StatusCode as S;
        match self {
            K::MissingToken => (
                "urn:fence:problem:missing-token",
                S::PRECONDITION_REQUIRED,
                "fencing token required",
            ),
            K::MissingGrant => (
                "urn:fence:problem:missing-grant",
                S::PRECONDITION_REQUIRED,
                "grant id required",
            ),
            K::Malformed => (
                "urn:fence:problem:malformed",
                S::BAD_REQUEST,
                "malformed fencing token",
            ),
            K::MoreThanOne => (
                "urn:fence:problem:more-than-one",
                S::BAD_REQUEST,
                "more than one fencing token",
            ),
            K::MalformedKey => ("urn:fence:problem:malformed-key", S::BAD_REQUEST, "malformed key"),
            K::Stale => (
                "urn:fence:problem:stale",
                S::PRECONDITION_FAILED,
                "stale fencing token",
            ),
            K::Collision => (
                "urn:fence:problem:collision",
                S::PRECONDITION_FAILED,
                "token of another grant",
            ),
            K::UnknownEpoch => ("urn:fence:problem:unknown-epoch", S::CONFLICT, "unknown epoch"),
            K::Blocked => (
                "urn:fence:problem:blocked",
                S::SERVICE_UNAVAILABLE,
                "blocked by an older transaction",
            ),
            K::Retryable => (
                "urn:fence:problem:retryable",
                S::SERVICE_UNAVAILABLE,
                "not written, try again",
            ),
            K::Unavailable => (
                "urn:fence:problem:unavailable",
                S::SERVICE_UNAVAILABLE,
                "the guard cannot answer",
            ),
            K::UnknownOutcome => (
                "urn:fence:problem:unknown-outcome",
                S::INTERNAL_SERVER_ERROR,
                "outcome unknown",
            ),
            K::NoRule => (
                "urn:fence:problem:no-rule",
                S::NOT_FOUND,
                "no fencing rule covers this route",
            ),
            K::NoReceipt => (
                "urn:fence:problem:no-receipt",
                S::INTERNAL_SERVER_ERROR,
                "answered without a receipt",
            ),
            K::Misconfigured => (
                "urn:fence:problem:misconfigured",
                S::INTERNAL_SERVER_ERROR,
                "the guard is set up wrongly",
            ),
        }
    }
}

/// One problem: a kind, a text for a person, and the token that the request presented.
///
/// ```
/// use fence_core::{Refusal, Token};
/// use fence_http::Problem;
///
/// let refusal = Refusal::Stale { presented: Token::new(33)?, seen: Token::new(34)? };
/// let response: http::Response<bytes::Bytes> = Problem::from(&refusal).into_response();
/// assert_eq!(response.status(), 412);
/// assert_eq!(response.headers()["content-type"], "application/problem+json");
/// assert!(response.body().starts_with(br#"{"type":"urn:fence:problem:stale","title":"stale fencing token","status":412"#));
/// assert!(!response.body().windows(2).any(|two| two == b"34"), "the mark is not echoed");
/// # Ok::<(), fence_core::TokenRangeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    kind: ProblemKind,
    detail: String,
    presented: Option<Token>,
}

impl Problem {
    /// A problem with a text of the caller's own. Never put a mark into `detail`: who was refused could present it.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Problem {
        Problem {
            kind,
            detail: detail.into(),
            presented: None,
        }
    }

    /// An older holder's open transaction is in the way, for which the guard waited as long as it may.
    pub fn blocked() -> Problem {
        Problem::new(
            ProblemKind::Blocked,
            "an older holder's open transaction is in the way; nothing was written, send the same request again",
        )
    }

    /// The database asked for another try, with this SQLSTATE or another store's word for it.
    pub fn retryable(code: &str) -> Problem {
        let detail = format!("the database asked for another try ({code}); nothing was written");
        Problem::new(ProblemKind::Retryable, detail)
    }

    /// The guard's store cannot answer, and nothing can have been written.
    pub fn unavailable() -> Problem {
        Problem::new(
            ProblemKind::Unavailable,
            "the guard's store cannot answer; nothing was written, send the same request again",
        )
    }

    /// The outcome is unknown: the write may have landed.
    pub fn unknown_outcome() -> Problem {
        Problem::new(
            ProblemKind::UnknownOutcome,
            "the answer was lost and the write may have landed; read back, or send the same request with the same token \
             and idempotency key",
        )
    }

    /// The same problem in other words, such as with what an operator of this resource would run. Never put a mark into
    /// them.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Problem {
        self.detail = detail.into();
        self
    }

    /// The kind.
    pub fn kind(&self) -> ProblemKind {
        self.kind
    }

    /// The text for a person.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The answer: status, `application/problem+json`, `Retry-After` where the same request may be sent again. The problem
    /// itself rides in the response's extensions, so that layers around can log it without reading the body.
    pub fn into_response<B: From<Bytes>>(self) -> Response<B> {
        let body = serde_json::to_vec(&Body {
            uri: self.kind.uri(),
            title: self.kind.title(),
            status: self.kind.status().as_u16(),
            detail: &self.detail,
            presented: self.presented,
        })
        .expect("texts and numbers always serialize");
        let length = body.len();
        let mut response = Response::new(B::from(Bytes::from(body)));
        *response.status_mut() = self.kind.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        if let Some(seconds) = self.kind.retry_after_seconds() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<&Refusal> for Problem {
    fn from(refusal: &Refusal) -> Problem {
        let (kind, presented, detail) = match refusal {
            Refusal::Stale { presented, .. } => (
                ProblemKind::Stale,
                Some(*presented),
                format!(
                    "token {presented} is older than one already accepted for this key; stop, and do not fetch a newer \
                     token for the same work"
                ),
            ),
            Refusal::Collision { token } => (
                ProblemKind::Collision,
                Some(*token),
                format!(
                    "token {token} was already used by another grant; an operator must advance the epoch"
                ),
            ),
            Refusal::UnknownEpoch { presented } => (
                ProblemKind::UnknownEpoch,
                Some(*presented),
                format!(
                    "token {presented} lies outside every registered range; an operator may register its epoch"
                ),
            ),
            Refusal::Missing(MissingPart::Token) => return Problem::from(&HeaderError::Missing),
            Refusal::Missing(MissingPart::GrantId) => (
                ProblemKind::MissingGrant,
                None,
                format!("this class needs the grant id as well; send {FORM}"),
            ),
            Refusal::Malformed => (ProblemKind::Malformed, None, format!("send {FORM}")),
        };
        Problem {
            kind,
            detail,
            presented,
        }
    }
}

impl From<&HeaderError> for Problem {
    fn from(error: &HeaderError) -> Problem {
        let kind = match error {
            HeaderError::Missing => ProblemKind::MissingToken,
            HeaderError::MoreThanOne => ProblemKind::MoreThanOne,
            _ => ProblemKind::Malformed,
        };
        let form = match error {
            HeaderError::BareNumber { token: Some(token) } => FORM.replace("TOKEN", &token.to_string()),
            _ => FORM.to_owned(),
        };
        Problem::new(kind, format!("{}; send {form}", Chain(error)))
    }
}

/// The header as it should be sent. It shows no made-up number: who sent that would pass for a later holder.
const FORM: &str =
    r#"Fencing-Token: "TOKEN";grant="GRANT-ID", with the token and grant id that the lock gave"#;

/// An error and its sources on one line.
struct Chain<'a>(&'a dyn std::error::Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        match self.0.source() {
            Some(source) => write!(f, ": {}", Chain(source)),
            None => Ok(()),
        }
    }
}

#[derive(serde::Serialize)]
struct Body<'a> {
    #[serde(rename = "type")]
    uri: &'a str,
    title: &'a str,
    status: u16,
    detail: &'a str,
    /// A string: a JSON number would be rounded by a reader that holds numbers as doubles.
    #[serde(skip_serializing_if = "Option::is_none")]
    presented: Option<Token>,
}
