//! Sessions that end.

use std::time::Duration;

use fence_core::{Phase, Ttl};

use crate::conformance::bench::Place;
use crate::conformance::case::Outcome;
use crate::conformance::client::{Granted, Member, broken, class, close, key, member, promise, soon};
use crate::error::{AcquireError, RenewError};
use crate::hold::NotHeld;
use crate::session::Session;
use crate::store::Release;

/// A lease that lapses, and not before a busy store has granted all the keys under it.
const LAPSES: Duration = Duration::from_secs(8);

const KEYS: [&str; 3] = ["acct-1", "acct-2", "acct-3"];

pub(super) async fn loss(place: &dyn Place) -> Outcome {
    let (lost, next) = (member(place).await?, member(place).await?);
    let elsewhere = next.acquire(key("acct-4")).await?;
    let holds = hold_all(&lost).await?;
    let mut waiting = lost.queue(place, key("acct-4"), 1).await?;
    close(&next.store, &lost.id).await?;
    let outcome = waiting.outcome().await?;
    promise!(
        matches!(outcome, Err(AcquireError::SessionOver)),
        "a waiter of a session that was ended was told {outcome:?}"
    );
    elsewhere.free().await?;
    all_free(&next, &holds).await?;
    let renewal = soon("a renewal", lost.store.renewals(&lost.id).renew()).await?;
    promise!(
        matches!(renewal, Err(RenewError::Gone)),
        "a session that was ended was told {renewal:?}"
    );
    let outcome = lost.acquiring(key("acct-1")).outcome().await?;
    promise!(
        matches!(outcome, Err(AcquireError::SessionOver)),
        "a session that was ended acquired: {outcome:?}"
    );
    close(&next.store, &lost.id).await
}

pub(super) async fn lapse(place: &dyn Place) -> Outcome {
    let next = member(place).await?;
    let lapsing = Member::silent(place.client().await?, LAPSES).await?;
    let holds = hold_all(&lapsing).await?;
    all_free(&next, &holds).await
}

pub(super) async fn told(place: &dyn Place) -> Outcome {
    let other = place.client().await?;
    let session = open(place, Duration::from_secs(5)).await?;
    let hold = soon("an acquisition", session.acquire(&class(), &key("acct-1")))
        .await?
        .map_err(|error| broken("a free lock was not granted", &error))?;
    close(&other, session.id()).await?;
    soon("fencing", session.lost()).await?;
    promise!(
        hold.token() == Err(NotHeld::Fenced) && session.phase() == Phase::Fenced,
        "a hold without a lease gave its token"
    );
    let outcome = session.acquire(&class(), &key("acct-2")).await;
    promise!(
        matches!(outcome, Err(AcquireError::SessionOver)),
        "a fenced session acquired: {outcome:?}"
    );
    Ok(())
}

pub(super) async fn close_frees(place: &dyn Place) -> Outcome {
    let next = member(place).await?;
    let session = open(place, Duration::from_secs(60)).await?;
    let mut holds = Vec::new();
    for name in KEYS {
        let hold = soon("an acquisition", session.acquire(&class(), &key(name))).await?;
        holds.push(hold.map_err(|error| broken("a free lock was not granted", &error))?);
    }
    let mut waiting = Vec::new();
    for name in KEYS {
        waiting.push(next.queue(place, key(name), 1).await?);
    }
    for _ in 0..2 {
        soon("closing a session", session.close())
            .await?
            .map_err(|error| broken("a session was not closed", &error))?;
    }
    for (hold, waiting) in holds.iter().zip(waiting) {
        promise!(
            hold.token() == Err(NotHeld::Fenced),
            "a hold outlived its session"
        );
        waiting.granted().await?.free().await?;
    }
    Ok(())
}

pub(super) async fn open(place: &dyn Place, ttl: Duration) -> Result<Session, crate::conformance::Failure> {
    let ttl = Ttl::new(ttl).expect("the cases ask for TTLs in range");
    soon("opening a session", Session::open(place.client().await?, ttl))
        .await?
        .map_err(|error| broken("no session was opened", &error))
}

async fn hold_all(member: &Member) -> Result<Vec<Granted>, crate::conformance::Failure> {
    let mut holds = Vec::new();
    for name in KEYS {
        holds.push(member.acquire(key(name)).await?);
    }
    Ok(holds)
}

/// Another session takes each lock at once, or when the lease has lapsed; the grants before are over.
async fn all_free(next: &Member, holds: &[Granted]) -> Outcome {
    for hold in holds {
        let taken = next.acquire(hold.attempt.keys().first().clone()).await?;
        let late = hold.release().await?;
        promise!(
            late == Release::NotHeld,
            "a hold outlived its session's lease, and was released"
        );
        taken.free().await?;
    }
    Ok(())
}
