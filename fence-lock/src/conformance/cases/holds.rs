//! Holds of a whole session, as an application has them.

use std::time::Duration;

use tokio::time::Instant;

use super::session::open;
use crate::conformance::bench::Place;
use crate::conformance::case::Outcome;
use crate::conformance::client::{broken, class, key, member, promise, soon};
use crate::store::Release;

pub(super) async fn dropped(place: &dyn Place) -> Outcome {
    let next = member(place).await?;
    let session = open(place, Duration::from_secs(5)).await?;
    let acquired = soon("an acquisition", session.acquire(&class(), &key("acct-1"))).await?;
    let hold = acquired.map_err(|error| broken("a free lock was not granted", &error))?;
    let waiting = next.queue(place, key("acct-1"), 1).await?;
    let began = Instant::now();
    drop(hold);
    let grant = waiting.granted().await?;
    let waited = began.elapsed();
    promise!(
        waited >= session.ttl().as_duration(),
        "a dropped hold was free after {waited:?}"
    );
    promise!(
        session.dropped_holds() == 1,
        "{} dropped holds were counted",
        session.dropped_holds()
    );
    grant.free().await
}

pub(super) async fn released(place: &dyn Place) -> Outcome {
    let next = member(place).await?;
    let session = open(place, Duration::from_secs(20)).await?;
    let acquired = soon("an acquisition", session.acquire(&class(), &key("acct-1"))).await?;
    let hold = acquired.map_err(|error| broken("a free lock was not granted", &error))?;
    promise!(
        hold.claim().is_ok(),
        "a hold that was just granted gives no token"
    );
    let holder = place.holder(&class(), &key("acct-1")).await?;
    promise!(
        holder.as_ref() == Some(hold.grant_id()),
        "{holder:?} holds what was granted to {}",
        hold.grant_id()
    );
    let waiting = next.queue(place, key("acct-1"), 1).await?;
    let released = soon("a release", hold.release()).await?;
    promise!(
        matches!(released, Ok(Release::Released)),
        "a live hold was released with {released:?}"
    );
    waiting.granted().await?.free().await
}
