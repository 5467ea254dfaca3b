//! S05: the resource stopped with the dead holder's write in its socket.

use super::half::{Half, SOON};
use super::holder::{Holder, Part, open};
use super::trouble::Trouble;
use crate::history::{Op, Queued};
use crate::target::GateName::BeforeSend;

/// H1 has raised and read; the resource is stopped, H1's write lies in its socket, H1 is killed. A second replica serves
/// H2's raise and read, and only H2's write lies in the stopped one's socket. Then that one goes on, and may take them in
/// either order. The path keeps H1's close back until it has answered.
pub(super) async fn play(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    let gate = first.at_gate(BeforeSend).await?;
    half.delay(0).await;
    let standing = half.stop("R", &half.replica(0).child).await?;
    open(gate).await?;
    queued(half, &first).await?;
    half.kill(&first).await?;
    half.revoke(&first).await?;
    let lease_ended = half.lease_ended(&first).await?;
    let second = half.holder(Part::new("H2").at(&[BeforeSend]).through(1)).await?;
    second.granted(half, 1).await?;
    let gate = second.at_gate(BeforeSend).await?;
    second.path.route_to(half.replica(0).address);
    open(gate).await?;
    queued(half, &second).await?;
    half.read(1).await?;
    half.delay(1).await;
    half.resume(standing, Some(lease_ended)).await?;
    second.write_answered(1).await?;
    first.write_answered_to_nobody().await?;
    half.read(1).await
}

/// Waits until the whole of a holder's write lies unread in the resource's socket.
async fn queued(half: &Half<'_>, holder: &Holder) -> Result<(), Trouble> {
    let write = holder.write_came(1).await?;
    let arrival = half.arrival(holder, &write, 0).await?;
    let bytes = u64::try_from(arrival.bytes).expect("a request is smaller than 2^64 bytes");
    let seen = arrival.path.wait_unread(arrival.connection, bytes, SOON).await;
    let at = seen.map_err(|_| Trouble::Overrun {
        awaited: format!("{}'s write in the stopped resource's socket", holder.name),
        within: SOON,
    })?;
    half.recorder.record(
        half.recorder.at(at),
        Queued {
            op: Op::new(format!("{}-write-1", holder.name)),
            target: "R".to_owned(),
            bytes,
        },
    );
    Ok(())
}
