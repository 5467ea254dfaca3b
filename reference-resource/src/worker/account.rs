//! *Refund order-7 once*, through paydb.

use fence_core::Claim;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::{StatusCode, Version};

use super::exit::WorkerError;
use super::gate::gate;
use super::journal::{Entry, Journal};
use super::lock::Lock;
use super::options::AccountJob;
use super::resource::{Answer, Resource};

/// Takes the lock, raises the mark, reads, and makes what transfers are not there; or, where a journal was left, presents the
/// transfer that it holds.
pub(super) async fn run(job: &AccountJob) -> Result<(), WorkerError> {
    let version = match job.http2 {
        true => Version::HTTP_2,
        false => Version::HTTP_11,
    };
    let resource = Resource::new(&job.resource, &job.account).over(version);
    let journal = job.journal.as_deref().map(Journal::new);
    if let Some(journal) = &journal
        && let Some(entry) = journal.read()?
    {
        return send(&resource, &entry, Some(journal)).await;
    }
    let lock = Lock::take(&job.lock, "entity", "paydb.account", &job.account).await?;
    let done = match gate("after-grant").await {
        // Work starts when the token is read from the hold. Whether each write of it may still land is for the guard to say.
        Ok(()) => match lock.claim().await {
            Ok(claim) => work(job, &resource, journal.as_ref(), &claim).await,
            Err(lost) => Err(lost),
        },
        Err(error) => Err(error),
    };
    lock.release().await;
    done
}

async fn work(
    job: &AccountJob,
    resource: &Resource<'_>,
    journal: Option<&Journal<'_>>,
    claim: &Claim,
) -> Result<(), WorkerError> {
    if !job.read_first {
        // Fence, then read: until this is committed, an older holder's write is rightly accepted, and the read would miss it.
        resource.fence(claim).await?;
    }
    let transfers = resource.transfers().await?;
    gate("after-read").await?;
    // Each part is a job of its own: what became of one says nothing about the next.
    let (mut ended, mut under_way) = (Ok(()), FuturesUnordered::new());
    for part in 1..=job.writes {
        let entry = Entry::new(job, claim, part);
        if transfers
            .iter()
            .any(|transfer| transfer.reference == entry.reference)
        {
            println!("{}: done before", entry.reference);
            continue;
        }
        if let Some(journal) = journal {
            journal.write(&entry)?;
        }
        if job.at_once {
            let mut stands = std::pin::pin!(gate("before-send"));
            loop {
                tokio::select! {
                    passed = &mut stands => break passed?,
                    Some(sent) = under_way.next() => ended = ended.and(sent),
                }
            }
            under_way.push(async move { told(&entry, resource.transfer(&entry).await) });
            continue;
        }
        let sent = match job.later {
            true => send_for_later(resource, &entry).await,
            false => send(resource, &entry, journal).await,
        };
        ended = ended.and(sent);
    }
    while let Some(sent) = under_way.next().await {
        ended = ended.and(sent);
    }
    ended
}

async fn send(
    resource: &Resource<'_>,
    entry: &Entry,
    journal: Option<&Journal<'_>>,
) -> Result<(), WorkerError> {
    gate("before-send").await?;
    let answer = resource.transfer(entry).await;
    let for_good = !matches!(
        answer,
        Err(WorkerError::Unsettled { .. } | WorkerError::Unreachable { .. })
    );
    if let (Some(journal), true) = (journal, for_good) {
        journal.remove()?;
    }
    told(entry, answer)
}

/// Accepted is not done: the lock is kept until the job is.
async fn send_for_later(resource: &Resource<'_>, entry: &Entry) -> Result<(), WorkerError> {
    gate("before-send").await?;
    match resource.transfer_later(entry).await? {
        answer if answer.status == StatusCode::ACCEPTED => told(entry, resource.job_of(entry).await),
        // It was made at once, now or before.
        answer => told(entry, Ok(answer)),
    }
}

fn told(entry: &Entry, answer: Result<Answer, WorkerError>) -> Result<(), WorkerError> {
    let answer = answer?;
    println!(
        "{}: done: {} {}",
        entry.reference,
        answer.status.as_u16(),
        answer.body
    );
    Ok(())
}
