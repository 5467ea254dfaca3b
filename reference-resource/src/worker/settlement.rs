//! Settling a batch, straight in paydb's database, under the column guard.

use std::time::{Duration, Instant};

use fence_core::{Claim, Effect};
use fence_pg::tokio_postgres::begin_column;
use fence_pg::{Bounds, ColumnGuard, GuardError};
use tokio_postgres::{Config, NoTls};

use super::exit::WorkerError;
use super::gate::gate;
use super::lock::Lock;
use super::options::SettlementJob;
use crate::with_causes;

const STEP: &str = "settle the batch";

/// How long attempts are made in all: well beyond the bounds that a stopped predecessor can hold the row for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes the lock and settles the batch.
pub(super) async fn run(job: &SettlementJob) -> Result<(), WorkerError> {
    let lock = Lock::take(&job.lock, "coord", "paydb.settlement", &job.batch).await?;
    let settled = match lock.claim().await {
        Ok(claim) => settle(job, &claim).await,
        Err(lost) => Err(lost),
    };
    lock.release().await;
    settled
}

/// Attempts until one is answered for good. Every attempt is a transaction of its own on a connection of its own, and
/// presents the same write with the same token, which was read from the hold when the work started: whether it may still
/// write is for the guard to say.
async fn settle(job: &SettlementJob, claim: &Claim) -> Result<(), WorkerError> {
    let give_up = Instant::now() + PATIENCE;
    // An earlier attempt may have landed, though its answer did not come.
    let mut may_have_landed = false;
    loop {
        let error = match attempt(&job.database_url, claim, may_have_landed).await {
            Ok(Attempt::Settled(total)) => {
                println!("{}: settled, total {total}", job.batch);
                return Ok(());
            }
            Ok(Attempt::Before) => {
                println!("{}: settled before", job.batch);
                return Ok(());
            }
            Err(AttemptError::Gate(error)) => return Err(error),
            Err(AttemptError::Guard(error)) => error,
        };
        println!("{STEP}: {}", with_causes(&error));
        match error {
            GuardError::Refused(refused) => {
                return Err(WorkerError::Fenced {
                    step: STEP,
                    answer: with_causes(&refused),
                });
            }
            GuardError::NotFound | GuardError::Database { .. } | GuardError::Misuse(_) => {
                return Err(WorkerError::Refused {
                    step: STEP,
                    answer: with_causes(&error),
                });
            }
            // It waited for its turn already.
            GuardError::Blocked { .. } => {}
            GuardError::Retryable { .. } | GuardError::Unavailable { .. } => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            GuardError::Unknown { .. } => may_have_landed = true,
        }
        if Instant::now() >= give_up {
            return Err(WorkerError::Unsettled {
                step: STEP,
                why: format!("no answer for good within {PATIENCE:?}"),
            });
        }
    }
}

enum Attempt {
    Settled(i64),
    Before,
}

enum AttemptError {
    Guard(GuardError),
    Gate(WorkerError),
}

impl From<GuardError> for AttemptError {
    fn from(error: GuardError) -> AttemptError {
        AttemptError::Guard(error)
    }
}

async fn attempt(database: &Config, claim: &Claim, may_have_landed: bool) -> Result<Attempt, AttemptError> {
    let (mut client, connection) = database
        .connect(NoTls)
        .await
        .map_err(fence_pg::tokio_postgres::sort)?;
    // Ends when the client is dropped. What goes wrong on it, the client's own calls say.
    tokio::spawn(connection);
    let grant_id = claim.grant_id.as_ref().map_or("", |id| id.as_str());
    let guard = ColumnGuard::new("settlement_batch", "id", "fence_token").expect("names");
    let mut transaction = begin_column(&mut client, &guard, claim, Bounds::default()).await?;
    // The claim reads the batch under the token that it leaves there: nothing older can write from here on.
    let row = transaction
        .update("grant_id = $3", "state, amount", &[&grant_id])
        .await?;
    let state: &str = row.get("state");
    if state == "settled" && !may_have_landed {
        transaction.rollback().await?;
        return Ok(Attempt::Before);
    }
    let total: i64 = row.get("amount");
    transaction
        .update("state = 'settled', settled_total = $3", "", &[&total])
        .await?;
    gate("before-commit").await.map_err(AttemptError::Gate)?;
    drop(transaction.commit(Effect::Applied).await?);
    Ok(Attempt::Settled(total))
}
