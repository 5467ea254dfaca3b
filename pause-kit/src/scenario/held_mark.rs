//! S25 and S25b: a transaction that holds the mark's row, and whose client or whose backend stands still.

use std::time::Duration;

use super::half::{Half, SLACK};
use super::holder::Part;
use super::trouble::Trouble;
use super::uncommitted::uncommitted;
use crate::history::Alteration;
use crate::target::GateName::BeforeSend;

/// S25: H1's write was admitted and made; the resource's COMMIT is held on its way and the resource stopped, so that its
/// transaction holds the mark's row. H1's lease is revoked; H2 is granted, and its raise waits, through a second replica.
/// Guarded, H2 is answered within its bound, the server ends the resource's idle session, and H3 is granted, raises, reads and
/// writes. The COMMIT is let go and the resource goes on, which comes to nothing; the path sends H1's write again. In the twin H2
/// still waits when its bound and the slack have passed.
pub(super) async fn client_stopped(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    let commit = uncommitted(half, &first).await?;
    let standing = half.stop("R", &half.replica(0).child).await?;
    half.revoke(&first).await?;
    let lease_ended = half.lease_ended(&first).await?;
    let second = half.holder(Part::new("H2").through(1)).await?;
    second.granted(half, 1).await?;
    commit.keeps_waiting(half, &second, "R").await?;
    if half.is_twin() {
        // What is under test here is time itself.
        tokio::time::sleep(Duration::from_millis(half.task.class.proof.deadline_ms + 250) + SLACK).await;
        commit.keeps_waiting(half, &second, "R").await?;
        commit.let_go(half);
        half.resume(standing, Some(lease_ended)).await?;
        first.write_answered(1).await?;
        second.raise_answered(1).await?;
        return half.read(1).await;
    }
    second.raise_answered(1).await?;
    commit.is_given_up(half).await?;
    let third = half.holder(Part::new("H3").through(1)).await?;
    third.granted(half, 2).await?;
    third.write_answered(1).await?;
    half.read(1).await?;
    commit.let_go(half);
    half.resume(standing, Some(lease_ended)).await?;
    first.write_answered(1).await?;
    let original = first.original_of(1)?;
    let bytes = original.bytes.clone();
    half.relay(&first, &original, Alteration::Nothing, &bytes).await?;
    half.read(1).await
}

/// S25b: as above, but it is the backend that is stopped, and there is no bound that could end its transaction. H2 is answered
/// within its own. The COMMIT is let go, the backend goes on, and H3 raises and reads.
pub(super) async fn backend_stopped(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    let commit = uncommitted(half, &first).await?;
    let backend = commit.backend(half).await?;
    let backend = backend.ok_or_else(|| Trouble::Step {
        what: "the backend of H1's transaction could not be stopped".to_owned(),
        source: "PostgreSQL knows no such backend".into(),
    })?;
    let standing = half.stop_process("B", backend).await?;
    half.revoke(&first).await?;
    let lease_ended = half.lease_ended(&first).await?;
    let second = half.holder(Part::new("H2")).await?;
    second.granted(half, 1).await?;
    commit.keeps_waiting(half, &second, "B").await?;
    second.raise_answered(1).await?;
    commit.let_go(half);
    half.resume(standing, Some(lease_ended)).await?;
    first.write_answered(1).await?;
    let third = half.holder(Part::new("H3")).await?;
    third.granted(half, 2).await?;
    third.raise_answered(1).await?;
    half.read(0).await
}
