//! S17: two holders stopped, a third active.

use super::half::Half;
use super::holder::{Part, open};
use super::trouble::Trouble;
use crate::target::GateName::BeforeSend;
use crate::target::Variant::Again;

/// H1 and, in turn, H2 are stopped before their sends and their leases revoked; H3 raises, reads and writes. H1 goes on and
/// then H2, each with its first write. Both are stopped again, H3 writes again, and now H2 goes on first.
pub(super) async fn play(half: &Half<'_>) -> Result<(), Trouble> {
    let part = |name| Part::new(name).at(&[BeforeSend]).of(Again);
    let mut stopped = Vec::new();
    for (number, name) in [(0, "H1"), (1, "H2")] {
        let holder = half.holder(part(name)).await?;
        holder.granted(half, number).await?;
        let gate = holder.at_gate(BeforeSend).await?;
        if number == 0 {
            half.delay(0).await;
        }
        let standing = half.stop(name, &holder.child).await?;
        half.revoke(&holder).await?;
        let lease_ended = half.lease_ended(&holder).await?;
        stopped.push((holder, gate, standing, Some(lease_ended)));
    }
    let third = half.holder(part("H3")).await?;
    third.granted(half, 2).await?;
    open(third.at_gate(BeforeSend).await?).await?;
    third.write_answered(1).await?;
    half.read(0).await?;

    let mut stopped_again = Vec::new();
    for (holder, gate, standing, lease_ended) in stopped {
        open(gate).await?;
        half.resume(standing, lease_ended).await?;
        holder.write_answered(1).await?;
        stopped_again.push(holder);
    }
    half.read(0).await?;

    let mut stopped = Vec::new();
    half.delay(1).await;
    for holder in stopped_again {
        let gate = holder.at_gate(BeforeSend).await?;
        let standing = half.stop(holder.name, &holder.child).await?;
        stopped.push((holder, gate, standing));
    }
    open(third.at_gate(BeforeSend).await?).await?;
    third.write_answered(2).await?;
    half.read(0).await?;
    for (holder, gate, standing) in stopped.into_iter().rev() {
        open(gate).await?;
        half.resume(standing, None).await?;
        holder.write_answered(2).await?;
    }
    half.read(0).await
}
