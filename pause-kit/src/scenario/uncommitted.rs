//! A write that is made but for its COMMIT, which the path between the resource and PostgreSQL holds.

use std::time::Duration;

use super::half::{Half, SOON};
use super::holder::{Holder, open};
use super::trouble::{Trouble, within};
use super::waiting::Wait;
use crate::history::{Op, Uncommitted};
use crate::path::{ConnectionNumber, Direction, Held, Hold};
use crate::target::GateName::BeforeSend;

/// A COMMIT of the resource's that is held on its way: its transaction holds the mark's row.
pub(super) struct Commit {
    op: Op,
    held: Held,
    connection: ConnectionNumber,
}

/// Opens H1's gate, and waits until all that is missing of its write is the COMMIT.
pub(super) async fn uncommitted(half: &Half<'_>, first: &Holder) -> Result<Commit, Trouble> {
    let gate = first.at_gate(BeforeSend).await?;
    let path = &half.database_path;
    let every = path.hold(Hold::new(Direction::ToResource).on_every().from_next(commit));
    half.delay(0).await;
    open(gate).await?;
    let kept = first
        .awaits("its write was to be committed", every.engaged())
        .await?;
    let only = Hold::new(Direction::ToResource).on(kept.connection);
    let held = path.hold(only.from_now());
    every.release();
    Ok(Commit {
        op: Op::new(format!("{}-write-1", first.name)),
        held,
        connection: kept.connection,
    })
}

impl Commit {
    /// Waits until a holder's raise is seen to wait for this transaction.
    pub(super) async fn keeps_waiting(
        &self,
        half: &Half<'_>,
        holder: &Holder,
        on: &str,
    ) -> Result<(), Trouble> {
        let path = &half.database_path;
        half.waits(&Wait {
            holder,
            op: format!("{}-raise-1", holder.name),
            waiter: (path, &|one| one.number != self.connection),
            blocker: (path, &|one| one.number == self.connection),
            on,
        })
        .await
    }

    pub(super) async fn backend(&self, half: &Half<'_>) -> Result<Option<u32>, Trouble> {
        let path = &half.database_path;
        match path.connection(self.connection) {
            Some(connection) => half.backend(path, &connection).await,
            None => Ok(None),
        }
    }

    /// Waits until the server has ended the session that idles in its transaction.
    pub(super) async fn is_given_up(&self, half: &Half<'_>) -> Result<(), Trouble> {
        let given_up = async {
            while self.backend(half).await?.is_some() {
                // The server tells nobody but its client.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok(())
        };
        let limit = SOON + Duration::from_millis(half.task.class.proof.idle_ms);
        within(limit, "the end of the resource's idle session", given_up).await?
    }

    pub(super) fn let_go(&self, half: &Half<'_>) {
        let since = half.database_path.read(|log| {
            let sent = &log.connection(self.connection)?.to_resource;
            sent.received_at(sent.forwarded())
        });
        let released = self.held.release();
        let (op, at) = (self.op.clone(), since.unwrap_or(released));
        let released = Some(half.recorder.at(released));
        half.recorder
            .record(half.recorder.at(at), Uncommitted { op, released });
    }
}

/// Where a client asks PostgreSQL to commit.
fn commit(sent: &[u8]) -> Option<usize> {
    const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
    sent.windows(COMMIT.len())
        .position(|bytes| bytes.eq_ignore_ascii_case(COMMIT))
}
