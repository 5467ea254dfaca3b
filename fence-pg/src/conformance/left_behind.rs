//! What is left on a connection for its next user, and of an answer that was lost.

use std::error::Error;
use std::time::{Duration, Instant};

use fence_core::{Effect, MissingPart, Refusal};

use super::bed::{Bed, claim, equal, hold, in_words, insert, sum};
use super::{Driver, End, Shown};
use crate::error::GuardError;
use crate::outcome::Resolved;
use crate::refused::Refused;

pub(super) async fn admission<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let write = insert("left", 5);
    let claims = [claim("left", 34)];
    for (number, end) in [End::Commit(Effect::Applied), End::RollBack, End::Drop]
        .into_iter()
        .enumerate()
    {
        let ended = driver.write(bed.isolation, &claims, &[&write], end.clone()).await;
        drop(ended.map_err(in_words)?);
        forgotten(&mut driver, &write).await?;
        drop(
            driver
                .write_at_once(bed.isolation, &claims[0], &write)
                .await
                .map_err(in_words)?,
        );
        forgotten(&mut driver, &write).await?;
        drop(driver.raise_mark(&claims[0]).await.map_err(in_words)?);
        forgotten(&mut driver, &write).await?;
        let late = driver
            .write_at_once(bed.isolation, &claim("left", 33), &write)
            .await;
        hold(late.is_err(), || format!("a late write: {late:?}"))?;
        forgotten(&mut driver, &write).await?;
        // The commit, and a flight each time.
        let applied = 5 * (2 + i64::try_from(number).unwrap_or(0));
        equal(
            "the sum",
            driver.number(&sum("left")).await.map_err(in_words)?,
            applied,
        )?;
    }
    for (setting, value) in [
        ("lock_timeout", "0"),
        ("idle_in_transaction_session_timeout", "0"),
    ] {
        let kept = format!("SELECT (current_setting('{setting}') = '{value}')::int::bigint");
        equal(setting, driver.number(&kept).await.map_err(in_words)?, 1)?;
    }
    Ok(())
}

async fn forgotten<D: Driver>(driver: &mut D, write: &str) -> Shown {
    let answer = driver.run(write).await;
    let missing = Refused::Claim(Refusal::Missing(MissingPart::Token));
    hold(
        matches!(&answer, Err(GuardError::Refused(refused)) if *refused == missing),
        || format!("a write without an admission of its own: {answer:?}"),
    )
}

pub(super) async fn resolved<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let write = "INSERT INTO conformance_entry (account, amount, request) VALUES ('resolved', 5, 'r-1')";
    drop(
        driver
            .write_at_once(bed.isolation, &claim("resolved", 34), write)
            .await
            .map_err(in_words)?,
    );
    let question = "SELECT 1 FROM conformance_entry WHERE request = $1";
    for newest in [34, 35] {
        drop(
            driver
                .raise_mark(&claim("resolved", newest))
                .await
                .map_err(in_words)?,
        );
        for (request, expected) in [("r-1", Resolved::Landed), ("r-2", Resolved::NotLanded)] {
            let found = driver.resolve(&claim("resolved", 34), question, request).await;
            equal(request, found.map_err(in_words)?, expected)?;
        }
    }
    Ok(())
}

pub(super) async fn transactions<D: Driver, E: Error, C: AsyncFn() -> Result<D, E>>(bed: &Bed<C>) -> Shown {
    let mut driver = bed.driver().await?;
    let open = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
                  AND backend_type = 'client backend'";
    // The cases before may just be closing their connections.
    let began = Instant::now();
    loop {
        let found = driver.number(open).await.map_err(in_words)?;
        if found == 0 {
            return Ok(());
        }
        hold(began.elapsed() < Duration::from_secs(10), || {
            format!("{found} open transactions")
        })?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
