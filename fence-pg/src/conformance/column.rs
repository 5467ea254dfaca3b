//! The column guard.

use std::error::Error;

use fence_core::{Claim, Effect, Key, Token};
use futures_util::future::join;

use super::bed::{Bed, equal, guard, hold, in_words, row, stale};
use super::mark::until_somebody_waits;
use super::{Driver, Shown};
use crate::error::GuardError;
use crate::outcome::{BatchError, RowOutcome};
use crate::refused::Refused;

const ADD: &str = "total = total + $3";

fn token(number: i64) -> Token {
    Token::new(number).expect("a token")
}

async fn state<D: Driver>(driver: &mut D, id: i64) -> Result<(i64, i64), String> {
    let of = |column: &str| format!("SELECT {column} FROM conformance_batch WHERE id = {id}");
    let token = driver.number(&of("token")).await.map_err(in_words)?;
    let total = driver.number(&of("total")).await.map_err(in_words)?;
    Ok((token, total))
}

pub(super) async fn order<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    for _ in 0..2 {
        let receipt = driver
            .update(bed.isolation, &guard(), &row(1, 34), ADD, 5)
            .await
            .map_err(in_words)?;
        equal(
            "the receipt",
            (receipt.claim().clone(), receipt.effect().clone()),
            (row(1, 34), Effect::Applied),
        )?;
    }
    let late = driver.update(bed.isolation, &guard(), &row(1, 33), ADD, 5).await;
    equal("the late update", stale(&late), Some((token(33), token(34))))?;
    equal("the row", state(&mut driver, 1).await?, (34, 10))
}

pub(super) async fn absent<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let absent = driver
        .update(bed.isolation, &guard(), &row(999, 34), ADD, 5)
        .await;
    hold(matches!(absent, Err(GuardError::NotFound)), || {
        format!("an absent row: {absent:?}")
    })
}

pub(super) async fn other_key<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    for spelled in ["020", " 20"] {
        let claim = Claim {
            key: Key::text(spelled).expect("a key"),
            ..row(20, 34)
        };
        let claims = [row(21, 34), claim.clone()];
        let single = driver.update(bed.isolation, &guard(), &claim, ADD, 5).await;
        let each = driver.update_each(bed.isolation, &guard(), &claims, ADD, 5).await;
        let all = driver.update_all(bed.isolation, &guard(), &claims, ADD, 5).await;
        for answer in [
            single.map(drop),
            each.map(drop),
            all.map(drop).map_err(GuardError::from),
        ] {
            hold(
                matches!(answer, Err(GuardError::Refused(Refused::WrongKey(_)))),
                || format!("a key that reads {spelled:?}: {answer:?}"),
            )?;
        }
    }
    equal("the row", state(&mut driver, 20).await?, (0, 0))?;
    equal("the other row", state(&mut driver, 21).await?, (0, 0))
}

pub(super) async fn replaced<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let (mut other, mut driver, mut watcher) =
        (bed.driver().await?, bed.driver().await?, bed.driver().await?);
    let replace = "BEGIN; DELETE FROM conformance_batch WHERE id = 25; INSERT INTO conformance_batch VALUES (25, 34, 0)";
    other.run(replace).await.map_err(in_words)?;
    let update = async { driver.update(bed.isolation, &guard(), &row(25, 35), ADD, 5).await };
    let commit = async {
        until_somebody_waits(&mut watcher).await?;
        other.run("COMMIT").await.map_err(in_words)
    };
    let (answer, committed) = join(update, commit).await;
    committed?;
    hold(
        matches!(&answer, Err(GuardError::Retryable { sqlstate, .. }) if sqlstate == "40001"),
        || format!("a row that was replaced meanwhile: {answer:?}"),
    )?;
    let again = driver.update(bed.isolation, &guard(), &row(25, 35), ADD, 5).await;
    drop(again.map_err(in_words)?);
    equal("the row", state(&mut driver, 25).await?, (35, 5))
}

pub(super) async fn batch<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let claims = [row(12, 36), row(10, 34), row(11, 35)];
    let receipts = driver
        .update_all(bed.isolation, &guard(), &claims, ADD, 5)
        .await
        .map_err(in_words)?;
    let told: Vec<_> = receipts.iter().map(|receipt| receipt.claim().clone()).collect();
    equal("receipts", told, claims.to_vec())?;
    for (id, token) in [(10, 34), (11, 35), (12, 36)] {
        equal("a row", state(&mut driver, id).await?, (token, 5))?;
    }
    let mixed = [row(10, 40), row(999, 40), row(11, 33), row(12, 35)];
    let answer = driver.update_all(bed.isolation, &guard(), &mixed, ADD, 5).await;
    let Err(BatchError::Rows { stale, not_found }) = answer else {
        return Err(format!("two stale rows and an absent one: {answer:?}"));
    };
    let named: Vec<_> = stale
        .iter()
        .map(|stale| (stale.key.clone(), stale.presented, stale.seen))
        .collect();
    equal(
        "the stale rows",
        named,
        vec![
            (Key::integer(11), token(33), token(35)),
            (Key::integer(12), token(35), token(36)),
        ],
    )?;
    equal("the absent rows", not_found, vec![Key::integer(999)])?;
    equal("a row of the batch", state(&mut driver, 10).await?, (34, 5))
}

pub(super) async fn each<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let newer = driver.update(bed.isolation, &guard(), &row(15, 40), ADD, 5).await;
    drop(newer.map_err(in_words)?);
    let outcomes = driver
        .update_each(
            bed.isolation,
            &guard(),
            &[row(14, 39), row(999, 39), row(15, 39)],
            ADD,
            7,
        )
        .await
        .map_err(in_words)?;
    equal(
        "the outcomes",
        outcomes,
        vec![
            (Key::integer(14), RowOutcome::Applied(())),
            (Key::integer(999), RowOutcome::NotFound),
            (Key::integer(15), RowOutcome::Stale { seen: token(40) }),
        ],
    )?;
    equal("the row that could be", state(&mut driver, 14).await?, (39, 7))?;
    equal("the row that could not", state(&mut driver, 15).await?, (40, 5))
}

pub(super) async fn degenerate<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let nothing = driver.update_all(bed.isolation, &guard(), &[], ADD, 5).await;
    equal("receipts of nothing", nothing.map_err(in_words)?.len(), 0)?;
    let twice = driver
        .update_all(bed.isolation, &guard(), &[row(16, 34), row(16, 34)], ADD, 5)
        .await;
    equal("receipts of one row", twice.map_err(in_words)?.len(), 1)?;
    equal("the row", state(&mut driver, 16).await?, (34, 5))?;
    let two = driver
        .update_all(bed.isolation, &guard(), &[row(16, 35), row(16, 36)], ADD, 5)
        .await;
    hold(
        matches!(two, Err(BatchError::Guard(GuardError::Misuse(_)))),
        || format!("one row with two tokens: {two:?}"),
    )
}
