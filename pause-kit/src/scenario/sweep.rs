//! S08: a byte sweep. One late write is cut after each number of bytes of it, over one takeover.

use std::sync::atomic::Ordering;

use super::half::{Half, SOON};
use super::holder::{Holder, Part, open};
use super::trouble::{Trouble, within};
use crate::history::{Hold as HoldRecord, Op};
use crate::path::{Connection, ConnectionNumber, Direction, Held, Hold, Kept, Log};
use crate::target::GateName::BeforeSend;
use crate::target::Variant::Sweep;
use crate::wire::http::{self, request_begins};

/// H1 sends its writes one after the other, without waiting for their answers. The path lets no byte of the first through, one
/// of the second, and so on to all but the last, and holds the rest of each. H1's lease is revoked; H2 is granted, raises, reads
/// and writes. Then each rest is let go, once the one before is answered.
pub(super) async fn play(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").of(Sweep).at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    half.delay(0).await;
    let mut cut = vec![send(&first, 0, None).await?];
    let write = first.write_came(1).await?.exchange.request;
    let (begins, length) = (write.offset, write.length);
    for byte in 1..length {
        cut.push(send(&first, byte, Some(begins + length)).await?);
    }
    half.swept.store(length as u64, Ordering::Relaxed);
    half.revoke(&first).await?;
    half.lease_ended(&first).await?;
    let second = half.holder(Part::new("H2")).await?;
    second.granted(half, 1).await?;
    second.write_answered(1).await?;
    half.read(0).await?;
    half.delay(1).await;
    for (index, (held, kept)) in cut.into_iter().enumerate() {
        let released = held.release();
        let answered = first.path.wait(|log| answered(log, kept.connection));
        // In HTTP/2 other frames may come before it, more on one connection than on another.
        let begins = first
            .path
            .read(|log| request_begins(log.connection(kept.connection)?.to_resource.bytes()));
        let begins = begins.unwrap_or_default();
        let name = format!("H1-write-{}", index + 1);
        let awaited = format!("the answer to {name}, held after {index} bytes");
        within(SOON, &awaited, answered).await?;
        half.recorder.record(
            half.recorder.at(kept.since),
            HoldRecord {
                op: Op::new(name),
                byte: kept.at_byte.saturating_sub(begins) as u64,
                length: Some(length as u64),
                released: Some(half.recorder.at(released)),
            },
        );
    }
    half.read(0).await
}

/// Opens H1's gate, and waits until so many bytes of what it then sends were let through and all the rest has come.
async fn send(first: &Holder, byte: usize, end: Option<usize>) -> Result<(Held, Kept), Trouble> {
    let gate = first.at_gate(BeforeSend).await?;
    let hold = Hold::new(Direction::ToResource);
    let held = first
        .path
        .hold(hold.from_found(move |sent| Some(request_begins(sent)? + byte)));
    open(gate).await?;
    let kept = first.awaits("its write was held", held.engaged()).await?;
    let whole = |log: &Log| {
        let connection = log.connection(kept.connection)?;
        end.is_none_or(|end| connection.to_resource.received() >= end)
            .then_some(())
    };
    first
        .awaits("its write came whole", first.path.wait(whole))
        .await?;
    Ok((held, kept))
}

/// Whether the one request of a connection is answered, and the answer passed on.
fn answered(log: &Log, number: ConnectionNumber) -> Option<()> {
    let passed_on = |connection: &Connection| {
        let answer = &connection.to_holder;
        answer.received() > 0 && answer.forwarded() == answer.received() && http::answered(connection)
    };
    log.connection(number)
        .filter(|connection| passed_on(connection))
        .map(drop)
}
