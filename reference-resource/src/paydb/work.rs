//! Making what was accepted to be made later.

use std::collections::HashSet;
use std::io::Write as _;
use std::process::ExitCode;

use fence_core::{Effect, Receipt};
use fence_pg::GuardError;
use fence_pg::sqlx::{begin, sort};
use sqlx::PgPool;

use super::answer::Problem;
use super::jobs::{self, Decision, Undecided};
use super::ledger;
use super::options::JobsOptions;
use super::run::{RunError, log_up_to, open};
use crate::with_causes;

/// The exit codes of `paydb-jobs`, in words.
pub const JOBS_EXIT_CODES: &str = "Exit codes:
  0  nothing is left to be decided
  1  anything else
  2  wrong usage
  3  some could not be decided now; run it again
  4  the database cannot be reached";

/// Why there is something left to be done.
#[derive(Debug, thiserror::Error)]
pub enum JobsError {
    /// The work could not be begun.
    #[error(transparent)]
    Start(#[from] RunError),
    /// The jobs could not be read, or what became of one could not be noted. Run it again: each is still made once.
    #[error("the jobs cannot be read or noted")]
    Jobs(#[source] sqlx::Error),
    /// So many were blocked, or not answered. Run it again: each is still made once.
    #[error("{0} could not be decided now")]
    Undecided(usize),
}

impl JobsError {
    /// The process's exit code, as [`JOBS_EXIT_CODES`] lists them.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            JobsError::Start(error) => error.exit_code(),
            JobsError::Jobs(_) => ExitCode::from(4),
            JobsError::Undecided(_) => ExitCode::from(3),
        }
    }
}

/// Takes the jobs in their order, one after the other, until none is left, and says on standard output what became of each. Where
/// one could not be decided, those of its account that come after it are left too: they keep their order.
///
/// # Errors
///
/// [`JobsError`], whose exit code tells its kind.
pub async fn work(options: JobsOptions) -> Result<(), JobsError> {
    log_up_to(options.log);
    let pool = open(&options.database_url).await?;
    // A job may appear behind one that was taken already: the last round is one that found nothing to decide.
    let undecided = loop {
        let round = round(&pool).await?;
        if round.decided == 0 {
            break round.left;
        }
    };
    pool.close().await;
    match undecided {
        0 => Ok(()),
        _ => Err(JobsError::Undecided(undecided)),
    }
}

/// What became of the jobs that one look at all of them found.
#[derive(Default)]
struct Round {
    decided: usize,
    left: usize,
}

async fn round(pool: &PgPool) -> Result<Round, JobsError> {
    let (mut after, mut round) = (0, Round::default());
    let mut left_accounts = HashSet::new();
    while let Some(job) = jobs::next(pool, after).await.map_err(JobsError::Jobs)? {
        after = job.id;
        if !left_accounts.contains(&job.claim.key) && take(pool, &job).await? {
            round.decided += 1;
        } else {
            round.left += 1;
            left_accounts.insert(job.claim.key);
        }
    }
    Ok(round)
}

/// Makes one, or notes why not. Whether it is decided.
async fn take(pool: &PgPool, job: &Undecided) -> Result<bool, JobsError> {
    let id = job.id;
    let why = match make(pool, job).await {
        Ok(receipt) => {
            say(id, format_args!("{:?}", receipt.effect()));
            return Ok(true);
        }
        Err(why) => why,
    };
    say(id, format_args!("{}", with_causes(&why)));
    let problem = Problem::from(why);
    if !problem.is_final() {
        return Ok(false);
    }
    // The guard has refused it, and rolled its transaction back: that is noted in another one.
    let refused = Decision::Refused(problem.details());
    let mut connection = pool.acquire().await.map_err(JobsError::Jobs)?;
    match jobs::decide(&mut connection, id, &refused).await {
        Ok(()) => Ok(true),
        // Another has decided it meanwhile, or this role may not: the next round tells.
        Err(sqlx::Error::RowNotFound) => Ok(false),
        Err(error) => Err(JobsError::Jobs(error)),
    }
}

/// Whether anybody still reads it is no reason to leave a job.
fn say(id: i64, what: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "job {id}: {what}");
}

/// Admission, transfer and what became of the job, in one transaction.
async fn make(pool: &PgPool, job: &Undecided) -> Result<Receipt, GuardError> {
    let mut guarded = begin(pool, &job.claim).await?;
    let connection = guarded.connection();
    if !jobs::is_undecided(connection, job.id).await.map_err(sort)? {
        return guarded
            .commit(Effect::NoWrite("decided by another".to_owned()))
            .await;
    }
    let made = ledger::transfer(connection, &job.claim.key, &job.order, &job.key);
    let (decision, effect) = match made.await.map_err(sort)? {
        Ok(transfer) => (Decision::Done(transfer.id), Effect::Applied),
        Err(own) => {
            let effect = Effect::NoWrite(own.text());
            (Decision::Refused(Problem::from(own).details()), effect)
        }
    };
    jobs::decide(connection, job.id, &decision).await.map_err(sort)?;
    guarded.commit(effect).await
}
