//! Leases that run out.

use std::time::Duration;

use tokio::time::Instant;

use crate::conformance::bench::Place;
use crate::conformance::case::Outcome;
use crate::conformance::client::{Member, WHILE, broken, key, member, promise, soon, waits};
use crate::conformance::order::Rising;
use crate::error::{AcquireError, RenewError};
use crate::store::Release;

/// The shortest TTL there is.
const TTL: Duration = Duration::from_secs(2);

/// How much later than its TTL a lease may end.
const LATE: Duration = Duration::from_secs(10);

pub(super) async fn lapse(place: &dyn Place) -> Outcome {
    let next = member(place).await?;
    let began = Instant::now();
    let lapsing = Member::silent(place.client().await?, TTL).await?;
    let mut order = Rising::default();
    let lapsed = lapsing.acquire(key("acct-1")).await?;
    order.granted(lapsed.token())?;
    let granted = next.acquire(key("acct-1")).await?;
    let waited = began.elapsed();
    promise!(
        waited >= lapsing.ttl.as_duration(),
        "a lease ended after {waited:?}"
    );
    promise!(
        waited <= lapsing.ttl.as_duration() + LATE,
        "a lease ended only after {waited:?}"
    );
    order.granted(granted.token())?;
    let late = lapsed.release().await?;
    promise!(late == Release::NotHeld, "a grant that had lapsed was released");
    let renewal = soon("a renewal", lapsing.store.renewals(&lapsing.id).renew()).await?;
    promise!(
        matches!(renewal, Err(RenewError::Gone)),
        "a lease that had lapsed was renewed, or nobody said that it is gone: {renewal:?}"
    );
    granted.free().await
}

pub(super) async fn renewals_hold(place: &dyn Place) -> Outcome {
    let holder = Member::renewed(place.client().await?, TTL * 2).await?;
    let next = member(place).await?;
    let held = holder.acquire(key("acct-1")).await?;
    let waiting = next.queue(place, key("acct-1"), 1).await?;
    tokio::time::sleep(TTL * 5).await;
    promise!(
        !waiting.is_over(),
        "a lock was taken from a lease that is renewed"
    );
    held.free().await?;
    waiting.granted().await?.free().await
}

pub(super) async fn one_heir(place: &dyn Place) -> Outcome {
    const HEIRS: usize = 3;
    let mut heirs = Vec::new();
    for _ in 0..HEIRS {
        heirs.push(member(place).await?);
    }
    // Long enough for all to queue before it lapses.
    let lapsing = Member::silent(place.client().await?, TTL * 4).await?;
    let mut order = Rising::default();
    order.granted(lapsing.acquire(key("acct-1")).await?.token())?;
    let mut waiting = Vec::new();
    for (heir, number) in heirs.iter().zip(1..) {
        waiting.push(heir.queue(place, key("acct-1"), number).await?);
    }
    for left in (0..HEIRS).rev() {
        let grant = waiting.remove(0).granted().await?;
        order.granted(grant.token())?;
        // Those who waited for the same lapse have had time to take it too.
        tokio::time::sleep(WHILE).await;
        let also = waiting.iter().filter(|waiting| waiting.is_over()).count();
        promise!(
            also == 0,
            "{also} of {left} others were granted what one inherited"
        );
        grant.free().await?;
    }
    Ok(())
}

pub(super) async fn waiter_lapses(place: &dyn Place) -> Outcome {
    let (holder, next) = (member(place).await?, member(place).await?);
    let held = holder.acquire(key("acct-1")).await?;
    let lapsing = Member::silent(place.client().await?, TTL * 2).await?;
    let mut lapsed = lapsing.queue(place, key("acct-1"), 1).await?;
    // Its lease runs out in the queue, and nothing else happens.
    waits(place, &key("acct-1"), 0).await?;
    held.free().await?;
    match lapsed.outcome().await? {
        Err(AcquireError::SessionOver | AcquireError::NotConfirmed) => {}
        Err(error) => return Err(broken("a waiter whose lease lapsed was told", &error)),
        Ok(_) => promise!(false, "a waiter was granted a lock after its lease had lapsed"),
    }
    next.acquire(key("acct-1")).await?.free().await
}
