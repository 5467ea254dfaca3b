//! What a transfer asks for, read from a request.

use std::time::Duration;

use axum::body::Body;
use fence_core::Key;
use fence_pg::IdempotentRequest;
use http::HeaderMap;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::answer::Own;
use super::router::MAX_BODY;

/// A transfer that is asked for. Amounts are in minor units, and not judged yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    pub(super) to: String,
    pub(super) amount: i64,
    pub(super) reference: String,
}

impl Order {
    /// Reads a body to its end and then as an order.
    pub(super) async fn read(body: Body) -> Result<Order, Own> {
        let order: Order = read_json(body).await?;
        if order.to.contains('\0') || order.reference.contains('\0') {
            return Err(Own::malformed("the body: texts hold no NUL character"));
        }
        Ok(order)
    }

    /// What is wrong with it whatever the accounts hold.
    pub(super) fn check(&self, from: &Key) -> Result<(), Own> {
        if self.amount <= 0 {
            return Err(Own::invalid(format!(
                "an amount is at least 1, got {}",
                self.amount
            )));
        }
        if self.to == from.as_str() {
            return Err(Own::invalid("an account sends nothing to itself"));
        }
        Ok(())
    }
}

/// How long a body may be on its way.
const BODY_TIME: Duration = Duration::from_secs(60);

/// Reads a body to its end, [`MAX_BODY`] at most, and then as a JSON object.
pub(super) async fn read_json<T: DeserializeOwned>(body: Body) -> Result<T, Own> {
    let whole = tokio::time::timeout(BODY_TIME, Limited::new(body, MAX_BODY).collect());
    let bytes = match whole.await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(Own::too_large(MAX_BODY)),
        Ok(Err(_)) => return Err(Own::malformed("the body did not arrive whole")),
        Err(_) => return Err(Own::too_slow(BODY_TIME)),
    };
    let read =
        serde_json::from_slice(&bytes).map_err(|error| Own::malformed(format!("the body: {error}")))?;
    // serde takes an array for the members in their order.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(Own::malformed("the body: an array, where an object is expected"));
    }
    Ok(read)
}

/// A transfer under its idempotency key, which comes once.
///
/// paydb authenticates nobody, so all its requests are one principal's.
pub(super) fn read_key(headers: &HeaderMap) -> Result<&str, Own> {
    let mut values = headers.get_all("idempotency-key").iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        let count = headers.get_all("idempotency-key").iter().count();
        return Err(Own::idempotency_key(format!(
            "send the header Idempotency-Key once, got {count}"
        )));
    };
    // What is no text is no key either.
    Ok(value.to_str().unwrap_or_default())
}

impl Order {
    /// What the request is known by when it comes again: the same order, in whatever bytes.
    pub(super) fn under(&self, key: &str) -> Result<IdempotentRequest, Own> {
        let content = serde_json::to_vec(self).expect("texts and numbers always serialize");
        IdempotentRequest::new(key, "", &content)
            .map_err(|_| Own::idempotency_key("an Idempotency-Key is 1 to 255 visible ASCII characters"))
    }
}
