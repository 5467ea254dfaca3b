//! Where to look things up, so that a long history is judged in a time that grows with its length alone.

use std::collections::{HashMap, HashSet};

use super::facts::{Guarded, Right, Seen};
use crate::history::{Change, Commit, Final, Op, Read};

/// An id of a key: class, key, id.
type Id<'h> = (&'h str, &'h str, &'h str);

/// By what is asked for, the place of the first of its kind.
#[derive(Debug, Default)]
pub(super) struct Index<'h> {
    ops: HashMap<&'h Op, usize>,
    /// By the id that they bear, the operations.
    bearers: HashMap<&'h str, Vec<usize>>,
    rights: HashMap<(&'h str, &'h str, Option<&'h str>), usize>,
    /// Class, key and token of rights without a grant.
    open: HashSet<(&'h str, &'h str, i64)>,
    committed: HashMap<Id<'h>, usize>,
    read: HashMap<Id<'h>, usize>,
    read_back: HashMap<&'h str, usize>,
}

impl<'h> Index<'h> {
    /// Whose names and rights are known.
    pub(super) fn of_names(ops: &[Guarded<'h>], rights: &[Right<'h>]) -> Index<'h> {
        let mut index = Index::default();
        for (place, op) in ops.iter().enumerate() {
            index.ops.entry(&op.request.op).or_insert(place);
            if let Some(id) = &op.request.id {
                index.bearers.entry(id).or_default().push(place);
            }
        }
        for (place, right) in rights.iter().enumerate() {
            let right_of = (right.class, right.key, right.grant);
            index.rights.entry(right_of).or_insert(place);
            if right.grant.is_none() {
                index.open.insert((right.class, right.key, right.token));
            }
        }
        index
    }

    /// And everything that was shown.
    pub(super) fn add_shown(
        &mut self,
        commits: &[Seen<'h, Commit>],
        reads: &[Seen<'h, Read>],
        finals: &[Seen<'h, Final>],
    ) {
        for (place, commit) in commits.iter().enumerate() {
            if let Change::Write { class, key, id, .. } = &commit.body.change {
                self.committed.entry((class, key, id)).or_insert(place);
            }
        }
        for (place, read) in reads.iter().enumerate() {
            for id in &read.body.ids {
                let shown = (read.body.class.as_str(), read.body.key.as_str(), id.as_str());
                self.read.entry(shown).or_insert(place);
            }
        }
        for last in finals {
            for id in &last.body.ids {
                self.read_back.entry(id).or_insert(last.line);
            }
        }
    }

    pub(super) fn op(&self, name: &Op) -> Option<usize> {
        self.ops.get(name).copied()
    }

    /// The operations that bear this id, of whatever key.
    pub(super) fn bearers(&self, id: &str) -> &[usize] {
        self.bearers.get(id).map_or(&[], Vec::as_slice)
    }

    pub(super) fn right(&self, class: &str, key: &str, grant: Option<&str>) -> Option<usize> {
        self.rights.get(&(class, key, grant)).copied()
    }

    /// Whether a token is right by itself, without a grant.
    pub(super) fn is_open(&self, class: &str, key: &str, token: i64) -> bool {
        self.open.contains(&(class, key, token))
    }

    pub(super) fn committed(&self, class: &str, key: &str, id: &str) -> Option<usize> {
        self.committed.get(&(class, key, id)).copied()
    }

    pub(super) fn read(&self, class: &str, key: &str, id: &str) -> Option<usize> {
        self.read.get(&(class, key, id)).copied()
    }

    /// The line of the first reading back that shows this id.
    pub(super) fn read_back(&self, id: &str) -> Option<usize> {
        self.read_back.get(id).copied()
    }
}
