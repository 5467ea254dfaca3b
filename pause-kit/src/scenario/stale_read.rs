//! S04 and S04b: writes that rest on an old read.

use super::half::Half;
use super::holder::{Part, open};
use super::trouble::Trouble;
use crate::target::GateName::{AfterRead, BeforeSend};
use crate::target::Variant::Unraised;

/// S04: H1 has read and is stopped; its lease is revoked; H2 is granted, raises, reads and writes; H1 goes on and writes from
/// its old read.
pub(super) async fn write_on_an_old_read(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").at(&[AfterRead])).await?;
    first.granted(half, 0).await?;
    let gate = first.at_gate(AfterRead).await?;
    half.delay(0).await;
    let standing = half.stop("H1", &first.child).await?;
    half.revoke(&first).await?;
    let lease_ended = half.lease_ended(&first).await?;
    let second = half.holder(Part::new("H2")).await?;
    second.granted(half, 1).await?;
    second.write_answered(1).await?;
    half.read(0).await?;
    open(gate).await?;
    half.resume(standing, Some(lease_ended)).await?;
    first.write_answered(1).await?;
    half.read(0).await
}

/// S04b: H1 is stopped before its send; its lease is revoked; H2 is granted and reads. With the mark raised before that read
/// H1's write is refused, and what H2 has read still holds when it writes. In the twin, whose guard is in force, H2 has not
/// raised it: H1's write is rightly accepted, and H2 writes from a read that misses it.
pub(super) async fn fence_then_read(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    let gate = first.at_gate(BeforeSend).await?;
    half.delay(0).await;
    let standing = half.stop("H1", &first.child).await?;
    half.revoke(&first).await?;
    let lease_ended = half.lease_ended(&first).await?;
    let second = Part::new("H2").at(&[BeforeSend]);
    let second = match half.is_twin() {
        true => second.of(Unraised),
        false => second,
    };
    let second = half.holder(second).await?;
    second.granted(half, 1).await?;
    let its_own = second.at_gate(BeforeSend).await?;
    half.delay(1).await;
    open(gate).await?;
    half.resume(standing, Some(lease_ended)).await?;
    first.write_answered(1).await?;
    half.read(0).await?;
    open(its_own).await?;
    second.write_answered(1).await?;
    half.read(0).await
}
