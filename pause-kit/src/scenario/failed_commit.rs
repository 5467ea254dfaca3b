//! S53: the COMMIT of a failed transaction, which PostgreSQL answers with ROLLBACK and without an error.

use super::half::{Half, SOON};
use super::holder::{Part, open};
use super::trouble::{Trouble, within};
use crate::path::Connection;
use crate::target::GateName::BeforeCommit;

/// PostgreSQL says that it is ready: inside a transaction, and inside one that has failed.
const OPEN: &[u8] = b"Z\0\0\0\x05T";
const FAILED: &[u8] = b"Z\0\0\0\x05E";

/// A statement that fails.
const FAILS: &[u8] = b"Q\0\0\0\x0fSELECT 1/0\0";

/// H1's update was answered, and H1 stands at its gate, before its COMMIT. A statement fails in its transaction, of which H1 hears
/// nothing. H1 goes on; it may try once more. H2 is granted once H1 has given its lock back, and settles what is not settled.
pub(super) async fn play(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").at(&[BeforeCommit])).await?;
    first.granted(half, 0).await?;
    let gate = first.at_gate(BeforeCommit).await?;
    half.delay(0).await;
    let in_transaction = |one: &&Connection| one.to_holder.bytes().ends_with(OPEN);
    let number = first.path.read(|log| {
        let open = log.connections().iter().find(in_transaction);
        open.map(|one| one.number)
    });
    let number = number.ok_or_else(|| Trouble::Step {
        what: "no statement could be made to fail in H1's transaction".to_owned(),
        source: "H1 stands at before-commit outside of any".into(),
    })?;
    let failed = first.path.ask_aside(number, FAILS, |come| come.ends_with(FAILED));
    within(SOON, "the failure of H1's transaction", failed).await?;
    half.read(0).await?;
    open(gate).await?;
    match first.at_gate(BeforeCommit).await {
        Ok(gate) => drop(open(gate).await?),
        Err(Trouble::Ended { .. }) => {}
        Err(trouble) => return Err(trouble),
    }
    let second = half.holder(Part::new("H2")).await?;
    second.granted(half, 1).await?;
    let ended = within(SOON, "H2's end", second.child.exited()).await?;
    ended.map(drop).map_err(Trouble::lost("the reaper"))?;
    half.read(0).await
}
