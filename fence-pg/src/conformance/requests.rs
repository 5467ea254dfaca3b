//! Requests that may come again.

use std::error::Error;

use fence_core::Effect;
use futures_util::future::{join, join3};

use super::bed::{Bed, claim, equal, hold, in_words, insert, stale, sum, token};
use super::{Driver, Shown};
use crate::completed::{IdempotentRequest, StoredAnswer};

fn request(key: &str, principal: &str, content: &str) -> IdempotentRequest {
    IdempotentRequest::new(key, principal, content.as_bytes()).expect("visible letters")
}

fn answer(body: &str) -> StoredAnswer {
    StoredAnswer {
        status: 201,
        content_type: "text/plain".to_owned(),
        body: body.as_bytes().to_vec(),
    }
}

pub(super) async fn again<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let (old, asked) = (claim("again", 33), request("k1", "team-1", "pay 5"));
    let write = insert("again", 5);
    let (receipt, given) = driver
        .write_once(&old, &asked, &write, &answer("the first"))
        .await
        .map_err(in_words)?;
    equal("the first effect", receipt.effect(), &Effect::Applied)?;
    equal("the first answer", given, Some(answer("the first")))?;
    drop(driver.raise_mark(&claim("again", 34)).await.map_err(in_words)?);
    let (receipt, given) = driver
        .write_once(&old, &asked, &write, &answer("the second"))
        .await
        .map_err(in_words)?;
    equal(
        "the effect when it comes again",
        receipt.effect(),
        &Effect::Replayed,
    )?;
    equal("the answer when it comes again", given, Some(answer("the first")))?;
    for other in [
        request("k2", "team-1", "pay 5"),
        request("k1", "team-1", "pay 6"),
        request("k1", "team-2", "pay 5"),
    ] {
        let late = driver.write_once(&old, &other, &write, &answer("late")).await;
        equal("another one, late", stale(&late), Some((token(33), token(34))))?;
    }
    equal(
        "the sum",
        driver.number(&sum("again")).await.map_err(in_words)?,
        5,
    )
}

pub(super) async fn reused<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let write = insert("reused", 5);
    let first = request("k1", "team-1", "pay 5");
    let done = driver
        .write_once(&claim("reused", 33), &first, &write, &answer("done"))
        .await;
    drop(done.map_err(in_words)?);
    for (revision, other) in [
        (34, request("k1", "team-2", "pay 5")),
        (35, request("k1", "team-1", "pay 6")),
    ] {
        let (receipt, given) = driver
            .write_once(&claim("reused", revision), &other, &write, &answer("x"))
            .await
            .map_err(in_words)?;
        equal("the answer", given, None)?;
        hold(matches!(receipt.effect(), Effect::NoWrite(_)), || {
            format!("the effect: {:?}", receipt.effect())
        })?;
    }
    // It was a contact.
    let other = request("k3", "team-1", "x");
    let late = driver
        .write_once(&claim("reused", 34), &other, &write, &answer("x"))
        .await;
    equal("an older one", stale(&late), Some((token(34), token(35))))?;
    equal(
        "the sum",
        driver.number(&sum("reused")).await.map_err(in_words)?,
        5,
    )
}

pub(super) async fn both<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let (mut one, mut other) = (bed.driver().await?, bed.driver().await?);
    let (claim, asked, write) = (
        claim("both", 33),
        request("k1", "team-1", "pay 5"),
        insert("both", 5),
    );
    let (first, second) = (answer("one"), answer("other"));
    let (one_given, other_given) = join(
        one.write_once(&claim, &asked, &write, &first),
        other.write_once(&claim, &asked, &write, &second),
    )
    .await;
    let (one_given, other_given) = (one_given.map_err(in_words)?.1, other_given.map_err(in_words)?.1);
    hold(one_given.is_some(), || "no answer".to_owned())?;
    equal("the answer to the other copy", other_given, one_given)?;
    equal("the sum", one.number(&sum("both")).await.map_err(in_words)?, 5)
}

/// Keys of this database that are held, or waited for.
fn queued(granted: bool) -> String {
    format!(
        "SELECT count(*) FROM pg_locks WHERE granted = {granted} AND locktype = 'advisory'
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
}

pub(super) async fn overtaken<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let (mut one, mut newer, mut other) = (bed.driver().await?, bed.driver().await?, bed.driver().await?);
    let (old, asked) = (claim("overtaken", 33), request("k1", "team-1", "pay 5"));
    let (first, second) = (answer("the first"), answer("the second"));
    let (write, held, waiting) = (insert("overtaken", 5), queued(true), queued(false));
    // The first copy ends once the newer holder waits for it, and behind that one the second copy.
    let slow = format!(
        "DO $$ BEGIN {write};
         FOR look IN 1..150 LOOP EXIT WHEN ({waiting}) >= 2; PERFORM pg_sleep(0.01); END LOOP; END $$"
    );
    let newer_holder = async {
        while newer.number(&held).await.map_err(in_words)? < 1 {}
        newer.raise_mark(&claim("overtaken", 34)).await.map_err(in_words)
    };
    let second_copy = async {
        while other.number(&waiting).await.map_err(in_words)? < 1 {}
        other
            .write_once(&old, &asked, &write, &second)
            .await
            .map_err(in_words)
    };
    let first_copy = one.write_once(&old, &asked, &slow, &first);
    let (first_copy, newer_holder, second_copy) = join3(first_copy, newer_holder, second_copy).await;
    let (receipt, _) = first_copy.map_err(in_words)?;
    equal("the first effect", receipt.effect(), &Effect::Applied)?;
    drop(newer_holder?);
    let (receipt, given) = second_copy?;
    equal("the second effect", receipt.effect(), &Effect::Replayed)?;
    equal("the second answer", given, Some(answer("the first")))?;
    let sum = one.number(&sum("overtaken")).await.map_err(in_words)?;
    equal("the sum", sum, 5)
}
