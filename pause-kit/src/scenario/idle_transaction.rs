//! S26: a holder stopped idle in its own database transaction, after the guard has passed.

use std::net::SocketAddr;
use std::time::Duration;

use super::half::Half;
use super::holder::{Holder, Part, open};
use super::transactions::{commit_answered, refused};
use super::trouble::Trouble;
use crate::history::{Op, Waiting};
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
    let awaited = format!("its backend waited for {}'s", blocker.name);
    let asked = async {
        loop {
            match blocked(half, waiter, blocker).await? {
                None => tokio::time::sleep(Duration::from_millis(5)).await,
                Some(pids) => return Ok::<_, Trouble>(pids),
            }
        }
    };
    let (backend, blocked_by) = waiter.awaits(&awaited, asked).await??;
    half.recorder.record(
        half.recorder.now(),
        Waiting {
            op: Op::new(format!("{}-write-1", waiter.name)),
            on: blocker.name.to_owned(),
            backend,
            blocked_by,
        },
    );
    Ok(())
}

/// The two backends, if one waits for the other. PostgreSQL tells nobody when that begins, so it is asked.
async fn blocked(half: &Half<'_>, waiter: &Holder, blocker: &Holder) -> Result<Option<(u32, u32)>, Trouble> {
    let query = "SELECT w.pid, b.pid FROM pg_stat_activity w JOIN pg_stat_activity b \
                 ON b.pid = ANY (pg_blocking_pids(w.pid)) \
                 WHERE w.datname = current_database() AND w.client_port = ANY ($1) AND b.client_port = ANY ($2)";
    let rows = half
        .sql
        .query(query, &[&ports(waiter), &ports(blocker)])
        .await
        .map_err(Trouble::lost("PostgreSQL could not be asked who waits for whom"))?;
    Ok(rows.first().map(|row| {
        let pid = |index| u32::try_from(row.get::<_, i32>(index)).expect("a process id is positive");
        (pid(0), pid(1))
    }))
}

/// The ports under which a holder's connections reach PostgreSQL.
fn ports(holder: &Holder) -> Vec<i32> {
    holder.path.read(|log| {
        let locals = log
            .connections()
            .iter()
            .filter_map(|connection| connection.upstream_local);
        locals.map(|local: SocketAddr| i32::from(local.port())).collect()
    })
}
