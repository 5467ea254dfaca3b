//! Several keys in one step.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::conformance::bench::Place;
use crate::conformance::case::Outcome;
use crate::conformance::client::{
    Member, WHILE, broken, class, close, give_up, key, member, promise, soon, waits,
};
use crate::conformance::order::Rising;
use crate::error::AcquireError;
use crate::keys::Keys;
use crate::store::{LockStore, Release};

/// The most keys that a case asks for at once.
const MANY: usize = 128;

fn keys<'a>(names: impl IntoIterator<Item = &'a str>) -> Keys {
    Keys::new(names.into_iter().map(key)).expect("at least one key")
}

fn numbered(count: usize) -> Keys {
    Keys::new((0..count).map(|number| key(&format!("acct-{number}")))).expect("at least one key")
}

/// Whether the store grants two keys at once at all. What it cannot do, it must refuse: `several-capability` asserts that.
fn grants_two(store: &Arc<dyn LockStore>) -> bool {
    store.most_keys() >= 2
}

pub(super) async fn capability(place: &dyn Place) -> Outcome {
    let (member, other) = (member(place).await?, member(place).await?);
    let most = member.store.most_keys();
    promise!(most >= 1, "a store grants {most} keys at once");
    let many = most.min(MANY);
    let grant = member.acquire(numbered(many)).await?;
    for key in grant.attempt.keys() {
        let holder = place.holder(&class(), key).await?;
        promise!(
            holder.as_ref() == Some(grant.attempt.grant_id()),
            "of {many} keys granted at once {holder:?} holds {key}"
        );
    }
    // As many stand in as many queues at once.
    let waiting = other.queue(place, numbered(many), 1).await?;
    grant.free().await?;
    waiting.granted().await?.free().await?;
    let mut asking = member.acquiring(numbered(most + 1));
    let outcome = asking.outcome().await?;
    promise!(
        matches!(outcome, Err(AcquireError::TooManyKeys { asked, most: said }) if asked == most + 1 && said == most),
        "{} keys at once were answered with {outcome:?}",
        most + 1
    );
    promise!(!asking.attempt.was_sent(), "keys that are too many were sent");
    Ok(())
}

pub(super) async fn all_or_none(place: &dyn Place) -> Outcome {
    let (one, two) = (member(place).await?, member(place).await?);
    if !grants_two(&one.store) {
        return refused(&one).await;
    }
    let mut order: HashMap<&str, Rising> = HashMap::new();
    let held = one.acquire(key("acct-2")).await?;
    order.entry("acct-2").or_default().granted(held.token())?;
    let names = ["acct-1", "acct-2", "acct-3"];
    let waiting = two.queue(place, keys(names), 1).await?;
    waits(place, &key("acct-3"), 1).await?;
    tokio::time::sleep(WHILE).await;
    promise!(!waiting.is_over(), "keys were granted while one of them was held");
    for name in ["acct-1", "acct-3"] {
        let holder = place.holder(&class(), &key(name)).await?;
        promise!(
            holder.is_none(),
            "{holder:?} holds {name} while it waits for acct-2"
        );
    }
    held.free().await?;
    let all = waiting.granted().await?;
    for name in names {
        order.entry(name).or_default().granted(all.token())?;
        let holder = place.holder(&class(), &key(name)).await?;
        promise!(
            holder.as_ref() == Some(all.attempt.grant_id()),
            "{holder:?} holds {name}, not all of one grant"
        );
    }
    // Nobody gets one of them, also not together with another one.
    let single = one.queue(place, key("acct-3"), 1).await?;
    let pair = one.queue(place, keys(["acct-1", "acct-4"]), 1).await?;
    tokio::time::sleep(WHILE).await;
    promise!(
        !single.is_over() && !pair.is_over(),
        "a key of several was granted twice"
    );
    all.free().await?;
    order
        .entry("acct-3")
        .or_default()
        .granted(single.granted().await?.token())?;
    order
        .entry("acct-1")
        .or_default()
        .granted(pair.granted().await?.token())
}

