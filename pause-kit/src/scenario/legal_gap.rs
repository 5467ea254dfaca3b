//! S03: the legal gap between a grant and the new holder's first committed contact.

use super::half::Half;
use super::holder::{Part, open};
use super::trouble::Trouble;
use crate::probes;
use crate::target::GateName::{AfterGrant, BeforeSend};
use crate::target::Variant::Again;

/// H1 is stopped before its send and its lease is revoked. H2 is granted and not in touch: H1's first write is rightly
/// accepted. H1 is stopped again; H2 raises the mark and reads: H1's second write is refused. H2 is stopped before its send
/// and its lease is revoked; H3 is granted, and an admission of H3's is rolled back: H2's write is rightly accepted.
pub(super) async fn play(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").at(&[BeforeSend]).of(Again)).await?;
    first.granted(half, 0).await?;
    let gate = first.at_gate(BeforeSend).await?;
    half.delay(0).await;
    let standing = half.stop("H1", &first.child).await?;
    half.revoke(&first).await?;
    let lease_ended = half.lease_ended(&first).await?;
    let second = half
        .holder(Part::new("H2").at(&[AfterGrant, BeforeSend]).of(Again))
        .await?;
    second.granted(half, 1).await?;
    let untouched = second.at_gate(AfterGrant).await?;
    open(gate).await?;
    half.resume(standing, Some(lease_ended)).await?;
    first.write_answered(1).await?;
    half.read(0).await?;

    let gate = first.at_gate(BeforeSend).await?;
    let standing = half.stop("H1", &first.child).await?;
    open(untouched).await?;
    let its_own = second.at_gate(BeforeSend).await?;
    open(gate).await?;
    half.resume(standing, None).await?;
    first.write_answered(2).await?;
    half.read(0).await?;

    half.delay(1).await;
    let standing = half.stop("H2", &second.child).await?;
    half.revoke(&second).await?;
    let lease_ended = half.lease_ended(&second).await?;
    let third = half.holder(Part::new("H3").at(&[AfterGrant])).await?;
    let granted = third.granted(half, 2).await?;
    let _untouched = third.at_gate(AfterGrant).await?;
    probes::roll_back(half, granted).await.map_err(Trouble::Probes)?;
    open(its_own).await?;
    half.resume(standing, Some(lease_ended)).await?;
    second.write_answered(1).await?;
    half.read(0).await?;
    // It never goes on, also not by the end of its gate.
    third.end().await
}
