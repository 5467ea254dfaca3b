//! What an attempt claimed, and whether what came of it is right.

use super::facts::Facts;
use crate::evidence::InvariantBroken;
use crate::history::{Change, Commit, Event, Half, Op, TokenNumber};
use crate::judge::{Invariant, Said};

/// A write that rests on a read which misses another's write.
pub(super) struct OldRead<'h> {
    pub(super) op: &'h Op,
    pub(super) holder: &'h str,
    /// Who had written what the read misses.
    pub(super) missed: &'h str,
}

impl<'h> Facts<'h> {
    /// The holder's own token, where the kit put another's claim in its place on the way.
    pub(super) fn replaced(&self, op: &Op) -> Option<TokenNumber> {
        let (_, request) = self.request(op)?;
        let (own, claimed) = (request.grant.as_deref()?, request.presented.grant.as_deref()?);
        let is_other = own != claimed && self.holder_of(claimed).is_some();
        let (_, granted) = self.grants.iter().find(|(_, grant)| grant.grant == own)?;
        (self.run.half == Half::Defeated && is_other).then_some(granted.token)
    }

    /// Whether nobody with a newer grant had been in touch by the time that the operation took effect.
    pub(super) fn is_rightful(&self, op: &Op) -> bool {
        let place = |grant: Option<&str>| {
            self.grants
                .iter()
                .position(|(_, record)| Some(record.grant.as_str()) == grant)
        };
        let Some((_, request)) = self.request(op) else {
            return false;
        };
        let own = place(request.grant.as_deref());
        let before = |other: &Op| match (self.order(other), self.order(op)) {
            (Some(other), Some(own)) => other < own,
            _ => match (self.answer(other), self.answer(op)) {
                (Some((other, _)), Some((own, _))) => other < own,
                (other, _) => other.is_some(),
            },
        };
        own.is_some()
            && self.requests().all(|(_, other)| {
                place(other.grant.as_deref()) <= own
                    || self.said(&other.op) != Some(Said::Accepted)
                    || !before(&other.op)
            })
    }

    /// Whether it was refused and its write was committed all the same, by no other request for the same.
    pub(super) fn is_refused_in_vain(&self, op: &Op) -> bool {
        let Some((_, request)) = self.request(op) else {
            return false;
        };
        let Some(id) = request.id.as_deref() else {
            return false;
        };
        let refused = |said: Option<Said>| matches!(said, Some(Said::Fenced(_) | Said::Declined));
        let alone = self.requests().all(|(_, other)| {
            other.op == request.op || other.id.as_deref() != Some(id) || refused(self.said(&other.op))
        });
        refused(self.said(op)) && alone && self.commits().any(|commit| wrote(commit) == Some(id))
    }

    /// The write that a broken rule shows to rest on an old read.
    pub(super) fn old_read(&self, broken: &[InvariantBroken]) -> Option<OldRead<'h>> {
        let lost = broken
            .iter()
            .find(|one| one.name == Invariant::LostUpdate.name())?;
        let shown = self.events.iter().filter(|(line, ..)| lost.lines.contains(line));
        let by = shown.clone().find_map(|(_, _, event)| match event {
            Event::Read(read) => Some(read.by.as_str()),
            _ => None,
        })?;
        let mut ids: Vec<&str> = Vec::new();
        for (_, _, event) in shown {
            if let Event::Commit(commit) = event {
                ids.extend(wrote(commit));
            }
        }
        let missed = ids
            .iter()
            .find_map(|id| self.writer(id).filter(|who| *who != by))?;
        let id = ids.iter().find(|id| self.writer(id) == Some(by))?;
        let mut requests = self.requests();
        let (_, request) = requests.find(|(_, request)| request.id.as_deref() == Some(*id))?;
        Some(OldRead {
            op: &request.op,
            holder: by,
            missed,
        })
    }

    fn commits(&self) -> impl Iterator<Item = &'h Commit> {
        self.events.iter().filter_map(|(_, _, event)| match event {
            Event::Commit(commit) => Some(commit),
            _ => None,
        })
    }

    /// Where it stands in the order of commits.
    fn order(&self, op: &Op) -> Option<u64> {
        let mut commits = self.commits();
        let commit = commits.find(|commit| self.is_commit_of(commit, op))?;
        Some(commit.order)
    }
}

/// The id of the write that a commit made.
fn wrote(commit: &Commit) -> Option<&str> {
    match &commit.change {
        Change::Write { id, .. } => Some(id),
        Change::Admission { .. } => None,
    }
}
