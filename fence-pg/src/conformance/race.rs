//! Holders that overlap, over few keys.

use std::collections::BTreeMap;
use std::error::Error;

use fence_core::{Effect, Refusal};
use futures_util::future::join_all;

use super::bed::{Bed, claim, equal, guard, hold, in_words, row, sum};
use super::{Driver, End, Shown};
use crate::error::GuardError;
use crate::refused::Refused;

const HOLDERS: i64 = 4;
const ROUNDS: i64 = 8;
const KEYS: i64 = 2;

/// Which key a holder's round is about, and its revision. The later the round, the larger, and neighbours change places, so
/// that about half of the claims come late.
fn schedule(holder: i64, round: i64) -> (i64, i64) {
    let key = (holder + round) % KEYS;
    let early = (holder * 7 + round * 3) % 5;
    (key, 1 + (round + early) * HOLDERS + holder)
}

/// What a holder's attempts came to: amounts by key, and how many were stale.
#[derive(Default)]
struct Came {
    applied: BTreeMap<i64, i64>,
    stale: i64,
}

impl Came {
    /// Counts an answer; `Ok(true)` when the whole transaction is to be tried again.
    fn count<T>(&mut self, key: i64, amount: i64, answer: Result<T, GuardError>) -> Result<bool, String> {
        match answer {
            Ok(_) => *self.applied.entry(key).or_default() += amount,
            Err(GuardError::Refused(Refused::Claim(Refusal::Stale { .. }))) => self.stale += 1,
            Err(GuardError::Retryable { .. } | GuardError::Blocked { .. }) => return Ok(true),
            Err(error) => return Err(in_words(error)),
        }
        Ok(false)
    }
}

pub(super) async fn marks<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let holders = join_all((0..HOLDERS).map(|holder| async move {
        let mut driver = bed.driver().await?;
        let mut came = Came::default();
        for round in 0..ROUNDS {
            let (key, revision) = schedule(holder, round);
            let account = format!("race-{key}");
            let claim = claim(&account, revision);
            let amount = 1 + holder * ROUNDS + round;
            let entry = format!(
                "INSERT INTO conformance_entry (account, amount, revision) VALUES ('{account}', {amount}, {revision})"
            );
            // From what this transaction sees: one that saw too little would write too little.
            let total = format!(
                "UPDATE conformance_balance SET total = (SELECT sum(amount) FROM conformance_entry WHERE account = '{account}')
                 WHERE account = '{account}'"
            );
            let claims = [claim];
            loop {
                let written = driver
                    .write(bed.isolation, &claims, &[&entry, &total], End::Commit(Effect::Applied))
                    .await;
                if !came.count(key, amount, written)? {
                    break;
                }
            }
        }
        Ok::<Came, String>(came)
    }))
    .await;
    let (applied, stale) = added(holders)?;
    hold(!applied.is_empty() && stale > 0, || {
        format!("{applied:?} applied, {stale} stale")
    })?;
    let mut driver = bed.driver().await?;
    for (key, amount) in applied {
        let account = format!("race-{key}");
        equal(
            "the entries",
            driver.number(&sum(&account)).await.map_err(in_words)?,
            amount,
        )?;
        let total = format!("SELECT total FROM conformance_balance WHERE account = '{account}'");
        equal(
            "the balance",
            driver.number(&total).await.map_err(in_words)?,
            amount,
        )?;
    }
    // Ids are drawn while the key is held, so their order is that of the commits.
    let falls = "SELECT count(*) FROM (
                     SELECT revision < lag(revision) OVER (PARTITION BY account ORDER BY id) AS fell
                     FROM conformance_entry WHERE account LIKE 'race-%') t
                 WHERE fell";
    equal(
        "revisions that fell",
        driver.number(falls).await.map_err(in_words)?,
        0,
    )
}

pub(super) async fn rows<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let holders = join_all((0..HOLDERS).map(|holder| async move {
        let mut driver = bed.driver().await?;
        let mut came = Came::default();
        for round in 0..ROUNDS {
            let (key, token) = schedule(holder, round);
            let (claim, amount) = (row(30 + key, token), 1 + holder * ROUNDS + round);
            loop {
                let updated = driver
                    .update(bed.isolation, &guard(), &claim, "total = total + $3", amount)
                    .await;
                if !came.count(key, amount, updated)? {
                    break;
                }
            }
        }
        Ok::<Came, String>(came)
    }))
    .await;
    let (applied, stale) = added(holders)?;
    hold(!applied.is_empty() && stale > 0, || {
        format!("{applied:?} applied, {stale} stale")
    })?;
    let mut driver = bed.driver().await?;
    for (key, amount) in applied {
        let total = format!("SELECT total FROM conformance_batch WHERE id = {}", 30 + key);
        equal(
            "the total",
            driver.number(&total).await.map_err(in_words)?,
            amount,
        )?;
    }
    Ok(())
}

fn added(holders: Vec<Result<Came, String>>) -> Result<(BTreeMap<i64, i64>, i64), String> {
    let (mut applied, mut stale) = (BTreeMap::new(), 0);
    for came in holders {
        let came = came?;
        stale += came.stale;
        for (key, amount) in came.applied {
            *applied.entry(key).or_insert(0) += amount;
        }
    }
    Ok((applied, stale))
}
