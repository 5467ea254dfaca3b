//! Attempts that were given up, with something of theirs on its way.

use std::time::Duration;

use crate::conformance::bench::{Place, Wire};
use crate::conformance::case::{Failure, Outcome};
use crate::conformance::client::{Member, Waiting, give_up, key, member, promise};
use crate::error::AcquireError;
use crate::store::FRESH_FOR;

/// A lease that needs no renewal in the time of a case, on a client that has been in touch before.
async fn behind(wire: &dyn Wire) -> Result<Member, Failure> {
    let member = Member::silent(wire.client(), Duration::from_secs(60)).await?;
    member.acquire(key("acct-0")).await?.free().await?;
    Ok(member)
}

/// Cuts the connection while the request lies on it, and gives the attempt up over another one.
async fn cut_and_give_up(wire: &dyn Wire, mut acquiring: Waiting) -> Outcome {
    wire.holds_a_request().await?;
    wire.cut();
    let outcome = acquiring.outcome().await?;
    promise!(
        matches!(outcome, Err(AcquireError::Store(_))),
        "an acquisition whose connection was lost claims to know: {outcome:?}"
    );
    give_up(&acquiring.store, &acquiring.attempt).await
}

/// Nothing of the attempt is in the way, and it holds nothing.
async fn nothing_is_left(place: &dyn Place) -> Outcome {
    let (next, class) = (member(place).await?, crate::conformance::client::class());
    let holder = place.holder(&class, &key("acct-1")).await?;
    promise!(holder.is_none(), "{holder:?} holds what was given up");
    let waiters = place.waiters(&class, &key("acct-1")).await?;
    promise!(waiters == 0, "{waiters} stand in a queue that was given up");
    next.acquire(key("acct-1")).await?.free().await
}

pub(super) async fn on_its_way(place: &dyn Place) -> Outcome {
    let wire = place.wire().await?;
    let given_up = behind(wire.as_ref()).await?;
    wire.hold_requests();
    cut_and_give_up(wire.as_ref(), given_up.acquiring(key("acct-1"))).await?;
    // Only now the request gets to the store.
    wire.let_go().await?;
    nothing_is_left(place).await
}

pub(super) async fn landed(place: &dyn Place) -> Outcome {
    let wire = place.wire().await?;
    let given_up = behind(wire.as_ref()).await?;
    wire.hold_answers();
    let acquiring = given_up.acquiring(key("acct-1"));
    wire.holds_an_answer().await?;
    let class = crate::conformance::client::class();
    let holder = place.holder(&class, &key("acct-1")).await?;
    promise!(
        holder.as_ref() == Some(acquiring.attempt.grant_id()),
        "the store has answered an acquisition of a free lock, and {holder:?} holds it"
    );
    wire.cut();
    acquiring.give_up().await?;
    wire.let_go().await?;
    nothing_is_left(place).await
}

pub(super) async fn place(place: &dyn Place) -> Outcome {
    let holder = member(place).await?;
    let held = holder.acquire(key("acct-1")).await?;
    let wire = place.wire().await?;
    let given_up = behind(wire.as_ref()).await?;
    wire.hold_requests();
    cut_and_give_up(wire.as_ref(), given_up.acquiring(key("acct-1"))).await?;
    wire.let_go().await?;
    held.free().await?;
    nothing_is_left(place).await
}

pub(super) async fn lost_before_confirmed(place: &dyn Place) -> Outcome {
    let wire = place.wire().await?;
    let late = behind(wire.as_ref()).await?;
    let next = member(place).await?;
    wire.hold_answers();
    let mut acquiring = late.acquiring(key("acct-1"));
    wire.holds_an_answer().await?;
    // An operator ends the lease, and the lock goes to somebody else.
    crate::conformance::client::close(&next.store, &late.id).await?;
    let grant = next.acquire(key("acct-1")).await?;
    // What a quick answer says may be believed.
    tokio::time::sleep(FRESH_FOR).await;
    wire.let_go().await?;
    let outcome = acquiring.outcome().await?;
    promise!(
        matches!(
            outcome,
            Err(AcquireError::NotConfirmed | AcquireError::SessionOver)
        ),
        "a grant that was lost before its answer came was handed out: {outcome:?}"
    );
    give_up(&acquiring.store, &acquiring.attempt).await?;
    grant.free().await
}
