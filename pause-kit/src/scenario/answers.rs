//! S24 and S28: answers held on their way, of the database to the resource and of the resource to the holder.

use std::time::Instant;

use super::half::Half;
use super::holder::{Holder, Part, open};
use super::trouble::Trouble;
use crate::history::{Answerer, Op, Withheld};
use crate::path::{Direction, Held, Hold, Kept, Path};
use crate::target::GateName::BeforeSend;
use crate::target::Variant::Again;

/// PostgreSQL says that it is ready, inside a transaction.
const IN_TRANSACTION: &[u8] = b"Z\0\0\0\x05T";

/// PostgreSQL says that it has committed.
const COMMITTED: &[u8] = b"C\0\0\0\x0bCOMMIT\0";

/// S24: H1 sends its write. Once the database has answered the beginning of the resource's transaction for it, that answer is
/// held and the resource is stopped: the token has passed the door, and nothing is written. H1's lease is revoked; H2 is
/// granted, raises, reads and writes through a second replica. The answer is let go, and the resource goes on.
pub(super) async fn stopped_between(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    let gate = first.at_gate(BeforeSend).await?;
    let next = half.database_path.hold(next_answer(IN_TRANSACTION));
    half.delay(0).await;
    open(gate).await?;
    let kept = first.awaits("its transaction was begun", next.engaged()).await?;
    let answer = alone(&half.database_path, next, kept);
    let standing = half.stop("R", &half.replica(0).child).await?;
    half.revoke(&first).await?;
    let lease_ended = half.lease_ended(&first).await?;
    let second = half.holder(Part::new("H2").through(1)).await?;
    second.granted(half, 1).await?;
    second.write_answered(1).await?;
    half.read(1).await?;
    half.delay(1).await;
    half.let_go(&first, 1, Answerer::Database, &answer);
    half.resume(standing, Some(lease_ended)).await?;
    first.write_answered(1).await?;
    half.read(1).await
}

/// S28: H1's first write is committed, the database's answer to that is held, the resource stopped, and H1 cut off. H1's second
/// write is committed and answered; that answer is held, H1 stopped, and cut off. H1 has no answer to either, and gives its lock
/// back. H2 is granted, raises and reads: it finds both, and writes nothing.
pub(super) async fn lost(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").of(Again).at(&[BeforeSend])).await?;
    first.granted(half, 0).await?;
    let gate = first.at_gate(BeforeSend).await?;
    let next = half.database_path.hold(next_answer(COMMITTED));
    half.delay(0).await;
    open(gate).await?;
    let kept = first.awaits("its write was committed", next.engaged()).await?;
    let answer = alone(&half.database_path, next, kept);
    let standing = half.stop("R", &half.replica(0).child).await?;
    half.read(1).await?;
    let write = first.write_came(1).await?;
    first.path.cut(write.connection);
    let gate = first.at_gate(BeforeSend).await?;
    half.let_go(&first, 1, Answerer::Database, &answer);
    half.resume(standing, None).await?;

    let reply = first
        .path
        .hold(Hold::new(Direction::ToHolder).on_every().from_now());
    half.delay(1).await;
    open(gate).await?;
    let kept = first.awaits("its write was answered", reply.engaged()).await?;
    first
        .awaits("its answer came whole", first.answered_write(2))
        .await?;
    let standing = half.stop("H1", &first.child).await?;
    half.read(1).await?;
    first.path.cut(kept.connection);
    half.withheld(&first, 2, Answerer::Resource, kept.since, None);
    reply.release();
    half.resume(standing, None).await?;
    let second = half.holder(Part::new("H2").of(Again)).await?;
    second.granted(half, 1).await?;
    let ended = second.child.exited().await;
    ended.map(drop).map_err(Trouble::lost("the reaper"))?;
    half.read(1).await
}

impl Half<'_> {
    /// Lets an answer of the database go on.
    fn let_go(&self, holder: &Holder, number: usize, by: Answerer, answer: &Alone) {
        let released = answer.held.release();
        self.withheld(holder, number, by, answer.since, Some(released));
    }

    fn withheld(
        &self,
        holder: &Holder,
        number: usize,
        by: Answerer,
        since: Instant,
        released: Option<Instant>,
    ) {
        let op = Op::new(format!("{}-write-{number}", holder.name));
        let released = released.map(|at| self.recorder.at(at));
        self.recorder
            .record(self.recorder.at(since), Withheld { op, by, released });
    }
}

/// An answer that is held, on its connection alone.
struct Alone {
    held: Held,
    since: Instant,
}

/// From the next answer of this kind on, on whichever connection it comes.
fn next_answer(message: &'static [u8]) -> Hold {
    let found = move |answers: &[u8]| answers.windows(message.len()).position(|bytes| bytes == message);
    Hold::new(Direction::ToHolder).on_every().from_next(found)
}

/// Goes on holding what is kept, and lets every other connection go.
fn alone(path: &Path, every: Held, kept: Kept) -> Alone {
    let held = path.hold(Hold::new(Direction::ToHolder).on(kept.connection).from_now());
    every.release();
    Alone {
        held,
        since: kept.since,
    }
}
