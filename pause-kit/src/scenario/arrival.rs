//! Where a holder's request is on its way to the resource: on the holder's own path, and behind a proxy on another.

use super::exchanges::{Kind, Seen};
use super::half::{Half, SOON};
use super::holder::Holder;
use super::trouble::{Trouble, within};
use crate::path::{ConnectionNumber, Path};

/// A write on the path that leads to the resource itself.
pub(crate) struct Arrival<'a> {
    pub(crate) path: &'a Path,
    pub(crate) connection: ConnectionNumber,
    /// How many bytes of the connection have come when all of the write has.
    pub(crate) bytes: usize,
}

impl Half<'_> {
    /// Waits until a holder's write has come whole to the path that leads to a process of the resource itself.
    pub(crate) async fn arrival<'a>(
        &'a self,
        holder: &'a Holder,
        write: &Seen,
        replica: usize,
    ) -> Result<Arrival<'a>, Trouble> {
        let Some(path) = self.behind(replica) else {
            return Ok(Arrival::of(&holder.path, write));
        };
        let seen = self.handed_on(holder, write, path, |seen| seen.exchange.request.complete);
        Ok(Arrival::of(path, &seen.await?))
    }

    /// Waits until a proxy has handed on the head of a holder's write; without one the head is where the body is held.
    pub(crate) async fn head_came(
        &self,
        holder: &Holder,
        write: &Seen,
        replica: usize,
    ) -> Result<(), Trouble> {
        match self.behind(replica) {
            Some(path) => self.handed_on(holder, write, path, |_| true).await.map(drop),
            None => Ok(()),
        }
    }

    async fn handed_on(
        &self,
        holder: &Holder,
        write: &Seen,
        path: &Path,
        ready: impl Fn(&Seen) -> bool,
    ) -> Result<Seen, Trouble> {
        let same = |seen: &Seen| {
            seen.kind == Kind::Write
                && seen.id == write.id
                && seen.presented == write.presented
                && ready(seen)
        };
        let awaited = format!("{}'s write behind the proxy", holder.name);
        within(
            SOON,
            &awaited,
            path.wait(|log| holder.requests_in(log).into_iter().find(same)),
        )
        .await
    }
}

impl<'a> Arrival<'a> {
    fn of(path: &'a Path, write: &Seen) -> Arrival<'a> {
        let request = &write.exchange.request;
        Arrival {
            path,
            connection: write.connection,
            bytes: request.offset + request.length,
        }
    }
}
