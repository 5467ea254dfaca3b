//! Telling a provider of an order's state: a correctness class that is advisory, because the provider can check no token.

use http::Version;
use serde_json::json;

use super::exit::WorkerError;
use super::gate::gate;
use super::lock::Lock;
use super::options::WebhookJob;
use super::resource::{answer, client};

/// Takes the lock and sends the webhook. Nothing refuses it if this worker was paused past its lease: the order's version goes
/// along, for the provider to drop what is older, and the class stands on the risk register.
pub(super) async fn run(job: &WebhookJob) -> Result<(), WorkerError> {
    let lock = Lock::take(&job.lock, "entity", "paydb.webhook", &job.order).await?;
    let sent = match gate("after-grant").await {
        Ok(()) => match lock.claim().await {
            // The last look at the deadline; the token itself would be read by nobody.
            Ok(_) => send(job).await,
            Err(lost) => Err(lost),
        },
        Err(error) => Err(error),
    };
    lock.release().await;
    sent
}

async fn send(job: &WebhookJob) -> Result<(), WorkerError> {
    gate("before-send").await?;
    let body = json!({ "order": job.order, "state": job.state, "version": job.version });
    answer(
        "send the webhook",
        client(Version::HTTP_11)?.post(job.provider.clone()).json(&body),
    )
    .await?;
    println!(
        "{}: told version {}; nothing would have refused an older one",
        job.order, job.version
    );
    Ok(())
}
