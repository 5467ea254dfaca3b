//! *Refund order-7 once*, through paydb.

use super::exit::WorkerError;
use super::gate::gate;
use super::lock::Lock;
use super::options::AccountJob;
use super::resource::Resource;

/// Takes the lock, raises the mark, reads, and makes the one transfer if it is not there.
pub(super) async fn run(job: &AccountJob) -> Result<(), WorkerError> {
    let lock = Lock::take(&job.lock, "entity", "paydb.account", &job.account).await?;
    let done = work(job, &lock).await;
    lock.release().await;
    done
}

async fn work(job: &AccountJob, lock: &Lock) -> Result<(), WorkerError> {
    let resource = Resource::new(&job.resource, &job.account);
    // Fence, then read: until this is committed, an older holder's write is rightly accepted, and the read would miss it.
    resource.fence(&lock.claim().await?).await?;
    let transfers = resource.transfers().await?;
    if transfers
        .iter()
        .any(|transfer| transfer.reference == job.reference)
    {
        println!("{}: done before", job.reference);
        return Ok(());
    }
    let claim = lock.claim().await?;
    let grant_id = claim.grant_id.as_ref().map_or("", |id| id.as_str());
    let idempotency_key = format!("{grant_id}:1");
    gate("before-send").await?;
    let answer = resource
        .transfer(&claim, &idempotency_key, &job.to, job.amount, &job.reference)
        .await?;
    println!(
        "{}: done: {} {}",
        job.reference,
        answer.status.as_u16(),
        answer.body
    );
    Ok(())
}
