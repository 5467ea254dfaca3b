//! A day's report: an efficiency class. Two builders at once build the same report twice, and no harm is done.

use serde_json::json;

use super::exit::WorkerError;
use super::lock::Lock;
use super::options::ReportJob;
use super::resource::Resource;

/// Takes the lock, reads what each account has sent, and puts the report in its place whole.
pub(super) async fn run(job: &ReportJob) -> Result<(), WorkerError> {
    let lock = Lock::take(&job.lock, "entity", "paydb.report", &job.day).await?;
    let built = match lock.claim().await {
        Ok(_) => build(job).await,
        Err(lost) => Err(lost),
    };
    lock.release().await;
    built
}

async fn build(job: &ReportJob) -> Result<(), WorkerError> {
    let mut accounts = serde_json::Map::new();
    for account in &job.accounts {
        let transfers = Resource::new(&job.resource, account).transfers().await?;
        let sent: i64 = transfers.iter().map(|transfer| transfer.amount).sum();
        let line = json!({ "transfers": transfers.len(), "sent": sent });
        accounts.insert(account.to_string(), line);
    }
    let report = json!({ "day": job.day, "accounts": accounts });
    let put = || -> std::io::Result<()> {
        // Another builder may be at it.
        let beside = job.out.with_extension(std::process::id().to_string());
        std::fs::write(&beside, format!("{report:#}\n"))?;
        std::fs::rename(&beside, &job.out)
    };
    put().map_err(|error| WorkerError::unreachable("the report's file", error))?;
    println!("{}: reported", job.day);
    Ok(())
}
