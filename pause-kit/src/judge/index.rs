//! Where to look things up, so that a long history is judged in a time that grows with its length alone.
//!
//! What few histories are asked for is put in order when it is asked for.

use std::cell::OnceCell;

use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};

use super::facts::{Facts, Guarded, Right, Seen};
use super::said::{Said, of_probe};
use crate::history::{Change, Commit, Final, Op, Read};

/// An id of a key: class, key, id.
type Id<'h> = (&'h str, &'h str, &'h str);

/// By what is asked for, the place of the first of its kind.
#[derive(Debug, Default)]
pub(super) struct Index<'h> {
    ops: HashMap<&'h Op, usize>,
    /// The places of operations that bear another one's name.
    namesakes: Vec<usize>,
    rights: HashMap<(&'h str, &'h str, Option<&'h str>), usize>,
    /// Class, key and token of rights without a grant.
    open: HashSet<(&'h str, &'h str, i64)>,
    /// Numbers of classes' keys, and of ids.
    keys: HashMap<(&'h str, &'h str), u32>,
    ids: HashMap<&'h str, u32>,
    /// By the id that they bear, the operations.
    bearers: OnceCell<HashMap<&'h str, Vec<usize>>>,
    committed: OnceCell<HashMap<Id<'h>, usize>>,
    read: OnceCell<HashMap<Id<'h>, usize>>,
    read_back: OnceCell<HashMap<&'h str, usize>>,
}

impl<'h> Index<'h> {
    /// With room for so many operations and ids.
    pub(super) fn for_about(operations: usize) -> Index<'h> {
        Index {
            ops: HashMap::with_capacity(operations),
            ids: HashMap::with_capacity(operations),
            ..Index::default()
        }
    }

    pub(super) fn add_op(&mut self, name: &'h Op, place: usize) {
        match self.ops.entry(name) {
            Entry::Vacant(free) => {
                free.insert(place);
            }
            Entry::Occupied(_) => self.namesakes.push(place),
        }
    }

    pub(super) fn add_right(&mut self, right: &Right<'h>, place: usize) {
        let right_of = (right.class, right.key, right.grant);
        self.rights.entry(right_of).or_insert(place);
        if right.grant.is_none() {
            self.open.insert((right.class, right.key, right.token));
        }
    }

    /// The number of a key, from 0.
    pub(super) fn key(&mut self, class: &'h str, key: &'h str) -> u32 {
        let next = self.keys.len() as u32;
        *self.keys.entry((class, key)).or_insert(next)
    }

    /// The number of an id, of whatever key, from 0.
    pub(super) fn id(&mut self, id: &'h str) -> u32 {
        let next = self.ids.len() as u32;
        *self.ids.entry(id).or_insert(next)
    }

    pub(super) fn op(&self, name: &Op) -> Option<usize> {
        self.ops.get(name).copied()
    }

    /// The operations that bear the name of an earlier one.
    pub(super) fn namesakes(&self) -> &[usize] {
        &self.namesakes
    }

    /// Those of these operations that bear this id, of whatever key.
    pub(super) fn bearers(&self, ops: &[Guarded<'h>], id: &str) -> &[usize] {
        let bearers = self.bearers.get_or_init(|| {
            let mut bearers: HashMap<&str, Vec<usize>> = HashMap::new();
            for (place, op) in ops.iter().enumerate() {
                if let Some(id) = &op.request.id {
                    bearers.entry(id).or_default().push(place);
                }
            }
            bearers
        });
        bearers.get(id).map_or(&[], Vec::as_slice)
    }

    pub(super) fn right(&self, class: &str, key: &str, grant: Option<&str>) -> Option<usize> {
        self.rights.get(&(class, key, grant)).copied()
    }

    /// Whether a token is right by itself, without a grant.
    pub(super) fn is_open(&self, class: &str, key: &str, token: i64) -> bool {
        self.open.contains(&(class, key, token))
    }

    /// The first of these commits that wrote this id.
    pub(super) fn committed(&self, commits: &[Seen<'h, Commit>], id: Id<'_>) -> Option<usize> {
        let committed = self.committed.get_or_init(|| {
            let mut committed = HashMap::new();
            for (place, commit) in commits.iter().enumerate() {
                if let Change::Write { class, key, id, .. } = &commit.body.change {
                    committed.entry((&**class, &**key, &**id)).or_insert(place);
                }
            }
            committed
        });
        committed.get(&id).copied()
    }

    /// The first of these reads that shows this id.
    pub(super) fn read(&self, reads: &[Seen<'h, Read>], id: Id<'_>) -> Option<usize> {
        let read = self.read.get_or_init(|| {
            let mut shown = HashMap::new();
            for (place, read) in reads.iter().enumerate() {
                for id in &read.body.ids {
                    let id = (&*read.body.class, &*read.body.key, &**id);
                    shown.entry(id).or_insert(place);
                }
            }
            shown
        });
        read.get(&id).copied()
    }

    /// The line of the first reading back that shows this id.
    pub(super) fn read_back(&self, finals: &[Seen<'h, Final>], id: &str) -> Option<usize> {
        let read_back = self.read_back.get_or_init(|| {
            let mut shown = HashMap::new();
            for last in finals {
                for id in &last.body.ids {
                    shown.entry(&**id).or_insert(last.line);
                }
            }
            shown
        });
        read_back.get(id).copied()
    }
}

impl<'h> Facts<'h> {
    /// The operation of this name.
    pub(super) fn op(&self, name: &Op) -> Option<&Guarded<'h>> {
        self.index.op(name).map(|place| &self.ops[place])
    }

    /// The true token of what is committed under this grant.
    pub(super) fn right(&self, class: &str, key: &str, grant: Option<&str>) -> Option<Right<'h>> {
        self.index
            .right(class, key, grant)
            .map(|place| self.rights[place])
    }

    /// A line that shows this id of this key: committed, read, or read back at the end.
    pub(super) fn shown(&self, class: &str, key: &str, id: &str) -> Option<usize> {
        let committed = self.committed(class, key, id);
        committed
            .map(|commit| commit.line)
            .or_else(|| self.first_read(class, key, id).map(|read| read.line))
            .or_else(|| self.read_back(class, key, id))
    }

    /// The first read of this key that shows this id.
    pub(super) fn first_read(&self, class: &str, key: &str, id: &str) -> Option<Seen<'h, Read>> {
        let place = self.index.read(&self.reads, (class, key, id));
        place.map(|place| self.reads[place])
    }

    /// The first commit of the write with this id.
    pub(super) fn committed(&self, class: &str, key: &str, id: &str) -> Option<Seen<'h, Commit>> {
        let place = self.index.committed(&self.commits, (class, key, id));
        place.map(|place| self.commits[place])
    }

    /// The operations that bear this id, of whatever key.
    pub(super) fn bearers(&self, id: &str) -> impl Iterator<Item = &Guarded<'h>> {
        let places = self.index.bearers(&self.ops, id).iter();
        places.map(|place| &self.ops[*place])
    }

    /// The read-back at the end, when it shows this id. It shows no keys: an id that a probe brought to another key, as
    /// happens where the grant itself is the id, tells nothing about this one.
    pub(super) fn read_back(&self, class: &str, key: &str, id: &str) -> Option<usize> {
        let brought_elsewhere = || {
            self.probes.iter().any(|probe| {
                let elsewhere = probe.body.class != class || probe.body.key != key;
                elsewhere && probe.body.id.as_deref() == Some(id) && of_probe(probe.body) == Said::Accepted
            })
        };
        self.index
            .read_back(&self.finals, id)
            .filter(|_| !brought_elsewhere())
    }
}
