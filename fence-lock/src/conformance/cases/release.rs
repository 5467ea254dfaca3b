//! Releases.

use std::sync::Arc;
use std::time::Duration;

use crate::conformance::bench::Place;
use crate::conformance::case::Outcome;
use crate::conformance::client::{Member, key, member, promise, release, soon};
use crate::store::Release;

pub(super) async fn own_only(place: &dyn Place) -> Outcome {
    let (one, two) = (member(place).await?, member(place).await?);
    let first = one.acquire(key("acct-1")).await?;
    first.free().await?;
    let second = one.acquire(key("acct-1")).await?;
    let stranger = two.attempt(key("acct-1"));
    for (what, attempt, minted) in [
        ("the first release, sent again", &first.attempt, first.minted),
        ("the token of another grant", &first.attempt, second.minted),
        ("the grant id with an older token", &second.attempt, first.minted),
        ("another session", &stranger, second.minted),
    ] {
        let outcome = release(&one.store, attempt, minted).await?;
        promise!(
            outcome == Release::NotHeld,
            "{what} released a grant that it does not name"
        );
    }
    let holder = place
        .holder(second.attempt.class(), second.attempt.keys().first())
        .await?;
    promise!(
        holder.as_ref() == Some(second.attempt.grant_id()),
        "a release of other grants ended one: {holder:?}"
    );
    second.free().await
}

pub(super) async fn answer_lost(place: &dyn Place) -> Outcome {
    let wire = place.wire().await?;
    let lost = Member::silent(wire.client(), Duration::from_secs(60)).await?;
    let next = member(place).await?;
    let grant = lost.acquire(key("acct-1")).await?;
    let waiting = next.queue(place, key("acct-1"), 1).await?;
    wire.hold_answers();
    let releasing = tokio::spawn({
        let (store, attempt, minted) = (Arc::clone(&lost.store), Arc::clone(&grant.attempt), grant.minted);
        async move { store.release(&attempt, minted).await }
    });
    wire.holds_an_answer().await?;
    wire.cut();
    let outcome = soon("a release", releasing).await?;
    promise!(
        matches!(outcome, Ok(Err(_))),
        "a release whose answer was lost claims to know: {outcome:?}"
    );
    let after = waiting.granted().await?;
    let again = grant.release().await?;
    promise!(
        again == Release::NotHeld,
        "a release that was sent again found its grant"
    );
    wire.let_go().await?;
    after.free().await
}
