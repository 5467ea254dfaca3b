//! S34 and S35: a late write to another process of the resource than the one that the takeover went through.

use super::half::Half;
use super::holder::{Part, open};
use super::trouble::Trouble;
use crate::history::{Killed, Restarted};
use crate::target::GateName::BeforeSend;
use crate::target::Variant::Again;

/// S34: H1 is stopped before its send, its lease revoked; H2 is granted, raises, reads and writes; the resource is killed and
/// started again; H1 goes on.
pub(super) async fn restarted(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    let gate = first.at_gate(BeforeSend).await?;
    half.delay(0).await;
    let standing = half.stop("H1", &first.child).await?;
    let second = half.holder(Part::new("H2")).await?;
    half.revoke(&first).await?;
    let lease_ended = half.lease_ended(&first).await?;
    second.granted(half, 1).await?;
    second.write_answered(1).await?;
    half.read(0).await?;
    half.delay(1).await;
    let old = half.replica(0);
    let ended = old.child.kill().await;
    ended.map_err(Trouble::lost("the resource could not be killed"))?;
    let (target, pid) = ("R".to_owned(), old.child.pid());
    half.recorder.record(half.recorder.now(), Killed { target, pid });
    let before = half.recorder.now();
    half.start_again().await?;
    let (target, pid) = ("R".to_owned(), half.replica(0).child.pid());
    half.recorder.record(before, Restarted { target, pid });
    first.path.route_to(half.replica(0).address);
    open(gate).await?;
    half.resume(standing, Some(lease_ended)).await?;
    first.write_answered(1).await?;
    half.read(0).await
}

/// S35: H1 is stopped before its send, its lease revoked; H2 is granted, raises, reads and writes through a second replica; H1
/// goes on and writes through the first one, and then through the second.
pub(super) async fn late_on_each(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").of(Again).at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    let gate = first.at_gate(BeforeSend).await?;
    half.delay(0).await;
    let standing = half.stop("H1", &first.child).await?;
    let second = half.holder(Part::new("H2").through(1)).await?;
    half.revoke(&first).await?;
    let lease_ended = half.lease_ended(&first).await?;
    second.granted(half, 1).await?;
    second.write_answered(1).await?;
    half.read(1).await?;
    open(gate).await?;
    half.resume(standing, Some(lease_ended)).await?;
    first.write_answered(1).await?;
    half.read(0).await?;
    half.delay(1).await;
    let gate = first.at_gate(BeforeSend).await?;
    first.path.route_to(half.replica(1).address);
    open(gate).await?;
    first.write_answered(2).await?;
    half.read(1).await
}
