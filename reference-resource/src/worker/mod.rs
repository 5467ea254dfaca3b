//! paydb's workers: each takes a lock, does one job under it, and reports in one-line facts on standard output.

mod account;
mod exit;
mod gate;
mod journal;
mod lock;
mod options;
mod report;
mod resource;
mod settlement;
mod webhook;

pub use exit::{EXIT_CODES, WorkerError};
pub use options::{AccountJob, LockOptions, ReportJob, SettlementJob, WebhookJob, WorkerOptions};

use options::Job;

/// Does the job.
///
/// # Errors
///
/// [`WorkerError`], whose [`exit_code`](WorkerError::exit_code) tells what became of the write.
pub async fn run(options: &WorkerOptions) -> Result<(), WorkerError> {
    match &options.job {
        Job::Account(job) => account::run(job).await,
        Job::Settlement(job) => settlement::run(job).await,
        Job::Webhook(job) => webhook::run(job).await,
        Job::Report(job) => report::run(job).await,
    }
}
