//! S16: a holder that cannot be stopped.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use super::half::{Half, SOON};
use super::holder::{Holder, Part, open};
use super::trouble::{Trouble, within};
use crate::history::Unstopped;
use crate::stopper::StopError;
use crate::target::GateName::BeforeSend;

/// How long the stop is tried. Nothing else is stopped, started or ended meanwhile.
const TRIED: Duration = Duration::from_millis(500);

/// H1 stands before its send, and its parent in `vfork`. The kit tries to stop both, and does not see them stopped. Then H1 goes
/// on and writes.
pub(super) async fn play(half: &Half<'_>) -> Result<(), Trouble> {
    let holder = half
        .holder(Part::new("H1").at(&[BeforeSend]).unstoppable())
        .await?;
    holder.granted(half, 0).await?;
    let gate = holder.at_gate(BeforeSend).await?;
    half.delay(0).await;
    half.cannot_be_stopped(&holder).await?;
    // The parent's other child has waited for this.
    let fifo = OpenOptions::new()
        .write(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(Holder::fifo(half, holder.name));
    drop(fifo.map_err(Trouble::step("nobody stood in vfork"))?);
    open(gate).await?;
    holder.write_answered(1).await?;
    half.read(0).await
}

impl Half<'_> {
    /// Tries to stop a holder, and records what stood in the way.
    async fn cannot_be_stopped(&self, holder: &Holder) -> Result<(), Trouble> {
        let stop = self.ground.services.stop_within(holder.child.pid(), TRIED);
        let stopped = within(SOON, "the refusal of a stop", stop).await?;
        match stopped {
            Err(StopError::NeverStopped { pid, tid, state }) => {
                let unstopped = Unstopped {
                    target: holder.name.to_owned(),
                    pid,
                    tid,
                    state,
                };
                self.recorder.record(self.recorder.now(), unstopped);
                Ok(())
            }
            Err(source) => Err(Trouble::Stop {
                who: holder.name.to_owned(),
                source,
            }),
            Ok(stopped) => {
                drop(stopped);
                Err(Trouble::Step {
                    what: format!("{} was seen stopped, though it cannot be", holder.name),
                    source: "its parent did not stand in vfork".into(),
                })
            }
        }
    }
}
