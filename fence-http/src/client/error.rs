//! The outcomes of a request that are not success.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use crate::problem::ProblemKind;

/// Why a request did not succeed, or is not known to have. There is no true and false here.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The hold gave no token: it is draining, or over. Nothing was sent. Stop, unless the hold says that it may resolve.
    #[error("the hold gave no token, nothing was sent")]
    NotHeld(#[source] Box<dyn Error + Send + Sync>),
    /// The hold gave another grant than the one that this client belongs to. Nothing was sent. Work under a new grant starts
    /// anew, with a client of its own: it raises the mark and reads before it writes.
    #[error("the hold has another grant than this client, nothing was sent")]
    OtherGrant,
    /// The request brought a `Fencing-Token` of its own. Nothing was sent. Leave the header to this layer.
    #[error("the request carries a fencing token already, nothing was sent")]
    TokenGiven,
    /// The resource refused the claim, and nothing was written. Where it [is terminal](Refused::is_terminal), stop the work.
    #[error("refused: {0}")]
    Refused(Refused),
    /// What the request names is not there. Nothing was written.
    #[error("not found: {0}")]
    NotFound(Answer),
    /// An older holder's open transaction was in the way. Nothing was written. The same request may be sent again.
    #[error("blocked: {0}")]
    Blocked(Answer),
    /// The resource asks for another try, or its guard's store could not answer. Nothing was written. The same request may be
    /// sent again.
    #[error("to be tried again: {0}")]
    Retryable(Answer),
    /// The resource refused the request for a reason of its own. Nothing was written. Look at the request.
    #[error("rejected: {0}")]
    Rejected(Answer),
    /// No connection came about. Nothing was sent.
    #[error("not connected, nothing was sent")]
    NotConnected(#[source] Box<dyn Error + Send + Sync>),
    /// The request may have been done. Read back, or send the same request again under the same grant with the same
    /// idempotency key; never report a failure.
    #[error("the outcome is unknown: {0}")]
    Unknown(Unknown),
}

impl ClientError {
    /// How long the resource asks to wait before the same request is sent again, where it may be.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            ClientError::Blocked(answer) | ClientError::Retryable(answer) => {
                let header = answer.headers.get(http::header::RETRY_AFTER)?;
                Some(Duration::from_secs(header.to_str().ok()?.parse().ok()?))
            }
            _ => None,
        }
    }
}

/// A refusal of the claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which refusal.
    pub kind: ProblemKind,
    /// The resource's answer.
    pub answer: Answer,
    /// Whether this very request was sent. Under a grant that is over nothing is: then the answer is the one that said so.
    pub sent: bool,
}

impl Refused {
    /// Whether the grant is over: stale, or its token another grant's. The others may resolve: a proxy lost the header, or an
    /// epoch is still to be registered.
    pub fn is_terminal(&self) -> bool {
        matches!(self.kind, ProblemKind::Stale | ProblemKind::Collision)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.kind.title(), self.answer)
    }
}

/// What a resource answered, its body cut at 64 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: Box<HeaderMap>,
    /// The body, as far as it came and was read.
    pub body: Bytes,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = String::from_utf8_lossy(&self.body);
        let shown: String = body.chars().take(300).collect();
        write!(f, "{} {shown}", self.status.as_u16())
    }
}

/// Why an outcome is not known.
#[derive(Debug)]
pub enum Unknown {
    /// No answer came in time.
    TimedOut(Duration),
    /// The connection was lost, or the client inside gave up.
    Lost(Box<dyn Error + Send + Sync>),
    /// The resource, or what stands before it, does not know either.
    Answered(Answer),
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unknown::TimedOut(after) => write!(f, "no answer within {after:?}"),
            Unknown::Lost(error) => write!(f, "the connection was lost: {error}"),
            Unknown::Answered(answer) => write!(f, "answered {answer}"),
        }
    }
}
