//! One attempt, from its first request to a hold or to nothing.

use std::sync::Arc;

use fence_core::{ClassName, Grant, GrantId, Phase};

use super::Inner;
use crate::error::AcquireError;
use crate::hold::Hold;
use crate::keys::Keys;
use crate::store::Attempt;

/// The hold names the first of the keys; its attempt names all.
pub(super) async fn acquire(inner: &Arc<Inner>, class: &ClassName, keys: Keys) -> Result<Hold, AcquireError> {
    let key = keys.first().clone();
    if inner.state.phase() == Phase::Fenced {
        return Err(AcquireError::SessionOver);
    }
    let asked = inner.state.clock.now();
    let grant_id = GrantId::new(uuid::Uuid::new_v4().simple().to_string()).expect("32 digits are a grant id");
    let attempt = Arc::new(Attempt::new(inner.id.clone(), class.clone(), keys, grant_id));
    let mut giving_up = GiveUp {
        inner,
        attempt: Some(Arc::clone(&attempt)),
    };

    let minted = tokio::select! {
        biased;
        () = inner.state.lost().cancelled() => return Err(AcquireError::SessionOver),
        outcome = inner.store.acquire(&attempt) => outcome?,
    };
    // Registered first, looked at second: a close that runs meanwhile sees either the hold or, here, its fence.
    inner.state.register(&attempt, minted);
    if inner.state.phase() == Phase::Fenced {
        inner.state.unregister(&attempt);
        return Err(AcquireError::SessionOver);
    }
    giving_up.attempt = None;
    let (sent, ttl) = inner.state.last_renewal();
    let grant = Grant {
        class: class.clone(),
        key,
        token: minted.token,
        grant_id: attempt.grant_id().clone(),
        ttl,
        sent,
    };
    let hold = Hold::new(Arc::clone(inner), attempt, grant, asked);
    hold.watch_length();
    Ok(hold)
}

/// Gives the attempt up when the acquisition fails or its future is dropped.
struct GiveUp<'a> {
    inner: &'a Inner,
    attempt: Option<Arc<Attempt>>,
}

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        if let Some(attempt) = self.attempt.take()
            && attempt.was_sent()
        {
            self.inner.give_up(attempt);
        }
    }
}
