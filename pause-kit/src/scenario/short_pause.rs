//! S12 and S18: a pause of the writer alone, and one that is shorter than the TTL.

use super::half::Half;
use super::holder::{Part, open};
use super::trouble::Trouble;
use crate::target::GateName::BeforeSend;

/// H1 is stopped before its send for half of its real TTL and goes on: its write is accepted, and its lease has not ended.
pub(super) async fn play(half: &Half<'_>) -> Result<(), Trouble> {
    let holder = half.holder(Part::new("H1").at(&[BeforeSend])).await?;
    holder.granted(half, 0).await?;
    let gate = holder.at_gate(BeforeSend).await?;
    half.delay(0).await;
    let standing = half.stop("H1", &holder.child).await?;
    half.read(0).await?;
    // What is under test here is time itself.
    let until = standing.confirmed(half) + half.ttl().as_duration() / 2;
    tokio::time::sleep_until(until.into()).await;
    open(gate).await?;
    half.resume(standing, None).await?;
    holder.write_answered(1).await?;
    half.read(0).await
}

/// S12: H1's writing thread stands at its gate for longer than the TTL, while the thread that renews goes on: its write is
/// accepted, and its lease has not ended.
pub(super) async fn only_the_writer(half: &Half<'_>) -> Result<(), Trouble> {
    let holder = half.holder(Part::new("H1").at(&[BeforeSend])).await?;
    holder.granted(half, 0).await?;
    let gate = holder.at_gate(BeforeSend).await?;
    // What is under test here is time itself.
    tokio::time::sleep(half.ttl().as_duration() * 5 / 4).await;
    half.read(0).await?;
    open(gate).await?;
    holder.write_answered(1).await?;
    half.read(0).await
}
