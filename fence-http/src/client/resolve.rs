//! Finding out about a request whose outcome is unknown.

use std::time::Duration;

/// How often, and how far apart, the resource is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadBack {
    /// At most so many reads, 1 at least; 5 by default.
    pub reads: u32,
    /// So long between two of them, 200 ms by default.
    pub pause: Duration,
}

impl Default for ReadBack {
    fn default() -> ReadBack {
        ReadBack {
            reads: 5,
            pause: Duration::from_millis(200),
        }
    }
}

/// What reading back has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Resolved<T> {
    /// It was done: this is what was found of it.
    Landed(T),
    /// It was not done, and will not be: a later grant is before it.
    NotLanded,
    /// It is not there yet, and may still come: its bytes may be on their way under a token that is still good. Send the same
    /// request again with the same idempotency key, or let a later grant raise the mark and then read.
    NotSeen,
}

/// Reads back until what the request wrote is found, such as a row with its idempotency key. A read that fails is one of the
/// reads.
///
/// # Errors
///
/// That of the last read, when it failed.
pub async fn resolve<T, E>(
    bounds: ReadBack,
    mut read: impl AsyncFnMut() -> Result<Option<T>, E>,
) -> Result<Resolved<T>, E> {
    let mut left = bounds.reads.max(1);
    loop {
        left -= 1;
        match read().await {
            Ok(Some(found)) => return Ok(Resolved::Landed(found)),
            Ok(None) if left == 0 => return Ok(Resolved::NotSeen),
            Err(error) if left == 0 => return Err(error),
            Ok(None) | Err(_) => tokio::time::sleep(bounds.pause).await,
        }
    }
}

/// Raises the mark under a later grant, and then reads once: after that the request cannot land any more, so that its absence
/// is final. `raise` answers `Ok` only when the resource has said that the raised mark is committed.
///
/// # Errors
///
/// That of the raise, or of the read: nothing is known then.
pub async fn resolve_after_raise<T, E>(
    raise: impl AsyncFnOnce() -> Result<(), E>,
    read: impl AsyncFnOnce() -> Result<Option<T>, E>,
) -> Result<Resolved<T>, E> {
    raise().await?;
    Ok(match read().await? {
        Some(found) => Resolved::Landed(found),
        None => Resolved::NotLanded,
    })
}
