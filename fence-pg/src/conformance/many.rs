//! The mark guard, several claims at a time.

use std::error::Error;

use fence_core::{Claim, Effect, GrantId};

use super::bed::{Bed, claim, equal, hold, in_words, insert, stale, sum, token};
use super::{Driver, End, Shown};
use crate::error::GuardError;
use crate::refused::{Refused, StaleKey};

pub(super) async fn together<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    // A key's text must not matter.
    let claims = [
        claim("many-it's", 36),
        claim("many-1", 34),
        claim("many-\\ \"2\", {}", 35),
    ];
    let one = "INSERT INTO conformance_entry (account, amount) VALUES ('many-it''s', 1)";
    let other = insert("many-1", 1);
    let receipts = driver
        .write(
            bed.isolation,
            &claims,
            &[one, &other],
            End::Commit(Effect::Applied),
        )
        .await
        .map_err(in_words)?;
    let told: Vec<Claim> = receipts.iter().map(|receipt| receipt.claim().clone()).collect();
    equal("receipts", told, claims.to_vec())?;
    for (newer, revision) in [(&claims[0], 36), (&claims[2], 35)] {
        let late = Claim {
            token: token(33),
            ..newer.clone()
        };
        let late = driver.raise_mark(&late).await;
        equal("a late claim", stale(&late), Some((token(33), token(revision))))?;
    }
    Ok(())
}

pub(super) async fn all_or_none<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    for newer in [claim("none-it's", 40), claim("none-2", 41)] {
        drop(driver.raise_mark(&newer).await.map_err(in_words)?);
    }
    let presented = [claim("none-1", 39), claim("none-2", 38), claim("none-it's", 37)];
    let answer = driver
        .write(
            bed.isolation,
            &presented,
            &[&insert("none-1", 5)],
            End::Commit(Effect::Applied),
        )
        .await;
    let Err(GuardError::Refused(Refused::StaleKeys(mut named))) = answer else {
        return Err(format!("two stale keys of three: {answer:?}"));
    };
    named.sort_by(|a, b| a.key.cmp(&b.key));
    let stale_key = |claim: &Claim, seen| StaleKey {
        class: claim.class.clone(),
        key: claim.key.clone(),
        presented: claim.token,
        seen,
    };
    equal(
        "the stale keys",
        named,
        vec![
            stale_key(&presented[1], token(41)),
            stale_key(&presented[2], token(40)),
        ],
    )?;
    // The one that is not named was not admitted either.
    drop(driver.raise_mark(&claim("none-1", 1)).await.map_err(in_words)?);
    equal(
        "the sum",
        driver.number(&sum("none-1")).await.map_err(in_words)?,
        0,
    )
}

pub(super) async fn duplicates<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let twice = [claim("twice", 34), claim("twice", 34)];
    let receipts = driver
        .write(
            bed.isolation,
            &twice,
            &[&insert("twice", 5)],
            End::Commit(Effect::Applied),
        )
        .await;
    equal("receipts", receipts.map_err(in_words)?.len(), 2)?;
    let other = Claim {
        grant_id: Some(GrantId::new("another").expect("a grant id")),
        ..claim("twice", 34)
    };
    for different in [claim("twice", 35), other] {
        let answer = driver
            .write(
                bed.isolation,
                &[claim("twice", 34), different],
                &[],
                End::Commit(Effect::Applied),
            )
            .await;
        hold(answer.is_err(), || format!("one key with two claims: {answer:?}"))?;
    }
    let nothing = driver
        .write(
            bed.isolation,
            &[],
            &[],
            End::Commit(Effect::NoWrite("nothing to do".into())),
        )
        .await;
    equal("receipts of no claim", nothing.map_err(in_words)?.len(), 0)?;
    let unadmitted = driver
        .write(
            bed.isolation,
            &[],
            &[&insert("twice", 5)],
            End::Commit(Effect::Applied),
        )
        .await;
    hold(matches!(unadmitted, Err(GuardError::Refused(_))), || {
        format!("a write without any claim: {unadmitted:?}")
    })?;
    equal(
        "the sum",
        driver.number(&sum("twice")).await.map_err(in_words)?,
        5,
    )
}
