//! A whole guarded transaction in one flight.

use std::error::Error;

use fence_core::Effect;

use super::bed::{Bed, claim, equal, hold, in_words, insert, stale, sum, token};
use super::mark::failed_with;
use super::{Driver, Shown};
use crate::error::GuardError;
use crate::refused::Refused;

pub(super) async fn applied<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let claim = claim("once", 34);
    let two = "INSERT INTO conformance_entry (account, amount) VALUES ('once', 5), ('once', 6) RETURNING id -- both";
    for (statement, rows, effect) in [
        (two, 2, Effect::Applied),
        (
            "UPDATE conformance_entry SET amount = 7 WHERE account = 'once'",
            2,
            Effect::Applied,
        ),
        (
            "DELETE FROM conformance_entry WHERE account = 'once' AND amount = 0",
            0,
            Effect::NoWrite("no row matched".into()),
        ),
    ] {
        let written = driver
            .write_at_once(bed.isolation, &claim, statement)
            .await
            .map_err(in_words)?;
        equal("rows", written.rows_affected, rows)?;
        equal("the effect", written.receipt.effect().clone(), effect)?;
        equal("the claim", written.receipt.claim().clone(), claim.clone())?;
    }
    equal(
        "the sum",
        driver.number(&sum("once")).await.map_err(in_words)?,
        14,
    )
}

pub(super) async fn refused<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let write = insert("once-refused", 5);
    drop(
        driver
            .raise_mark(&claim("once-refused", 34))
            .await
            .map_err(in_words)?,
    );
    let late = driver
        .write_at_once(bed.isolation, &claim("once-refused", 33), &write)
        .await;
    equal("the late write", stale(&late), Some((token(33), token(34))))?;
    let newer = claim("once-refused", 35);
    let elsewhere = driver
        .write_at_once(bed.isolation, &newer, &insert("elsewhere", 5))
        .await;
    hold(
        matches!(elsewhere, Err(GuardError::Refused(Refused::WrongKey(_)))),
        || format!("a row of another key: {elsewhere:?}"),
    )?;
    let broken = driver
        .write_at_once(
            bed.isolation,
            &newer,
            "DELETE FROM conformance_entry WHERE 1 / 0 = 1",
        )
        .await;
    failed_with(&broken, "22012")?;
    // Its admission went with it.
    drop(
        driver
            .write_at_once(bed.isolation, &claim("once-refused", 34), &write)
            .await
            .map_err(in_words)?,
    );
    equal(
        "the sum",
        driver.number(&sum("once-refused")).await.map_err(in_words)?,
        5,
    )
}

pub(super) async fn ended_inside<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    for inside in ["ROLLBACK", "COMMIT"] {
        let answer = driver
            .write_at_once(bed.isolation, &claim("once-ended", 34), inside)
            .await;
        hold(matches!(answer, Err(GuardError::Unknown { .. })), || {
            format!("{inside} as the write: {answer:?}")
        })?;
    }
    driver
        .number("SELECT 1::bigint")
        .await
        .map(drop)
        .map_err(in_words)
}
