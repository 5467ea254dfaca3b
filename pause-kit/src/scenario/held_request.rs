//! S07 and S29: a request held on its way, after its first bytes or before its body.

use super::ScenarioId;
use super::half::Half;
use super::holder::{Part, open};
use super::trouble::Trouble;
use crate::history::{Hold as HoldRecord, Op};
use crate::path::{Direction, Hold};
use crate::target::GateName::BeforeSend;
use crate::wire::http::{body_begins, request_begins};

/// The path lets the first bytes of H1's write through and holds the rest; H1's lease is revoked; H2 is granted, raises,
/// reads and writes; then the bytes go on.
pub(super) async fn play(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    let gate = first.at_gate(BeforeSend).await?;
    let at_byte = usize::try_from(half.task.slot.byte).expect("at most 40");
    let hold = Hold::new(Direction::ToResource);
    let held = first.path.hold(match half.task.slot.scenario {
        ScenarioId::S29 => hold.from_found(body_begins),
        _ => hold.from_found(move |sent| Some(request_begins(sent)? + at_byte)),
    });
    half.delay(0).await;
    open(gate).await?;
    let kept = first.awaits("its write was held", held.engaged()).await?;
    let write = first.write_came(1).await?;
    if half.task.slot.scenario == ScenarioId::S29 {
        half.head_came(&first, &write, 0).await?;
    }
    half.revoke(&first).await?;
    half.lease_ended(&first).await?;
    let second = half.holder(Part::new("H2")).await?;
    second.granted(half, 1).await?;
    second.write_answered(1).await?;
    half.read(0).await?;
    half.delay(1).await;
    let released = held.release();
    half.recorder.record(
        half.recorder.at(kept.since),
        HoldRecord {
            op: Op::new("H1-write-1"),
            byte: kept.at_byte.saturating_sub(write.exchange.request.offset) as u64,
            length: None,
            released: Some(half.recorder.at(released)),
        },
    );
    first.write_answered_to_nobody().await?;
    half.read(0).await
}
