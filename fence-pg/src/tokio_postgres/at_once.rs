//! A whole guarded transaction in one flight.

use std::sync::atomic::{AtomicBool, Ordering};

use ::tokio_postgres::types::{ToSql, Type};
use ::tokio_postgres::{Client, Error};
use fence_core::{Claim, Effect, Receipt};
use futures_util::future::{join, join3};

use super::held::{Held, last_value, present};
use super::sort_at;
use crate::error::{ClosedBefore, EndedInside, GuardError, Phase};
use crate::isolation::Isolation;
use crate::mark::{ADMIT, RAISE_MARK, STILL_OPEN};
use crate::outcome::Written;

/// Sends BEGIN, the admission, one write and COMMIT together, and reads all the answers: one round trip, whatever they are.
///
/// `sql` is one statement; `params` are its parameters with their types. The statements are unnamed, so that this works behind
/// a transaction pooler.
///
/// # Errors
///
/// [`GuardError`]; [`GuardError::Unknown`] when the connection was lost before an answer decided.
pub async fn write_at_once(
    client: &mut Client,
    isolation: Isolation,
    claim: &Claim,
    sql: &str,
    params: &[(&(dyn ToSql + Sync), Type)],
) -> Result<Written, GuardError> {
    let rows = at_once(client, isolation, ADMIT, claim, Some((sql, params))).await?;
    Ok(Written::new(rows, claim))
}

/// Raises the mark in a transaction of its own, in one round trip: after a grant, and before the first read that a write will
/// depend on.
///
/// # Errors
///
/// [`GuardError`]; after [`GuardError::Unknown`] the mark may have been raised: raise it again.
pub async fn raise_mark(client: &mut Client, claim: &Claim) -> Result<Receipt, GuardError> {
    at_once(client, Isolation::ReadCommitted, RAISE_MARK, claim, None).await?;
    Ok(Receipt::danger_assume(
        claim.clone(),
        Effect::NoWrite("raised the mark".into()),
    ))
}

type Write<'a> = (&'a str, &'a [(&'a (dyn ToSql + Sync), Type)]);

async fn at_once(
    client: &mut Client,
    isolation: Isolation,
    admission: &str,
    claim: &Claim,
    write: Option<Write<'_>>,
) -> Result<u64, GuardError> {
    if client.is_closed() {
        let source = Box::new(ClosedBefore);
        return Err(GuardError::Unavailable { source });
    }
    let mut held = Held::new(client);
    let client = held.client();
    // A write that cannot even be encoded is not sent, and then COMMIT must not be either.
    let unsent = AtomicBool::new(false);
    let written = async {
        let Some((sql, params)) = write else {
            return Ok(0);
        };
        let written = client.execute_typed(sql, params).await;
        unsent.store(written.is_err(), Ordering::Relaxed);
        written
    };
    let ended = async {
        if unsent.load(Ordering::Relaxed) {
            return (Ok(Vec::new()), client.batch_execute("ROLLBACK").await);
        }
        join(client.simple_query(STILL_OPEN), client.batch_execute("COMMIT")).await
    };
    // Polled in this order, so sent in this order, before any answer is there.
    let (begun, (admitted, written, (look, ended))) = join(
        client.batch_execute(isolation.begin_sql()),
        join3(present(client, admission, claim), written, ended),
    )
    .await;
    if ended.is_ok() {
        // Whatever was answered before: a COMMIT of a failed transaction ends it, too.
        held.is_over();
    }
    let sort = |error| sort_answer(error, claim);
    begun.map_err(sort)?;
    let xid = admitted.map_err(sort)?;
    let rows = written.map_err(|error| match unsent.load(Ordering::Relaxed) && is_local(&error) {
        true => super::sort(error),
        false => sort_answer(error, claim),
    })?;
    let look = look.map_err(sort)?;
    ended.map_err(|error| sort_at(error, Phase::Commit, std::slice::from_ref(claim)))?;
    if last_value(&look) != Some(xid) {
        let source = Box::new(EndedInside);
        return Err(GuardError::Unknown { source });
    }
    Ok(rows)
}

/// An answer of the server is definite; without one, or with a pooler's in its place, COMMIT has been sent and may have been
/// done.
fn sort_answer(error: Error, claim: &Claim) -> GuardError {
    let phase = match error.code() {
        Some(code) if !code.code().starts_with("08") => Phase::Statement,
        _ => Phase::Commit,
    };
    sort_at(error, phase, std::slice::from_ref(claim))
}

/// Whether the driver refused on this side, without sending anything.
fn is_local(error: &Error) -> bool {
    error.as_db_error().is_none() && !error.is_closed() && !super::is_io(error)
}
