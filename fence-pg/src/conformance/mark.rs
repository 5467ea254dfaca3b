//! The mark guard, one claim at a time.

use std::error::Error;
use std::time::{Duration, Instant};

use fence_core::{Claim, ClassName, Effect, GrantId, MissingPart, Refusal, Token};
use futures_util::future::join;

use super::bed::{Bed, claim, equal, hold, in_words, insert, stale, sum, token};
use super::{Driver, End, Shown};
use crate::error::GuardError;
use crate::isolation::Isolation;
use crate::refused::Refused;

pub(super) async fn order<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let newer = claim("order", 34);
    let write = insert("order", 5);
    let receipts = driver
        .write(
            bed.isolation,
            std::slice::from_ref(&newer),
            &[&write],
            End::Commit(Effect::Applied),
        )
        .await
        .map_err(in_words)?;
    let told: Vec<_> = receipts
        .iter()
        .map(|r| (r.claim().clone(), r.effect().clone()))
        .collect();
    equal("receipts", told, vec![(newer, Effect::Applied)])?;
    let late = driver
        .write(
            bed.isolation,
            &[claim("order", 33)],
            &[&write],
            End::Commit(Effect::Applied),
        )
        .await;
    equal("the late write", stale(&late), Some((token(33), token(34))))?;
    equal(
        "the sum",
        driver.number(&sum("order")).await.map_err(in_words)?,
        5,
    )
}

pub(super) async fn equal_tokens<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let write = insert("equal", 5);
    for _ in 0..2 {
        let written = driver
            .write(
                bed.isolation,
                &[claim("equal", 34)],
                &[&write],
                End::Commit(Effect::Applied),
            )
            .await;
        drop(written.map_err(in_words)?);
    }
    let other = Claim {
        grant_id: Some(GrantId::new("another").expect("a grant id")),
        ..claim("equal", 34)
    };
    let collided = driver
        .write(bed.isolation, &[other], &[&write], End::Commit(Effect::Applied))
        .await;
    refused_as(
        &collided,
        &Refused::Claim(Refusal::Collision { token: token(34) }),
    )?;
    equal(
        "the sum",
        driver.number(&sum("equal")).await.map_err(in_words)?,
        10,
    )
}

pub(super) async fn refusals<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let write = insert("refusals", 5);
    let without = Claim {
        grant_id: None,
        ..claim("refusals", 34)
    };
    let far = Token::new((2 << 48) + 1).expect("a token of epoch 2");
    let outside = Claim {
        token: far,
        ..claim("refusals", 34)
    };
    let unknown = Claim {
        class: ClassName::new("conformance.unknown").expect("a class's name"),
        ..claim("refusals", 34)
    };
    for (presented, expected) in [
        (without, Refused::Claim(Refusal::Missing(MissingPart::GrantId))),
        (outside, Refused::Claim(Refusal::UnknownEpoch { presented: far })),
        (unknown, Refused::UnknownClass("conformance.unknown".into())),
    ] {
        let answer = driver
            .write(
                bed.isolation,
                &[presented],
                &[&write],
                End::Commit(Effect::Applied),
            )
            .await;
        refused_as(&answer, &expected)?;
    }
    let elsewhere = driver
        .write(
            bed.isolation,
            &[claim("refusals", 34)],
            &[&insert("elsewhere", 5)],
            End::Commit(Effect::Applied),
        )
        .await;
    hold(
        matches!(elsewhere, Err(GuardError::Refused(Refused::WrongKey(_)))),
        || format!("a row of another key: {elsewhere:?}"),
    )?;
    equal(
        "the sum",
        driver.number(&sum("refusals")).await.map_err(in_words)?,
        0,
    )
}

pub(super) async fn contact<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    for end in [End::RollBack, End::Drop] {
        let gone = driver
            .write(bed.isolation, &[claim("contact", 40)], &[], end)
            .await;
        equal(
            "receipts of what was rolled back",
            gone.map_err(in_words)?.len(),
            0,
        )?;
    }
    let refusal = Effect::NoWrite("too little money".into());
    let receipts = driver
        .write(
            bed.isolation,
            &[claim("contact", 35)],
            &[],
            End::Commit(refusal.clone()),
        )
        .await
        .map_err(in_words)?;
    equal(
        "the effect",
        receipts.first().map(|receipt| receipt.effect().clone()),
        Some(refusal),
    )?;
    let late = driver
        .write(
            bed.isolation,
            &[claim("contact", 34)],
            &[],
            End::Commit(Effect::Applied),
        )
        .await;
    equal("the late claim", stale(&late), Some((token(34), token(35))))
}

pub(super) async fn raise<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let receipt = driver.raise_mark(&claim("raise", 34)).await.map_err(in_words)?;
    hold(matches!(receipt.effect(), Effect::NoWrite(_)), || {
        format!("{receipt:?}")
    })?;
    let late = driver.raise_mark(&claim("raise", 33)).await;
    equal("the late raise", stale(&late), Some((token(33), token(34))))?;
    let late = driver
        .write(
            bed.isolation,
            &[claim("raise", 33)],
            &[&insert("raise", 5)],
            End::Commit(Effect::Applied),
        )
        .await;
    equal("the late write", stale(&late), Some((token(33), token(34))))
}