pub(super) async fn crossing(place: &dyn Place) -> Outcome {
    const ROUNDS: u64 = 6;
    const WANTED: [&[&str]; 5] = [
        &["acct-1", "acct-2"],
        &["acct-2", "acct-1"],
        &["acct-3", "acct-2"],
        &["acct-1", "acct-3"],
        &["acct-2"],
    ];
    let first = member(place).await?;
    if !grants_two(&first.store) {
        return refused(&first).await;
    }
    let counts: Arc<HashMap<&str, AtomicU64>> = Arc::new(
        ["acct-1", "acct-2", "acct-3"]
            .map(|name| (name, AtomicU64::new(0)))
            .into(),
    );
    let order = Arc::new(Mutex::new(HashMap::<&str, Rising>::new()));
    let mut tasks = Vec::new();
    for wanted in WANTED {
        let racing = member(place).await?;
        let (counts, order) = (Arc::clone(&counts), Arc::clone(&order));
        tasks.push(tokio::spawn(async move {
            for _ in 0..ROUNDS {
                let grant = racing.acquire(keys(wanted.iter().copied())).await?;
                for name in wanted {
                    let mut order = order.lock().unwrap_or_else(PoisonError::into_inner);
                    order.entry(name).or_default().granted(grant.token())?;
                }
                let read: Vec<u64> = wanted
                    .iter()
                    .map(|name| counts[name].load(Ordering::SeqCst))
                    .collect();
                tokio::task::yield_now().await;
                for (name, read) in wanted.iter().zip(read) {
                    counts[name].store(read + 1, Ordering::SeqCst);
                }
                grant.free().await?;
            }
            Outcome::Ok(())
        }));
    }
    for task in tasks {
        let raced = soon("a race for several keys", task).await?;
        raced.map_err(|error| broken("the race panicked", &error))??;
    }
    for (name, count) in counts.iter() {
        let wanting = WANTED.iter().filter(|wanted| wanted.contains(name)).count();
        let expected = ROUNDS * u64::try_from(wanting).expect("a few");
        let counted = count.load(Ordering::SeqCst);
        promise!(
            counted == expected,
            "{expected} holders of {name} counted to {counted}"
        );
    }
    Ok(())
}

pub(super) async fn loss(place: &dyn Place) -> Outcome {
    let (one, next) = (member(place).await?, member(place).await?);
    if !grants_two(&one.store) {
        return refused(&one).await;
    }
    let both = || keys(["acct-1", "acct-2"]);
    // By release, once.
    let grant = one.acquire(both()).await?;
    grant.free().await?;
    let taken = next.acquire(both()).await?;
    let again = grant.release().await?;
    promise!(
        again == Release::NotHeld,
        "a release that was sent again found its keys"
    );
    // A place in both queues, by giving up.
    let waiting = one.queue(place, both(), 1).await?;
    waits(place, &key("acct-2"), 1).await?;
    waiting.give_up().await?;
    waits(place, &key("acct-1"), 0).await?;
    waits(place, &key("acct-2"), 0).await?;
    taken.free().await?;
    // A grant that landed, by giving up.
    let landed = one.acquire(both()).await?;
    give_up(&one.store, &landed.attempt).await?;
    next.acquire(both()).await?.free().await?;
    // By the session's end.
    let lost = Member::silent(place.client().await?, Duration::from_secs(60)).await?;
    let _held = lost.acquire(both()).await?;
    close(&next.store, &lost.id).await?;
    next.acquire(both()).await?.free().await
}

/// A store that grants one key at a time says so when it is asked for two.
async fn refused(member: &Member) -> Outcome {
    let mut asking = member.acquiring(keys(["acct-1", "acct-2"]));
    let outcome = asking.outcome().await?;
    promise!(
        matches!(outcome, Err(AcquireError::TooManyKeys { asked: 2, most: 1 })),
        "two keys at once were answered with {outcome:?}"
    );
    Ok(())
}
