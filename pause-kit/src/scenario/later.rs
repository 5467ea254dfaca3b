//! S33: a write that the resource accepts with 202, and that a worker of it makes later.

use super::exchanges::Kind;
use super::grants::Granted;
use super::half::{Half, SOON};
use super::holder::{Holder, Part};
use super::trouble::{Trouble, within};
use super::writer::{SqlForms, Writer};
use crate::history::Started;
use crate::path::{Path, PathOptions};
use crate::run::RunError;
use crate::services::Child;
use crate::target::{Place, Variant};

/// The name of the worker.
const WORKER: &str = "W";

/// H1's write is accepted for later; its lease is revoked; H2 is granted, raises, reads and writes. Only then a worker of the
/// resource is started, which makes what was accepted and comes to its end.
pub(super) async fn play(half: &Half<'_>) -> Result<(), Trouble> {
    let first = half.holder(Part::new("H1").of(Variant::Later)).await?;
    first.granted(half, 0).await?;
    first.write_answered(1).await?;
    let id = accepted_for_later(half, &first)?;
    half.delay(0).await;
    half.revoke(&first).await?;
    half.lease_ended(&first).await?;
    let second = half.holder(Part::new("H2")).await?;
    second.granted(half, 1).await?;
    second.write_answered(1).await?;
    half.read(0).await?;
    half.delay(1).await;
    work(half, &first, id).await?;
    half.read(0).await
}

/// The id of the holder's write, which must have been answered 202.
fn accepted_for_later(half: &Half<'_>, holder: &Holder) -> Result<Option<String>, Trouble> {
    let requests = holder.requests();
    let write = requests.into_iter().find(|seen| seen.kind == Kind::Write);
    let answered = write.and_then(|write| Some((write.exchange.answer?.status, write.id)));
    match answered {
        Some((202, id)) => Ok(id),
        other => Err(Trouble::Declared(RunError::Declared {
            at: Place::proof(half.task.class.name.as_str())
                .key("holder")
                .key("with")
                .key("later"),
            why: format!(
                "the holder's write was answered {}, not 202; with these arguments it has the resource accept it for later",
                other.map_or_else(|| "nothing".to_owned(), |(status, _)| status.to_string())
            ),
        })),
    }
}

/// A worker of the resource, which makes what was accepted of one holder.
pub(crate) struct Worker {
    child: Child,
    path: Path,
    forms: SqlForms,
    /// Under which grant it was accepted.
    granted: Option<Granted>,
    /// The write's id.
    id: Option<String>,
}

impl Worker {
    pub(super) fn child(&self) -> &Child {
        &self.child
    }

    /// What it wrote, as it is to be recorded.
    pub(super) fn writer(&self) -> Writer<'_> {
        Writer {
            name: WORKER,
            path: &self.path,
            forms: &self.forms,
            granted: self.granted.as_ref(),
            id: self.id.as_deref(),
        }
    }
}

/// Runs the worker to its end, over a path of its own to the database.
async fn work(half: &Half<'_>, holder: &Holder, id: Option<String>) -> Result<(), Trouble> {
    let path = Path::open(half.postgres(), PathOptions::plain()).await;
    let path = path.map_err(Trouble::lost("no path for the worker"))?;
    let before = half.recorder.now();
    let child = half.spawn_worker(path.address().port()).await?;
    let pid = child.pid();
    let forms = half.sql_forms().map_err(Trouble::lost("the forms of its SQL"))?;
    let worker = half.worker.get_or_init(|| Worker {
        child,
        path,
        forms,
        granted: holder.grant().cloned(),
        id,
    });
    let target = WORKER.to_owned();
    half.recorder.record(before, Started { target, pid });
    let ended = within(SOON, "the end of the resource's worker", worker.child.exited()).await?;
    let ended = ended.map_err(Trouble::lost("the reaper"))?;
    match ended.success() {
        true => Ok(()),
        false => Err(Trouble::Ended {
            who: "the resource's worker".to_owned(),
            ended,
            awaited: "it was done with all that had been accepted".to_owned(),
            tail: worker.child.tail(),
        }),
    }
}