pub(super) async fn failed_statement<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(
    bed: &Bed<C>,
) -> Shown {
    let mut driver = bed.driver().await?;
    let write = insert("failed", 5);
    for (end, sqlstate) in [
        (End::Commit(Effect::Applied), "22012"),
        (End::CommitDespite(Effect::Applied), "25P02"),
    ] {
        let answer = driver
            .write(
                bed.isolation,
                &[claim("failed", 34)],
                &[&write, "SELECT 1 / 0"],
                end,
            )
            .await;
        failed_with(&answer, sqlstate)?;
    }
    // What a savepoint undoes leaves the rest.
    let saved = [
        &write,
        "SAVEPOINT a",
        "SELECT 1 / 0",
        "ROLLBACK TO SAVEPOINT a",
        "RELEASE SAVEPOINT a",
    ];
    let receipts = driver
        .write(
            bed.isolation,
            &[claim("failed", 34)],
            &saved,
            End::CommitDespite(Effect::Applied),
        )
        .await;
    equal("receipts", receipts.map_err(in_words)?.len(), 1)?;
    equal(
        "the sum",
        driver.number(&sum("failed")).await.map_err(in_words)?,
        5,
    )
}

pub(super) async fn deferred<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let write = "INSERT INTO conformance_entry (account, amount, ref) VALUES ('deferred', 5, -1)";
    let answer = driver
        .write(
            bed.isolation,
            &[claim("deferred", 34)],
            &[write],
            End::Commit(Effect::Applied),
        )
        .await;
    failed_with(&answer, "23503")?;
    let answer = driver
        .write_at_once(bed.isolation, &claim("deferred", 34), write)
        .await;
    failed_with(&answer, "23503")?;
    equal(
        "the sum",
        driver.number(&sum("deferred")).await.map_err(in_words)?,
        0,
    )
}

pub(super) async fn blocked<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let (mut holder, mut driver) = (bed.driver().await?, bed.driver().await?);
    holder.run(&held("blocked", 33)).await.map_err(in_words)?;
    let write = insert("blocked", 5);
    let began = Instant::now();
    let answer = driver
        .write(
            bed.isolation,
            &[claim("blocked", 34)],
            &[&write],
            End::Commit(Effect::Applied),
        )
        .await;
    let waited = began.elapsed();
    hold(
        matches!(&answer, Err(GuardError::Blocked { by: Some(by) }) if by.contains("pid ")),
        || format!("a held key: {answer:?}"),
    )?;
    hold(waited < Duration::from_secs(10), || {
        format!("it waited {waited:?}")
    })?;
    holder.run("ROLLBACK").await.map_err(in_words)?;
    let free = driver
        .write(
            bed.isolation,
            &[claim("blocked", 34)],
            &[&write],
            End::Commit(Effect::Applied),
        )
        .await;
    equal("receipts once it is free", free.map_err(in_words)?.len(), 1)
}

pub(super) async fn waited<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let (mut holder, mut driver) = (bed.driver().await?, bed.driver().await?);
    let mut watcher = bed.driver().await?;
    holder.run(&held("waited", 33)).await.map_err(in_words)?;
    let claims = [claim("waited", 34)];
    let write = insert("waited", 5);
    let statements = [write.as_str()];
    let second = driver.write(bed.isolation, &claims, &statements, End::Commit(Effect::Applied));
    let first = async {
        until_somebody_waits(&mut watcher).await?;
        holder.run("COMMIT").await.map_err(in_words)
    };
    let (second, first) = join(second, first).await;
    first?;
    match bed.isolation {
        Isolation::ReadCommitted => equal("receipts", second.map_err(in_words)?.len(), 1),
        Isolation::RepeatableRead | Isolation::Serializable => {
            hold(
                matches!(&second, Err(GuardError::Retryable { sqlstate, .. }) if sqlstate == "40001"),
                || format!("a snapshot from before the wait: {second:?}"),
            )?;
            let again = driver
                .write(bed.isolation, &claims, &[&write], End::Commit(Effect::Applied))
                .await;
            equal("receipts", again.map_err(in_words)?.len(), 1)
        }
    }?;
    equal(
        "the sum",
        driver.number(&sum("waited")).await.map_err(in_words)?,
        5,
    )
}

/// Statements that leave a transaction open, which has admitted this key.
fn held(key: &str, revision: i64) -> String {
    format!(
        "BEGIN; SELECT fence.admit('conformance.account', '{key}', {}, 'g{revision}')",
        token(revision)
    )
}

pub(super) async fn until_somebody_waits<D: Driver>(watcher: &mut D) -> Shown {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let began = Instant::now();
    while watcher.number(waiting).await.map_err(in_words)? == 0 {
        hold(began.elapsed() < Duration::from_secs(20), || {
            "nobody waits for a lock".into()
        })?;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

fn refused_as<T: std::fmt::Debug>(answer: &Result<T, GuardError>, expected: &Refused) -> Shown {
    hold(
        matches!(answer, Err(GuardError::Refused(refused)) if refused == expected),
        || format!("expected {expected:?}, found {answer:?}"),
    )
}

pub(super) fn failed_with<T: std::fmt::Debug>(answer: &Result<T, GuardError>, expected: &str) -> Shown {
    hold(
        matches!(answer, Err(GuardError::Database { sqlstate: Some(code), .. }) if code == expected),
        || format!("expected SQLSTATE {expected}, found {answer:?}"),
    )
}
