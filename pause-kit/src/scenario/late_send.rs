//! S01, S02 and S15: a holder stopped before its send.

use super::ScenarioId;
use super::half::Half;
use super::holder::{Part, open};
use super::trouble::Trouble;
use crate::target::GateName::BeforeSend;

/// H1 stands at its gate, after its last look at the deadline; it is stopped, its lease ends, H2 is granted, raises, reads
/// and writes; then H1 goes on. Its gate is opened while it stands, so that its next step is the send.
pub(super) async fn play(half: &Half<'_>) -> Result<(), Trouble> {
    let mut part = Part::new("H1").at(&[BeforeSend]);
    if half.task.slot.scenario == ScenarioId::S15 {
        part = part.away();
    }
    let first = half.holder(part).await?;
    first.granted(half, 0).await?;
    let gate = first.at_gate(BeforeSend).await?;
    half.delay(0).await;
    let standing = half.stop("H1", &first.child).await?;
    let second = half.holder(Part::new("H2")).await?;
    if half.task.slot.scenario != ScenarioId::S01 {
        half.revoke(&first).await?;
    }
    let lease_ended = half.lease_ended(&first).await?;
    second.granted(half, 1).await?;
    second.write_answered(1).await?;
    half.read(0).await?;
    open(gate).await?;
    half.resume(standing, Some(lease_ended)).await?;
    first.write_answered(1).await?;
    half.read(0).await
}
