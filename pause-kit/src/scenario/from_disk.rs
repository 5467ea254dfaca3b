//! S21: a holder killed with its write on disk, and started again.

use super::half::Half;
use super::holder::Part;
use super::trouble::Trouble;
use crate::history::Restarted;
use crate::target::GateName::BeforeSend;
use crate::target::Variant::Journal;

/// H1 has put token, grant and write on disk and is killed before its send; its lease is revoked; H2 is granted, raises, reads
/// and writes; H1 is started again and presents that write with its old grant.
pub(super) async fn play(half: &Half<'_>) -> Result<(), Trouble> {
    let part = Part::new("H1").of(Journal);
    let first = half.holder(part.at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    let _gate = first.at_gate(BeforeSend).await?;
    first.has_journal()?;
    half.delay(0).await;
    half.kill(&first).await?;
    half.revoke(&first).await?;
    half.lease_ended(&first).await?;
    let second = half.holder(Part::new("H2")).await?;
    second.granted(half, 1).await?;
    second.write_answered(1).await?;
    half.read(0).await?;
    half.delay(1).await;
    let before = half.recorder.now();
    let again = half.holder(part.once_more()).await?;
    again.inherits(&first);
    let restarted = Restarted {
        target: again.name.to_owned(),
        pid: again.child.pid(),
    };
    half.recorder.record(before, restarted);
    again.write_answered(1).await?;
    half.read(0).await
}
