//! What scenarios do, step by step. Each step returns once it was seen to have happened.

use std::time::{Duration, Instant};

use crate::evidence::StopEvidence;
use crate::history::{self, Killed, Stop};
use crate::services::Child;
use crate::stopper::Stopped;

use super::half::{Half, SOON};
use super::holder::Holder;
use super::trouble::{Trouble, within};

/// Something that stands, and the name under which it is recorded.
pub(crate) struct Standing {
    name: &'static str,
    stopped: Stopped,
}

impl Standing {
    /// When every task was seen stopped.
    pub(crate) fn confirmed(&self, half: &Half<'_>) -> Instant {
        half.clock.instant(self.stopped.confirmed_ns())
    }
}

impl Half<'_> {
    /// Stops a process with all below it, and returns when every task was seen stopped.
    pub(crate) async fn stop(&self, name: &'static str, child: &Child) -> Result<Standing, Trouble> {
        self.stop_process(name, child.pid()).await
    }

    /// The same of any process that comes from what the run has started, by its number.
    pub(crate) async fn stop_process(&self, name: &'static str, pid: u32) -> Result<Standing, Trouble> {
        let stop = self.ground.services.stop(pid);
        let stopped = within(SOON, &format!("the stop of {name}"), stop).await?;
        let stopped = stopped.map_err(|source| Trouble::Stop {
            who: name.to_owned(),
            source,
        })?;
        Ok(Standing { name, stopped })
    }

    /// Lets it go on. `lease_ended` is when the store ended the lease that this stop was to outlast.
    pub(crate) async fn resume(
        &self,
        standing: Standing,
        lease_ended: Option<Instant>,
    ) -> Result<(), Trouble> {
        let resumed = within(SOON, "the resumption", standing.stopped.resume()).await?;
        let pause = resumed.map_err(Trouble::lost("the reaper"))?;
        let at = |nanos: u64| self.recorder.at(self.clock.instant(nanos));
        let tasks = u32::try_from(pause.before.len()).expect("a machine has fewer than 2^32 tasks");
        self.recorder.record(
            at(pause.confirmed_ns),
            Stop {
                target: standing.name.to_owned(),
                pid: pause.pid,
                tasks,
                confirmed: tasks,
                asked: at(pause.began_ns),
                resumed: Some(at(pause.resumed_ns)),
                cpu_before: pause.cpu_before_ns(),
                cpu_after: pause.cpu_after_ns(),
                by: pause.by,
            },
        );
        let confirmed = self.clock.instant(pause.confirmed_ns);
        let stop = StopEvidence {
            half: match self.is_twin() {
                false => "on",
                true => "defeated",
            }
            .to_owned(),
            target: standing.name.to_owned(),
            pid: pause.pid,
            tasks: pause.before.len(),
            confirmed_ms: millis(pause.confirmed_after()),
            cpu_before: pause.cpu_before_ns(),
            cpu_after: pause.cpu_after_ns(),
            lease_ended_ms: lease_ended.map(|at| millis(at.saturating_duration_since(confirmed))),
            resumed_ms: millis(pause.stood_for()),
            by: pause.by,
        };
        self.stops().push(stop);
        Ok(())
    }

    /// Kills a holder and waits until it is gone.
    pub(crate) async fn kill(&self, holder: &Holder) -> Result<(), Trouble> {
        holder.end().await?;
        let killed = Killed {
            target: holder.name.to_owned(),
            pid: holder.child.pid(),
        };
        self.recorder.record(self.recorder.now(), killed);
        Ok(())
    }

    /// Ends a holder's lease as an operator would. When it ended, [`lease_ended`](Half::lease_ended) tells.
    pub(crate) async fn revoke(&self, holder: &Holder) -> Result<(), Trouble> {
        let granted = holder.grant().expect("scenarios revoke what was granted");
        self.revoked().push(granted.grant.clone());
        let revoke = self
            .store
            .revoke(&self.task.class.name, &self.keys[0], &granted.grant);
        within(SOON, "the revoke", revoke)
            .await?
            .map_err(Trouble::lost("the lock store"))?;
        Ok(())
    }

    /// Waits until the store has ended a holder's lease, and returns when that was seen.
    pub(crate) async fn lease_ended(&self, holder: &Holder) -> Result<Instant, Trouble> {
        let granted = holder
            .grant()
            .expect("scenarios wait for the end of what was granted");
        let limit = self.ttl().as_duration() + SOON;
        within(
            limit,
            &format!("the end of {}'s lease", holder.name),
            self.grants.ended(&granted.grant),
        )
        .await?
        .map_err(Trouble::lost("the lock store"))
    }

    /// Reads what the contested key shows, straight from a replica or the database, and records it.
    pub(crate) async fn read(&self, replica: usize) -> Result<(), Trouble> {
        let began = self.recorder.now();
        let ids = within(SOON, "a read of the kit's own", self.shown(replica)).await??;
        self.recorder.record(
            self.recorder.now(),
            history::Read {
                by: "kit".to_owned(),
                class: self.task.class.name.to_string(),
                key: self.keys[0].to_string(),
                began,
                ids,
                balances: Default::default(),
            },
        );
        Ok(())
    }
}

fn millis(duration: Duration) -> f64 {
    // Three decimals: what is below a microsecond is noise.
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
