//! Holds of a whole session, as an application has them.

use std::time::Duration;

use tokio::time::Instant;

use super::session::open;
use crate::conformance::bench::Place;
use crate::conformance::case::Outcome;
use crate::conformance::client::{broken, class, key, member, promise, soon};
use crate::error::AcquireError;
use crate::keys::Keys;
use crate::store::{LockStore as _, Release};

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

pub(super) async fn several(place: &dyn Place) -> Outcome {
    let next = member(place).await?;
    let session = open(place, Duration::from_secs(20)).await?;
    let keys = || Keys::new([key("acct-2"), key("acct-1")]).expect("two keys");
    let acquired = soon("an acquisition", session.acquire_all(&class(), keys())).await?;
    if next.store.most_keys() < 2 {
        promise!(
            matches!(acquired, Err(AcquireError::TooManyKeys { asked: 2, most: 1 })),
            "two keys at once were answered with {acquired:?}"
        );
        return Ok(());
    }
    let hold = acquired.map_err(|error| broken("free locks were not granted", &error))?;
    let claims = hold.claims().unwrap_or_default();
    let named: Vec<&str> = claims.iter().map(|claim| claim.key.as_str()).collect();
    promise!(
        named == ["acct-1", "acct-2"],
        "a hold of two keys claims {named:?}"
    );
    let one = claims
        .iter()
        .all(|claim| claim.grant_id.as_ref() == Some(hold.grant_id()) && hold.token() == Ok(claim.token));
    promise!(one, "a hold of two keys claims more than one grant: {claims:?}");
    let waiting = next.queue(place, key("acct-2"), 1).await?;
    let released = soon("a release", hold.release()).await?;
    promise!(
        matches!(released, Ok(Release::Released)),
        "a live hold was released with {released:?}"
    );
    waiting.granted().await?.free().await
}
