//! What a session does by itself: renew, watch the deadline, free what was dropped.

use std::sync::Arc;
use std::time::Duration;

use fence_core::{BootInstant, Phase, Ttl};
use tokio_util::sync::CancellationToken;

use super::state::State;
use crate::error::RenewError;
use crate::store::{Attempt, LockStore, Minted, Release, Renewals, SessionId};

/// The first pause between two tries of something that failed; it doubles up to `RETRY_MOST`.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MOST: Duration = Duration::from_secs(1);

/// Renews the lease until the session is fenced.
pub(super) async fn keep_alive(
    state: Arc<State>,
    store: Arc<dyn LockStore>,
    session: SessionId,
    every: Duration,
    opened: BootInstant,
) {
    let mut renewals = store.renewals(&session);
    let mut next = opened.after(every);
    let mut retry = RETRY_FIRST;
    loop {
        let outcome = match idle_until(&state, renewals.as_mut(), next).await {
            Ok(()) => renew_once(&state, renewals.as_mut()).await,
            Err(error) => Err(error),
        };
        let phase = match outcome {
            Ok((sent, ttl)) => {
                retry = RETRY_FIRST;
                next = sent.after(every);
                state.renewed(sent, ttl)
            }
            Err(RenewError::Gone) => {
                state.fence();
                Phase::Fenced
            }
            Err(RenewError::Unanswered { .. } | RenewError::Failed(_)) => {
                // Draining from here on, and a new stream.
                let phase = state.keepalive_failed();
                renewals = store.renewals(&session);
                next = state.clock.now().after(retry);
                retry = (retry * 2).min(RETRY_MOST).min(state.ttl.margin());
                phase
            }
        };
        if phase == Phase::Fenced {
            return;
        }
    }
}

/// Fences the session when its deadline passes.
pub(super) async fn watch_deadline(state: Arc<State>) {
    let lost = state.lost().clone();
    let passed = async {
        while state.phase() != Phase::Fenced {
            state.clock.sleep_until(state.deadline()).await;
        }
    };
    tokio::select! {
        () = lost.cancelled() => {}
        () = passed => {}
    }
}

/// Ends a hold once it has been held for as long as a hold may be, and frees its lock one full TTL later: the work under it
/// hangs, or is asked to stop now.
pub(super) async fn end_overlong(
    state: Arc<State>,
    store: Arc<dyn LockStore>,
    attempt: Arc<Attempt>,
    minted: Minted,
    hold: CancellationToken,
    until: BootInstant,
) {
    tokio::select! {
        biased;
        // Released, dropped, or fenced with its session.
        () = hold.cancelled() => return,
        () = state.clock.sleep_until(until) => {}
    }
    state.count_overlong();
    hold.cancel();
    let due = until.after(state.ttl.as_duration());
    release_at(state, store, attempt, minted, due).await;
}

/// Frees a grant at `due`, unless the session is over before, and tries until it is free.
pub(super) async fn release_at(
    state: Arc<State>,
    store: Arc<dyn LockStore>,
    attempt: Arc<Attempt>,
    minted: Minted,
    due: BootInstant,
) {
    let lost = state.lost().clone();
    let free = async {
        state.clock.sleep_until(due).await;
        let mut retry = RETRY_FIRST;
        loop {
            if let Ok(Release::Released | Release::NotHeld) = store.release(&attempt, minted).await {
                break;
            }
            retry = pause(retry).await;
        }
        state.unregister(&attempt);
    };
    tokio::select! {
        () = lost.cancelled() => {}
        () = free => {}
    }
}

/// Gives an attempt up, and tries until that is certain or the session is over, which ends the attempt as well.
pub(super) async fn give_up(state: Arc<State>, store: Arc<dyn LockStore>, attempt: Arc<Attempt>) {
    let lost = state.lost().clone();
    let given_up = async {
        let mut retry = RETRY_FIRST;
        while store.give_up(&attempt).await.is_err() {
            retry = pause(retry).await;
        }
    };
    tokio::select! {
        () = lost.cancelled() => {}
        () = given_up => {}
    }
}

async fn idle_until(state: &State, renewals: &mut dyn Renewals, next: BootInstant) -> Result<(), RenewError> {
    tokio::select! {
        biased;
        error = renewals.ended() => Err(error),
        () = state.clock.sleep_until(next) => Ok(()),
    }
}

/// One keepalive, and when it was sent. An answer that is here counts, also when it was looked at late: the deadline is
/// counted from the sending anyway.
async fn renew_once(state: &State, renewals: &mut dyn Renewals) -> Result<(BootInstant, Ttl), RenewError> {
    let sent = state.clock.now();
    tokio::select! {
        biased;
        answer = renewals.renew() => answer.map(|ttl| (sent, ttl)),
        () = state.clock.sleep_until(sent.after(state.ttl.keepalive_timeout())) => {
            Err(RenewError::Unanswered { after: state.ttl.keepalive_timeout() })
        }
    }
}

async fn pause(retry: Duration) -> Duration {
    tokio::time::sleep(retry).await;
    (retry * 2).min(RETRY_MOST)
}
