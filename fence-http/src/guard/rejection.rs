use fence_core::KeyError;
use http::{HeaderName, Method, StatusCode};

use super::builder::Unnamed;
use crate::header::HeaderError;
use crate::problem::{Problem, ProblemKind};

/// Why the layer itself answered. It rides in the response's extensions beside the [`Problem`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// No rule and no exemption covers the request. Guard the route, or exempt it.
    #[error("no fencing rule covers {method} {path}")]
    NoRule {
        /// The request's method.
        method: Method,
        /// The request's path, as it came.
        path: String,
    },
    /// The header is missing, doubled or malformed. The client must send what its grant gave.
    #[error("the fencing token was refused")]
    Header(#[source] HeaderError),
    /// The key is no key. The client must name the row as the resource does.
    #[error("the key was refused")]
    Key(#[source] KeyError),
    /// The key is not UTF-8 after percent-decoding. The client must name the row as the resource does.
    #[error("the key is not UTF-8")]
    KeyNotUtf8,
    /// The header that holds the key is there never or more than once. The client must send it once.
    #[error("{count} headers {name}, where one names the key")]
    KeyHeader {
        /// The header's name.
        name: HeaderName,
        /// How many there were.
        count: usize,
    },
    /// The function of a rule found no class and key in the request's head. The client must name what it wants to write.
    #[error("the request names no key")]
    Unnamed(#[source] Unnamed),
    /// Strict mode: success without a receipt. The handler must put the guard's receipt into its answer's extensions.
    #[error("{method} {route} answered {status} without a receipt for its claim")]
    NoReceipt {
        /// The request's method.
        method: Method,
        /// The pattern of the rule.
        route: String,
        /// What the handler answered.
        status: StatusCode,
    },
}

impl From<&Rejection> for Problem {
    fn from(rejection: &Rejection) -> Problem {
        match rejection {
            Rejection::Header(error) => Problem::from(error),
            Rejection::NoRule { .. } => Problem::new(
                ProblemKind::NoRule,
                format!("{rejection}; the service's owner must guard the route or exempt it"),
            ),
            Rejection::Key(source) => Problem::new(ProblemKind::MalformedKey, source.to_string()),
            Rejection::Unnamed(source) => Problem::new(ProblemKind::MalformedKey, source.to_string()),
            Rejection::KeyNotUtf8 | Rejection::KeyHeader { .. } => {
                Problem::new(ProblemKind::MalformedKey, rejection.to_string())
            }
            Rejection::NoReceipt { .. } => Problem::new(
                ProblemKind::NoReceipt,
                format!("{rejection}; the write may have happened, and nothing shows that it was fenced"),
            ),
        }
    }
}
