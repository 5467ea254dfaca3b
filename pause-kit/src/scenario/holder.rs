//! A holder: the process that takes the lock and writes, with a path and gates of its own.

use std::future::Future;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::exchanges::{Forms, Kind, Seen, seen};
use super::grants::Granted;
use super::half::{Half, SOON, spec};
use super::trouble::{Trouble, within};
use crate::gates::{self, Gate, GateError, Gates};
use crate::path::{Path, PathOptions, Replacement};
use crate::run::RunError;
use crate::services::Child;
use crate::target::Place;

/// A holder. Everything it says to the resource, or to the database, goes over `path`.
pub(crate) struct Holder {
    pub(crate) name: &'static str,
    pub(crate) child: Child,
    pub(crate) path: Path,
    gates: Gates,
    gate: String,
    /// Where the holder is declared.
    declared: Place,
    forms: Option<Forms>,
    grant: OnceLock<Granted>,
}

/// How long a holder's last words may be on their way after it has ended.
const AFTERGLOW: Duration = Duration::from_millis(500);

impl Holder {
    /// Starts a holder of the contested key. Where there is a front door it goes to replica `replica`, else to the database.
    pub(crate) async fn start(
        half: &Half<'_>,
        name: &'static str,
        replica: usize,
    ) -> Result<Holder, Trouble> {
        let proof = &half.task.class.proof;
        let path = match &proof.front {
            Some(_) => Path::open(half.replicas[replica].address, PathOptions::http()).await,
            None => Path::open(half.postgres(), PathOptions::plain()).await,
        };
        let path = path.map_err(Trouble::lost("no path for a holder"))?;
        if half.is_defeated() {
            for defeat in &proof.defeat_on_path {
                let replacement = Replacement::new(
                    crate::path::Direction::ToResource,
                    defeat.find.as_bytes(),
                    defeat.replace.as_bytes(),
                );
                path.replace(replacement.map_err(Trouble::lost("a replacement that was checked"))?);
            }
        }
        let gates = Gates::open(half.folder.join(name), [proof.holder.gate.as_str()])
            .map_err(Trouble::lost("no gates for a holder"))?;
        let address = path.address();
        let values = half
            .values
            .clone()
            .with("resource", address.to_string())
            .with("database_url", half.database.through(address.port()).as_str());
        let spec = spec(&format!("{}-{name}", half.name), &proof.holder.command, &values)
            .map_err(Trouble::lost("a holder's command"))?
            .env(gates::VARIABLE, &gates.socket().display().to_string());
        let child = half.ground.services.spawn(spec).await;
        Ok(Holder {
            name,
            child: child.map_err(Trouble::lost("a holder could not be started"))?,
            path,
            gates,
            gate: proof.holder.gate.clone(),
            declared: Place::proof(half.task.class.name.as_str()).key("holder"),
            forms: Forms::of(proof, &half.values).map_err(Trouble::lost("the front's forms"))?,
            grant: OnceLock::new(),
        })
    }

    /// Waits until the store has granted it the lock, as grant number `number` of the key, counted from 0.
    pub(crate) async fn granted(&self, half: &Half<'_>, number: usize) -> Result<&Granted, Trouble> {
        let granted = half.grants.granted(&half.task.class.name, &half.keys[0], number);
        let granted = self
            .awaits("its grant", granted)
            .await?
            .map_err(Trouble::lost("the lock store"))?;
        Ok(self.grant.get_or_init(|| granted))
    }

    /// Its grant, once it was seen.
    pub(crate) fn grant(&self) -> Option<&Granted> {
        self.grant.get()
    }

    /// Waits until it stands at its gate.
    pub(crate) async fn at_gate(&self) -> Result<Gate, Trouble> {
        let arrived = self.gates.arrived(&self.gate);
        self.awaits(&format!("it stood at {}", self.gate), arrived)
            .await?
            .map_err(|error| match error {
                GateError::Unknown { name, .. } => Trouble::Declared(RunError::Declared {
                    at: self.declared.key("gate"),
                    why: format!(
                        "gate = \"{}\", but the holder stands at the gate \"{name}\"",
                        self.gate
                    ),
                }),
                error => Trouble::step("the holder's gates")(error),
            })
    }

    /// Waits until its first write has come to the path whole, whether it was handed on or is held.
    pub(crate) async fn write_came(&self) -> Result<Seen, Trouble> {
        self.awaits(
            "its write came",
            self.write(|seen| seen.exchange.request.complete),
        )
        .await
    }

    /// Waits until its first write is answered whole.
    pub(crate) async fn write_answered(&self) -> Result<Seen, Trouble> {
        self.awaits("its write was answered", self.write(answered)).await
    }

    /// The same for a holder that is no longer there: only the path knows.
    pub(crate) async fn write_answered_to_nobody(&self) -> Result<Seen, Trouble> {
        let awaited = format!("the answer to {}'s write", self.name);
        within(SOON, &awaited, self.write(answered)).await
    }

    /// Has the reaper end it, and waits until it is gone.
    pub(crate) async fn end(&self) -> Result<(), Trouble> {
        let ended = within(
            SOON,
            &format!("the end of {}", self.name),
            Child::kill(&self.child),
        )
        .await?;
        ended.map(drop).map_err(Trouble::lost("the reaper"))
    }

    /// Every request on its path that one of the front's forms describes.
    pub(crate) fn requests(&self) -> Vec<Seen> {
        match &self.forms {
            Some(forms) => self.path.read(|log| seen(log, forms)),
            None => Vec::new(),
        }
    }

    async fn write(&self, ready: impl Fn(&Seen) -> bool) -> Seen {
        let Some(forms) = &self.forms else {
            return std::future::pending().await;
        };
        self.path
            .wait(|log| {
                seen(log, forms)
                    .into_iter()
                    .find(|seen| seen.kind == Kind::Write && ready(seen))
            })
            .await
    }

    /// Waits for something that this holder brings about: not for ever, and not beyond its end.
    pub(crate) async fn awaits<T>(
        &self,
        awaited: &str,
        future: impl Future<Output = T>,
    ) -> Result<T, Trouble> {
        let mut future = std::pin::pin!(future);
        let ended = tokio::select! {
            biased;
            value = &mut future => return Ok(value),
            ended = self.child.exited() => ended.map_err(Trouble::lost("the reaper"))?,
            () = tokio::time::sleep(SOON) => {
                return Err(Trouble::Overrun { awaited: format!("{}: {awaited}", self.name), within: SOON });
            }
        };
        tokio::time::timeout(AFTERGLOW, future)
            .await
            .map_err(|_| Trouble::Ended {
                who: self.name.to_owned(),
                ended,
                awaited: awaited.to_owned(),
                tail: self.child.tail(),
            })
    }
}

fn answered(seen: &Seen) -> bool {
    seen.exchange
        .answer
        .as_ref()
        .is_some_and(|answer| answer.complete)
}

/// Opens a gate and says when.
pub(crate) async fn open(gate: Gate) -> Result<Instant, Trouble> {
    gate.open()
        .await
        .map_err(Trouble::step("a gate could not be opened"))
}
