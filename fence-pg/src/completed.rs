//! Requests that may come again, and the answers that were stored for them.

use sha2::{Digest as _, Sha256};

use crate::error::GuardError;

/// The table in which `begin_once`, of either driver, keeps answers: `recipes/completed_request.sql`, for a migration of the
/// resource's own. It is found by the connection's `search_path`.
pub const COMPLETED_TABLE_SQL: &str = include_str!("../recipes/completed_request.sql");

/// What a request is known by when it comes again: its idempotency key, within the class and key of its claim. Its principal
/// and its content have to be the same then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotentRequest {
    pub(crate) key: String,
    pub(crate) principal: String,
    pub(crate) fingerprint: [u8; 32],
}

impl IdempotentRequest {
    /// The most bytes that an idempotency key or a principal may have.
    pub const MAX_BYTES: usize = 255;

    /// A request. `principal` is whom the service's own authentication found, never a text that the client chose freely; a
    /// service that authenticates nobody gives every request the same. `content` is all that is asked for, such as method,
    /// path and body, in a form that is equal whenever the request is the same; only its SHA-256 is kept.
    ///
    /// # Errors
    ///
    /// [`IdempotentRequestError`], which the client is told of.
    pub fn new(
        idempotency_key: impl Into<String>,
        principal: impl Into<String>,
        content: &[u8],
    ) -> Result<IdempotentRequest, IdempotentRequestError> {
        let (key, principal) = (idempotency_key.into(), principal.into());
        if !(1..=Self::MAX_BYTES).contains(&key.len()) || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(IdempotentRequestError::Key);
        }
        if principal.len() > Self::MAX_BYTES || principal.contains('\0') {
            return Err(IdempotentRequestError::Principal);
        }
        Ok(IdempotentRequest {
            key,
            principal,
            fingerprint: Sha256::digest(content).into(),
        })
    }

    /// The idempotency key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// A request that cannot be known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdempotentRequestError {
    /// The idempotency key has another form. Send one that has it.
    #[error("an idempotency key is 1 to 255 visible ASCII characters")]
    Key,
    /// The principal has another form. The service must name its principals otherwise.
    #[error("a principal is at most 255 bytes without NUL")]
    Principal,
}

/// What is stored under the key of a request.
pub(crate) enum Known {
    /// The answer of this very request.
    Same(StoredAnswer),
    /// Another principal's, or another content's.
    Other,
}

impl Known {
    /// Reads a row of [`LOOK`].
    pub(crate) fn of((same, status, content_type, body): (bool, i16, String, Vec<u8>)) -> Known {
        if same {
            Known::Same(StoredAnswer {
                status: status.unsigned_abs(),
                content_type,
                body,
            })
        } else {
            Known::Other
        }
    }
}

/// An answer as it is stored, and given again byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The HTTP status, 100 to 999.
    pub status: u16,
    /// The media type of the body.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

impl StoredAnswer {
    /// The status as its column takes it.
    pub(crate) fn stored_status(&self) -> Result<i16, GuardError> {
        i16::try_from(self.status).map_err(|_| GuardError::Misuse("a status above 32767"))
    }
}

pub(crate) const LOOK: &str = "SELECT principal = $4 AND fingerprint = $5, status, content_type, answer \
    FROM completed_request WHERE class = $1 AND key = $2 AND idempotency_key = $3";

pub(crate) const STORE: &str = "INSERT INTO completed_request \
    (class, key, idempotency_key, principal, fingerprint, status, content_type, answer) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emitted_sql_is_the_one_on_file() {
        for (emitted, on_file) in [
            (LOOK, include_str!("../tests/emitted/completed_look.sql")),
            (STORE, include_str!("../tests/emitted/completed_store.sql")),
        ] {
            assert_eq!(emitted, on_file.trim_end());
        }
    }

    #[test]
    fn a_key_is_visible_ascii_and_a_principal_is_storable() {
        let request = |key: &str, principal: &str| IdempotentRequest::new(key, principal, b"x").map(|_| ());
        assert_eq!(request("g33:1", "team-1"), Ok(()));
        assert_eq!(request(&"k".repeat(255), ""), Ok(()));
        let long = "k".repeat(256);
        for key in ["", "a b", "é", "a\n", long.as_str()] {
            assert_eq!(request(key, ""), Err(IdempotentRequestError::Key), "{key:?}");
        }
        for principal in ["a\0", long.as_str()] {
            assert_eq!(
                request("k", principal),
                Err(IdempotentRequestError::Principal),
                "{principal:?}"
            );
        }
    }
}
