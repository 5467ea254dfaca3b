//! Making what was accepted to be made later.

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

/// Takes the jobs in their order, one after the other, until none is left, and says on standard output what became of each.
///
/// # Errors
///
/// [`JobsError`], whose exit code tells its kind.
pub async fn work(options: JobsOptions) -> Result<(), JobsError> {
    log_up_to(options.log);
    let pool = open(&options.database_url).await?;
    let (mut after, mut undecided) = (0, 0);
    while let Some(job) = jobs::next(&pool, after).await.map_err(JobsError::Jobs)? {
        after = job.id;
        undecided += usize::from(!take(&pool, &job).await?);
    }
    pool.close().await;
    match undecided {
        0 => Ok(()),
        _ => Err(JobsError::Undecided(undecided)),
    }
}

/// Makes one, or notes why not. Whether it is decided.
async fn take(pool: &PgPool, job: &Undecided) -> Result<bool, JobsError> {
    let id = job.id;
    let why = match make(pool, job).await {
        Ok(receipt) => {
            println!("job {id}: {:?}", receipt.effect());
            return Ok(true);
        }
        Err(why) => why,
    };
    println!("job {id}: {}", with_causes(&why));
    let problem = Problem::from(why);
    if !problem.is_final() {
        return Ok(false);
    }
    // The guard has refused it, and rolled its transaction back: that is noted in another one.
    let refused = Decision::Refused(problem.details());
    let mut connection = pool.acquire().await.map_err(JobsError::Jobs)?;
    let noted = jobs::decide(&mut connection, id, &refused).await;
    noted.map(|()| true).map_err(JobsError::Jobs)
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
