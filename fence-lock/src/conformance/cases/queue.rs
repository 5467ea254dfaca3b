//! The queue.

use std::time::Duration;

use crate::conformance::bench::Place;
use crate::conformance::case::Outcome;
use crate::conformance::client::{Member, WHILE, free, key, member, promise, waits};
use crate::conformance::order::Rising;

pub(super) async fn first_come(place: &dyn Place) -> Outcome {
    const WAITERS: usize = 4;
    let (one, two) = (member(place).await?, member(place).await?);
    let mut holding = one.acquire(key("acct-1")).await?;
    let mut order = Rising::default();
    order.granted(holding.token())?;
    let mut waiting = Vec::new();
    for number in 1..=WAITERS {
        let waiter = if number % 2 == 0 { &one } else { &two };
        waiting.push(waiter.queue(place, key("acct-1"), number).await?);
    }
    for waiter in waiting {
        holding.free().await?;
        holding = waiter.granted().await?;
        order.granted(holding.token())?;
    }
    holding.free().await
}

pub(super) async fn no_overtaking(place: &dyn Place) -> Outcome {
    let holder = member(place).await?;
    let held = holder.acquire(key("acct-1")).await?;
    let wire = place.wire().await?;
    let slow = Member::silent(wire.client(), Duration::from_secs(60)).await?;
    let first = slow.queue(place, key("acct-1"), 1).await?;
    wire.hold_requests();
    held.free().await?;
    free(place, &key("acct-1")).await?;
    let newcomer = member(place).await?;
    let second = newcomer.acquiring(key("acct-1"));
    tokio::time::sleep(WHILE).await;
    promise!(!second.is_over(), "a newcomer overtook a waiter");
    wire.let_go().await?;
    let mut order = Rising::default();
    let grant = first.granted().await?;
    order.granted(grant.token())?;
    grant.free().await?;
    let grant = second.granted().await?;
    order.granted(grant.token())?;
    grant.free().await
}

pub(super) async fn cancelled_waiter(place: &dyn Place) -> Outcome {
    let (one, two) = (member(place).await?, member(place).await?);
    let held = one.acquire(key("acct-1")).await?;
    let first = two.queue(place, key("acct-1"), 1).await?;
    let second = one.queue(place, key("acct-1"), 2).await?;
    let third = two.queue(place, key("acct-1"), 3).await?;
    let cancelled = second.attempt.grant_id().clone();
    second.give_up().await?;
    waits(place, &key("acct-1"), 2).await?;
    first.give_up().await?;
    waits(place, &key("acct-1"), 1).await?;
    held.free().await?;
    let grant = third.granted().await?;
    grant.free().await?;
    tokio::time::sleep(WHILE).await;
    let holder = place.holder(grant.attempt.class(), &key("acct-1")).await?;
    promise!(
        holder.is_none(),
        "after its last waiter {holder:?} holds the lock ({cancelled} was cancelled)"
    );
    Ok(())
}
