//! S09, S37, S39, S47, S48, S67 and S69: what a path does to a request that it has: it sends it again, or otherwise.

use std::sync::Arc;

use super::half::Half;
use super::holder::{Holder, Part, open};
use super::trouble::Trouble;
use crate::history::{Alteration, Hold as HoldRecord, Op};
use crate::path::{Direction, Held, Hold, Kept};
use crate::target::GateName::BeforeSend;
use crate::target::Variant::Again;

/// S09: H1's first write lands; its second is held whole on its way. H1's lease is revoked; H2 is granted, raises, reads and
/// writes. The path loses the second write, and sends both again.
pub(super) async fn again(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").of(Again).at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    open(first.at_gate(BeforeSend).await?).await?;
    first.write_answered(1).await?;
    let lost = held_whole(half, &first, 2).await?;
    taken_over(half, &first, Part::new("H2").of(Again)).await?;
    lost.cut(half, &first);
    for number in [1, 2] {
        let original = first.original_of(number)?;
        let bytes = original.bytes.clone();
        half.relay(&first, &original, Alteration::Nothing, &bytes).await?;
    }
    half.read(0).await
}

/// S37: H1's first write lands and is answered. While H1 holds its lock and stands before its second one, the path sends the
/// first again. Then H1 goes on.
pub(super) async fn once_more(half: &Half<'_>) -> Result<(), Trouble> {
    let holder = half.holder(Part::new("H1").of(Again).at(&[BeforeSend])).await?;
    holder.granted(half, 0).await?;
    open(holder.at_gate(BeforeSend).await?).await?;
    holder.write_answered(1).await?;
    let gate = holder.at_gate(BeforeSend).await?;
    half.read(0).await?;
    half.delay(0).await;
    let original = holder.original_of(1)?;
    let bytes = original.bytes.clone();
    half.relay(&holder, &original, Alteration::Nothing, &bytes)
        .await?;
    half.read(0).await?;
    open(gate).await?;
    holder.write_answered(3).await?;
    half.read(0).await
}

/// S39, S67 and S69: H1's write is held whole on its way; H1's lease is revoked; H2 is granted, raises, reads and writes. The
/// path cuts H1 off and sends its write as the alteration makes it. Where it is the field that the guard is not to see, the
/// twin's path sends the write as it was, to a guard that admits everything.
pub(super) async fn otherwise(half: &Half<'_>, how: Alteration) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    let lost = held_whole(half, &first, 1).await?;
    let second = taken_over(half, &first, Part::new("H2")).await?;
    lost.cut(half, &first);
    let original = first.original_of(1)?;
    let how = match half.is_twin() && how != Alteration::EqualToken {
        true => Alteration::Nothing,
        false => how,
    };
    let own = first.grant().expect("it was granted the lock");
    for bytes in original.altered(how, own, second.grant()) {
        half.relay(&first, &original, how, &bytes).await?;
    }
    half.read(0).await
}

/// S47 and S48: H1's write is held whole on its way. The path sends it in every form that holds no token, or none that is
/// whole; then it lets the write itself go on.
pub(super) async fn without_a_token(half: &Half<'_>, how: Alteration) -> Result<(), Trouble> {
    let holder = half.holder(Part::new("H1").at(&[BeforeSend])).await?;
    holder.granted(half, 0).await?;
    let kept = held_whole(half, &holder, 1).await?;
    let original = holder.original_of(1)?;
    let own = holder.grant().expect("it was granted the lock");
    for bytes in original.altered(how, own, None) {
        half.relay(&holder, &original, how, &bytes).await?;
    }
    half.read(0).await?;
    half.delay(1).await;
    kept.release(half);
    holder.write_answered(1).await?;
    half.read(0).await
}

/// A write that the path holds from its first byte on.
struct Whole {
    op: Op,
    held: Held,
    kept: Kept,
}

impl Whole {
    /// Cuts its connection off, so that it never arrives.
    fn cut(self, half: &Half<'_>, holder: &Holder) {
        holder.path.cut(self.kept.connection);
        self.held.release();
        self.record(half, None);
    }

    fn release(self, half: &Half<'_>) {
        let released = self.held.release();
        self.record(half, Some(half.recorder.at(released)));
    }

    fn record(self, half: &Half<'_>, released: Option<crate::history::At>) {
        let (op, byte, length) = (self.op, 0, None);
        half.recorder.record(
            half.recorder.at(self.kept.since),
            HoldRecord {
                op,
                byte,
                length,
                released,
            },
        );
    }
}

/// Opens the holder's gate before this write, and waits until the path holds all of it.
async fn held_whole(half: &Half<'_>, holder: &Holder, number: usize) -> Result<Whole, Trouble> {
    let gate = holder.at_gate(BeforeSend).await?;
    // What the path itself sends later goes over connections of its own.
    let held = holder.path.hold(Hold::new(Direction::ToResource));
    half.delay(0).await;
    open(gate).await?;
    let kept = holder.awaits("its write was held", held.engaged()).await?;
    holder.write_came(number).await?;
    Ok(Whole {
        op: Op::new(format!("{}-write-{number}", holder.name)),
        held,
        kept,
    })
}

/// The first holder's lease is revoked; H2 is granted, raises, reads and writes.
async fn taken_over(half: &Half<'_>, first: &Holder, second: Part) -> Result<Arc<Holder>, Trouble> {
    half.revoke(first).await?;
    half.lease_ended(first).await?;
    let second = half.holder(second).await?;
    second.granted(half, 1).await?;
    second.write_answered(1).await?;
    half.read(0).await?;
    half.delay(1).await;
    Ok(second)
}
