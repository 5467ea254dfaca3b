//! A holder: the process that takes the lock and writes, with a path and gates of its own.

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::exchanges::{Forms, Kind, Seen, seen};
use super::grants::Granted;
use super::half::{Half, SOON, spec};
pub(crate) use super::part::Part;
use super::transactions::writes_answered;
use super::trouble::{Trouble, within};
use super::writer::SqlForms;
use crate::away;
use crate::gates::{self, Gate, GateError, Gates};
use crate::path::{Log, Path, PathOptions, Replacement, ReplacementHandle};
use crate::run::RunError;
use crate::services::Child;
use crate::target::{GateName, Http, Place, Template, Variant};
use crate::unstoppable;

/// A holder. Everything it says to the resource, or to the database, goes over `path`.
pub(crate) struct Holder {
    pub(crate) name: &'static str,
    pub(crate) child: Child,
    pub(crate) path: Path,
    pub(super) gates: Arc<Gates>,
    /// The gates at which its part has it stand.
    pub(super) stands_at: &'static [GateName],
    /// Opens every gate at which no scenario keeps this holder.
    passing: AbortHandle,
    /// The name of a gate at which it stands and which is not declared.
    strayed: watch::Receiver<Option<String>>,
    /// The file that `{journal}` stands for.
    journal: PathBuf,
    /// Where the holder is declared.
    declared: Place,
    forms: Option<Forms>,
    /// What its SQL looks like, where it writes to the database itself.
    pub(super) sql: Option<SqlForms>,
    /// What its path replaces where the late write gets a fresher claim.
    pub(super) fresher: Mutex<Fresher>,
    grant: OnceLock<Granted>,
}

/// Replacements of claims on a path.
#[derive(Debug, Default)]
pub(super) struct Fresher {
    pub(super) in_force: Vec<ReplacementHandle>,
    /// Those that were taken back.
    pub(super) fired: Vec<ReplacementHandle>,
}

/// How long a holder's last words may be on their way after it has ended.
const AFTERGLOW: Duration = Duration::from_millis(500);

