//! S26: a holder stopped idle in its own database transaction, after the guard has passed.

use std::time::Duration;

use super::half::Half;
use super::holder::{Holder, Part, open};
use super::transactions::{commit_answered, refused};
use super::trouble::Trouble;
use super::waiting::Wait;
use crate::target::GateName::BeforeCommit;

/// H1's update was answered and H1 stands at its gate, before its COMMIT. It is stopped, and its lease is revoked once that
/// is confirmed. H2 is granted and waits for H1's backend; guarded, it is answered within its bound, and applied once the
/// server has ended H1's idle session. H1 goes on only after every bound has passed. Its COMMIT fails, and it presents the
/// same write again. Defeated, the bounds are zeros, and H2 still waits when H1 goes on.
pub(super) async fn play(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").at(&[BeforeCommit])).await?;
    first.granted(half, 0).await?;
    let gate = first.at_gate(BeforeCommit).await?;
    half.delay(0).await;
    let standing = half.stop("H1", &first.child).await?;
    half.revoke(&first).await?;
    let lease_ended = half.lease_ended(&first).await?;
    let second = half.holder(Part::new("H2").at(&[BeforeCommit])).await?;
    second.granted(half, 1).await?;
    waits_for(half, &second, &first).await?;
    if !half.is_twin() {
        open(second.at_gate(BeforeCommit).await?).await?;
        second
            .awaits("its COMMIT was answered", commit_answered(&second))
            .await?;
    }
    half.read(0).await?;
    // What is under test here is time itself: every bound must have passed before H1 goes on.
    tokio::time::sleep_until((standing.confirmed(half) + half.outlasting()).into()).await;
    if half.is_twin() {
        waits_for(half, &second, &first).await?;
    }
    open(gate).await?;
    half.resume(standing, Some(lease_ended)).await?;
    if half.is_twin() {
        first
            .awaits("its COMMIT was answered", commit_answered(&first))
            .await?;
        open(second.at_gate(BeforeCommit).await?).await?;
        second
            .awaits("its COMMIT was answered", commit_answered(&second))
            .await?;
    } else {
        first
            .awaits("its second attempt was answered", refused(&first))
            .await?;
    }
    half.read(0).await
}

impl Half<'_> {
    /// How long the stop lasts: the guard's bound, the idle timeout, and the slack that the judge allows, with a little on
    /// top.
    fn outlasting(&self) -> Duration {
        let proof = &self.task.class.proof;
        Duration::from_millis(proof.deadline_ms + proof.idle_ms + 250) + super::half::SLACK
    }
}

/// Waits until PostgreSQL itself says that one holder's backend waits for the other's.
async fn waits_for(half: &Half<'_>, waiter: &Holder, blocker: &Holder) -> Result<(), Trouble> {
    half.waits(&Wait {
        holder: waiter,
        op: format!("{}-write-1", waiter.name),
        waiter: (&waiter.path, &|_| true),
        blocker: (&blocker.path, &|_| true),
        on: blocker.name,
    })
    .await
}
