//! S75 and S82: the lock store itself stopped, and gone.

use super::half::{Half, SOON};
use super::holder::{Part, open};
use super::trouble::{Trouble, within};
use crate::history::{Killed, Unheard};
use crate::path::Path;
use crate::target::GateName::BeforeSend;
use crate::target::Variant::Again;

/// S75: H1 stands before its send. The lock store is stopped for longer than the TTL, and a keepalive of H1's comes to lie
/// unread in its socket. Once the store goes on, H1's lease runs out; H2 is granted, raises, reads and writes; H1 sends its
/// write.
pub(super) async fn stopped(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    let gate = first.at_gate(BeforeSend).await?;
    half.delay(0).await;
    let store = half.own_store();
    let standing = half.stop("L", store.etcd.process()).await?;
    let bytes = within(
        SOON,
        "a keepalive in the stopped store's socket",
        unread(&store.path),
    )
    .await?;
    half.recorder.record(
        half.recorder.now(),
        Unheard {
            holder: first.name.to_owned(),
            target: "L".to_owned(),
            bytes,
        },
    );
    // What is under test here is time itself.
    let until = standing.confirmed(half) + half.ttl().as_duration() * 5 / 4;
    tokio::time::sleep_until(until.into()).await;
    half.resume(standing, None).await?;
    let second = half.holder(Part::new("H2")).await?;
    half.lease_ended(&first).await?;
    second.granted(half, 1).await?;
    second.write_answered(1).await?;
    half.read(0).await?;
    half.delay(1).await;
    open(gate).await?;
    first.write_answered(1).await?;
    half.read(0).await
}

/// S82: H1 is stopped before its send, its lease revoked; H2 is granted, raises, reads and writes, and stands before its second
/// write. The lock store is killed. H1 goes on and sends its write; then H2 sends its own.
pub(super) async fn gone(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    let late = first.at_gate(BeforeSend).await?;
    half.delay(0).await;
    let standing = half.stop("H1", &first.child).await?;
    let second = half.holder(Part::new("H2").of(Again).at(&[BeforeSend])).await?;
    half.revoke(&first).await?;
    let lease_ended = half.lease_ended(&first).await?;
    second.granted(half, 1).await?;
    open(second.at_gate(BeforeSend).await?).await?;
    second.write_answered(1).await?;
    let rightful = second.at_gate(BeforeSend).await?;
    half.read(0).await?;
    let store = half.own_store().etcd.process();
    let ended = store.kill().await;
    ended.map_err(Trouble::lost("the lock store could not be killed"))?;
    let (target, pid) = ("L".to_owned(), store.pid());
    half.recorder.record(half.recorder.now(), Killed { target, pid });
    half.delay(1).await;
    open(late).await?;
    half.resume(standing, Some(lease_ended)).await?;
    first.write_answered(1).await?;
    half.read(0).await?;
    open(rightful).await?;
    second.write_answered(2).await?;
    half.read(0).await?;
    // Neither has a lock store to give its lock back to, for which it might wait.
    first.end().await?;
    second.end().await
}

/// Waits until something lies unread in the stopped store's socket, and says how many bytes. A session says nothing to its store
/// but that it lives.
async fn unread(path: &Path) -> u64 {
    loop {
        let open = path.read(|log| {
            let open = log.connections().iter().filter(|one| one.ended.is_none());
            open.map(|one| one.number).collect::<Vec<_>>()
        });
        let unread = open
            .into_iter()
            .filter_map(|one| path.unread_by_resource(one).ok());
        match unread.max() {
            Some(bytes) if bytes > 0 => return bytes,
            // The kernel tells nobody when they come.
            _ => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
        }
    }
}