impl Holder {
    /// Starts a holder of the contested key. Where there is a front door it goes to its replica, else to the database.
    pub(crate) async fn start(half: &Half<'_>, part: Part) -> Result<Holder, Trouble> {
        let proof = &half.task.class.proof;
        let path = match &proof.front {
            Some(_) => Path::open(half.replica(part.replica).address, PathOptions::http()).await,
            None => Path::open(half.postgres(), PathOptions::plain()).await,
        };
        let path = path.map_err(Trouble::lost("no path for a holder"))?;
        if half.is_twin() {
            for defeat in &proof.defeat_on_path {
                let replacement = Replacement::new(
                    crate::path::Direction::ToResource,
                    defeat.find.as_bytes(),
                    defeat.replace.as_bytes(),
                );
                path.replace(replacement.map_err(Trouble::lost("a replacement that was checked"))?);
            }
        }
        let label = match part.again {
            false => part.name.to_owned(),
            true => format!("{}-again", part.name),
        };
        let offered = proof.holder.gates.iter().copied();
        let gates = Gates::open(half.folder.join(&label), offered.clone().map(GateName::as_str))
            .map_err(Trouble::lost("no gates for a holder"))?;
        let gates = Arc::new(gates);
        let (strays, strayed) = watch::channel(None);
        let passed = offered.filter(|gate| !part.stands_at.contains(gate)).collect();
        let passing = tokio::spawn(pass(Arc::clone(&gates), passed, strays)).abort_handle();
        let address = path.address();
        let journal = half.folder.join(format!("{}.journal", part.name));
        let values = half
            .values
            .clone()
            .with("resource", address.to_string())
            .with("database_url", half.database.through(address.port()).as_str())
            .with("journal", journal.display().to_string());
        let http2 = (half.door_speaks() == Some(Http::Two)).then_some(Variant::Http2);
        let variants = [part.variant, http2].into_iter().flatten();
        let further = variants.filter_map(|variant| proof.holder.with.of(variant));
        let command: Vec<Template> = std::iter::once(proof.holder.command.as_slice())
            .chain(further)
            .flatten()
            .cloned()
            .collect();
        let target = &half.task.class.target;
        let spec = spec(&format!("{}-{label}", half.name), &command, &values, target)
            .map_err(Trouble::lost("a holder's command"))?;
        let spec = match (part.away, part.unstoppable) {
            (true, _) => away::with_a_parent(spec, half.ground.fence),
            (_, true) => {
                let fifo = Holder::fifo(half, part.name);
                rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU)
                    .map_err(Trouble::lost("no FIFO for a holder"))?;
                unstoppable::with_a_parent(spec, half.ground.fence, &fifo)
            }
            _ => spec,
        };
        let spec = spec.env(gates::VARIABLE, &gates.socket().display().to_string());
        let child = half.ground.services.spawn(spec).await;
        Ok(Holder {
            name: part.name,
            child: child.map_err(Trouble::lost("a holder could not be started"))?,
            path,
            gates,
            stands_at: part.stands_at,
            passing,
            strayed,
            journal,
            declared: Place::proof(half.task.class.name.as_str()).key("holder"),
            forms: Forms::of(proof, &half.values).map_err(Trouble::lost("the front's forms"))?,
            sql: match &proof.front {
                Some(_) => None,
                None => Some(half.sql_forms().map_err(Trouble::lost("the forms of its SQL"))?),
            },
            fresher: Mutex::default(),
            grant: OnceLock::new(),
        })
    }

    /// The FIFO for which the parent of an unstoppable holder of this name waits.
    pub(super) fn fifo(half: &Half<'_>, name: &str) -> PathBuf {
        half.folder.join(format!("{name}.fifo"))
    }

    /// Waits until the store has granted it the lock, as grant number `number` of the key, counted from 0.
    pub(crate) async fn granted(&self, half: &Half<'_>, number: usize) -> Result<&Granted, Trouble> {
        let granted = half.grants.granted(&half.task.class.name, &half.keys[0], number);
        let granted = match self.awaits("its grant", granted).await {
            Err(ended @ Trouble::Ended { .. }) => return Err(self.misdeclared("command", &ended.to_string())),
            Err(overrun @ Trouble::Overrun { .. }) if number == 0 => {
                let (class, key) = (&half.task.class.name, &half.keys[0]);
                let why = format!(
                    "{overrun}; what it must be granted is the lock {key} of class {class}, under {{prefix}}"
                );
                return Err(self.misdeclared("command", &why));
            }
            awaited => awaited?.map_err(Trouble::lost("the lock store"))?,
        };
        half.is_registered(granted.token.as_i64())
            .await
            .map_err(Trouble::Declared)?;
        let granted = self.grant.get_or_init(|| granted);
        half.freshen()?;
        Ok(granted)
    }

    /// Its grant, once it was seen.
    pub(crate) fn grant(&self) -> Option<&Granted> {
        self.grant.get()
    }

    /// Waits until it stands at one of the gates at which its part has it stand.
    pub(crate) async fn at_gate(&self, gate: GateName) -> Result<Gate, Trouble> {
        let arrived = self.gates.arrived(gate.as_str());
        let awaited = self.awaits(&format!("it stood at {gate}"), arrived).await;
        match awaited {
            // The first holder finds nothing done, so that it has no reason to end well without its write.
            Err(ended @ Trouble::Ended { ended: how, .. }) if self.name == "H1" && how.success() => {
                Err(self.misdeclared("gates", &ended.to_string()))
            }
            awaited => awaited?.map_err(|error| match error {
                GateError::Unknown { name, .. } => self.stray(&name),
                error => Trouble::step("the holder's gates")(error),
            }),
        }
    }

    fn misdeclared(&self, key: &str, why: &str) -> Trouble {
        Trouble::Declared(RunError::Declared {
            at: self.declared.key(key),
            why: why.to_owned(),
        })
    }

    /// Waits until its write number `number`, from 1, has come to the path whole, whether it was handed on or is held.
    pub(crate) async fn write_came(&self, number: usize) -> Result<Seen, Trouble> {
        self.awaits(
            "its write came",
            self.write(number, |seen| seen.exchange.request.complete),
        )
        .await
    }

    /// Waits until its write number `number`, from 1, is answered whole and the answer was passed on to it.
    pub(crate) async fn write_answered(&self, number: usize) -> Result<(), Trouble> {
        let awaited = match number {
            1 => "its write was answered".to_owned(),
            _ => format!("its write number {number} was answered"),
        };
        self.awaits(&awaited, self.write_was(number, passed_on)).await
    }

    /// Waits until its raise number `number`, from 1, of the mark is answered whole and the answer was passed on to it.
    pub(crate) async fn raise_answered(&self, number: usize) -> Result<(), Trouble> {
        let raise = self.request(Kind::Raise, number, passed_on);
        self.awaits("its raise of the mark was answered", raise)
            .await
            .map(drop)
    }

    /// The same of the first write of a holder that is no longer there: only the path knows.
    pub(crate) async fn write_answered_to_nobody(&self) -> Result<(), Trouble> {
        let awaited = format!("the answer to {}'s write", self.name);
        within(SOON, &awaited, self.answered_write(1)).await
    }

    /// Waits until its guarded write number `number`, from 1, is answered whole, whoever may be there to take the answer.
    pub(super) async fn answered_write(&self, number: usize) {
        self.write_was(number, answered).await;
    }

    /// Goes on under the grant of its first process.
    pub(crate) fn inherits(&self, first: &Holder) {
        let granted = first.grant().expect("the first process was granted the lock");
        self.grant.get_or_init(|| granted.clone());
    }

    /// Looks whether it has left the journal that its second process is to start from.
    pub(crate) fn has_journal(&self) -> Result<(), Trouble> {
        match self.journal.is_file() {
            true => Ok(()),
            false => Err(Trouble::Declared(RunError::Declared {
                at: self.declared.key("with").key("journal"),
                why: "the holder stood at before-send and had put nothing into {journal}".to_owned(),
            })),
        }
    }

    pub(super) fn stray(&self, name: &str) -> Trouble {
        Trouble::Declared(RunError::Declared {
            at: self.declared.key("gates"),
            why: format!("the holder stands at the gate \"{name}\", which gates does not list"),
        })
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
        self.path.read(|log| self.requests_in(log))
    }

    /// The same on another path, on which those of other holders may be as well.
    pub(crate) fn requests_in(&self, log: &Log) -> Vec<Seen> {
        match &self.forms {
            Some(forms) => seen(log, forms),
            None => Vec::new(),
        }
    }

    /// Waits until its guarded write number `number` is answered, as `whole` says.
    async fn write_was(&self, number: usize, whole: fn(&Seen) -> bool) {
        match &self.sql {
            Some(forms) => {
                let answered = |log: &Log| (writes_answered(log, forms) >= number).then_some(());
                self.path.wait(answered).await;
            }
            None => drop(self.write(number, whole).await),
        }
    }

    async fn write(&self, number: usize, ready: impl Fn(&Seen) -> bool) -> Seen {
        self.request(Kind::Write, number, ready).await
    }

    async fn request(&self, kind: Kind, number: usize, ready: impl Fn(&Seen) -> bool) -> Seen {
        let Some(forms) = &self.forms else {
            return std::future::pending().await;
        };
        self.path
            .wait(|log| {
                seen(log, forms)
                    .into_iter()
                    .filter(|seen| seen.kind == kind)
                    .nth(number - 1)
                    .filter(&ready)
            })
            .await
    }

    /// Waits until it stands at a gate that is not declared, which it may never do.
    pub(super) async fn strayed(&self) -> String {
        let mut strayed = self.strayed.clone();
        match strayed.wait_for(Option::is_some).await {
            Ok(name) => name.clone().unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
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
            name = self.strayed() => return Err(self.stray(&name)),
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

impl Drop for Holder {
    fn drop(&mut self) {
        self.passing.abort();
    }
}

/// Opens these gates whenever the holder stands at one of them, until it stands at one that nobody declared.
async fn pass(gates: Arc<Gates>, names: Vec<GateName>, strays: watch::Sender<Option<String>>) {
    let each = names.into_iter().map(async |name| {
        loop {
            match gates.arrived(name.as_str()).await {
                // A holder that is gone by then needs no gate.
                Ok(gate) => drop(gate.open().await),
                Err(GateError::Unknown { name, .. }) => {
                    strays.send_replace(Some(name));
                    return;
                }
                Err(GateError::NotDeclared { .. }) => return,
            }
        }
    });
    futures_util::future::join_all(each).await;
}

fn passed_on(seen: &Seen) -> bool {
    let answer = seen.exchange.answer.as_ref();
    answered(seen) && answer.is_some_and(|answer| answer.ended.is_some())
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
