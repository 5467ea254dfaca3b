//! Mutual exclusion, in the order of the tokens.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fence_core::ClassName;

use crate::conformance::bench::Place;
use crate::conformance::case::Outcome;
use crate::conformance::client::{PATIENCE, WHILE, broken, grant_id, key, member, promise, soon};
use crate::conformance::order::Rising;
use crate::store::Attempt;

pub(super) async fn rise(place: &dyn Place) -> Outcome {
    let members = [member(place).await?, member(place).await?, member(place).await?];
    let (mut one, mut other) = (Rising::default(), Rising::default());
    for round in 0..20 {
        let grant = members[round % 3].acquire(key("acct-1")).await?;
        one.granted(grant.token())?;
        if round % 2 == 0 {
            let beside = members[(round + 1) % 3].acquire(key("acct-2")).await?;
            other.granted(beside.token())?;
            beside.free().await?;
        }
        grant.free().await?;
    }
    Ok(())
}

pub(super) async fn of_a_waiter(place: &dyn Place) -> Outcome {
    let (one, two) = (member(place).await?, member(place).await?);
    let mut order = Rising::default();
    let mut holding = one.acquire(key("acct-1")).await?;
    order.granted(holding.token())?;
    let mut next = two.queue(place, key("acct-1"), 1).await?;
    for after in [&one, &two, &one] {
        let waiting = after.queue(place, key("acct-1"), 2).await?;
        holding.free().await?;
        holding = next.granted().await?;
        order.granted(holding.token())?;
        next = waiting;
    }
    holding.free().await?;
    order.granted(next.granted().await?.token())
}

pub(super) async fn race(place: &dyn Place) -> Outcome {
    const SESSIONS: u64 = 4;
    const TASKS: u64 = 3;
    const ROUNDS: u64 = 5;
    let inside = Arc::new(AtomicBool::new(false));
    let sum = Arc::new(AtomicU64::new(0));
    let order = Arc::new(Mutex::new(Rising::default()));
    let mut members = Vec::new();
    let mut tasks = Vec::new();
    for _ in 0..SESSIONS {
        let racing = Arc::new(member(place).await?);
        members.push(Arc::clone(&racing));
        for _ in 0..TASKS {
            let racing = Arc::clone(&racing);
            let (inside, sum, order) = (Arc::clone(&inside), Arc::clone(&sum), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    let grant = racing.acquire(key("acct-1")).await?;
                    promise!(!inside.swap(true, Ordering::SeqCst), "two held one lock at once");
                    order
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .granted(grant.token())?;
                    // Not atomic on purpose: exclusion makes it exact.
                    let read = sum.load(Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    sum.store(read + 1, Ordering::SeqCst);
                    inside.store(false, Ordering::SeqCst);
                    grant.free().await?;
                }
                Outcome::Ok(())
            }));
        }
    }
    for task in tasks {
        let raced = soon("a race", task).await?;
        raced.map_err(|error| broken("the race panicked", &error))??;
    }
    let counted = sum.load(Ordering::SeqCst);
    let expected = SESSIONS * TASKS * ROUNDS;
    promise!(counted == expected, "{expected} holders counted to {counted}");
    Ok(())
}

pub(super) async fn one_session_two_tasks(place: &dyn Place) -> Outcome {
    let member = member(place).await?;
    let first = member.acquire(key("acct-1")).await?;
    let second = member.queue(place, key("acct-1"), 1).await?;
    tokio::time::sleep(WHILE).await;
    promise!(
        !second.is_over(),
        "a session was granted, or refused, what it holds already"
    );
    first.free().await?;
    second.granted().await?.free().await
}

pub(super) async fn names_apart(place: &dyn Place) -> Outcome {
    let member = member(place).await?;
    let longest = "k".repeat(512);
    for (class, name) in [
        ("pay", "eu"),
        ("pay", "eu/held"),
        ("pay", "eu/queue/x"),
        ("pay", "e"),
        ("pay", "eu%2Fheld"),
        ("pay", "Eu"),
        ("pay", "eu "),
        ("pay", "é'\"\\;--"),
        ("pay", "e\u{301}"),
        ("pay", longest.as_str()),
        ("pay.eu", "eu"),
    ] {
        let class = ClassName::new(class).expect("a class name");
        let attempt = Attempt::new(member.id.clone(), class.clone(), key(name), grant_id());
        let granted = tokio::time::timeout(PATIENCE, member.store.acquire(&attempt)).await;
        match granted {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(broken(&format!("{class} {name:?} was not granted"), &error)),
            Err(_) => promise!(false, "{class} {name:?} waited for a lock of another name"),
        }
    }
    Ok(())
}
