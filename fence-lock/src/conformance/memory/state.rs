//! The store itself: one step after the other, each at one reading of the clock.

use std::collections::{BTreeMap, HashMap, HashSet};

use fence_core::{BootInstant, ClassName, Epoch, GrantId, Key, Revision, Token, Ttl};

use crate::keys::Keys;
use crate::store::{Attempt, Minted, Release, SessionId};

/// What an attempt asks for, as it travels.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    session: SessionId,
    class: ClassName,
    keys: Keys,
    grant_id: GrantId,
}

/// How an attempt stands after a look.
pub(super) enum Looked {
    Granted(Minted),
    /// In the queue. Nothing ends by itself before `until`.
    Queued {
        until: BootInstant,
    },
    SessionOver,
    GivenUp,
}

#[derive(Default)]
pub(super) struct State {
    revision: u64,
    ends: u64,
    leases: HashMap<SessionId, (Ttl, BootInstant)>,
    held: HashMap<(ClassName, Key), (GrantId, SessionId, Minted)>,
    /// In the order in which they queued.
    queue: BTreeMap<u64, Asked>,
    given_up: HashSet<GrantId>,
}

impl Asked {
    pub(super) fn of(attempt: &Attempt) -> Asked {
        Asked {
            session: attempt.session().clone(),
            class: attempt.class().clone(),
            keys: attempt.keys().clone(),
            grant_id: attempt.grant_id().clone(),
        }
    }

    fn locks(&self) -> impl Iterator<Item = (ClassName, Key)> + '_ {
        self.keys.iter().map(|key| (self.class.clone(), key.clone()))
    }

    fn meets(&self, other: &Asked) -> bool {
        self.class == other.class && self.keys.iter().any(|key| other.keys.as_slice().contains(key))
    }
}

impl State {
    pub(super) fn open(&mut self, session: SessionId, ttl: Ttl, now: BootInstant) {
        self.leases.insert(session, (ttl, now.after(ttl.as_duration())));
    }

    /// The TTL from now on, or none when the lease is gone.
    pub(super) fn renew(&mut self, session: &SessionId, now: BootInstant) -> Option<Ttl> {
        let (ttl, until) = self.leases.get_mut(session)?;
        *until = now.after(ttl.as_duration());
        Some(*ttl)
    }

    /// Ends a lease, and everything that is attached to it.
    pub(super) fn close(&mut self, session: &SessionId) {
        self.ends += 1;
        self.leases.remove(session);
        self.held.retain(|_, (_, holder, _)| holder != session);
        self.queue.retain(|_, waiter| waiter.session != *session);
    }

    pub(super) fn end_lapsed(&mut self, now: BootInstant) {
        let lapsed: Vec<SessionId> = self
            .leases
            .iter()
            .filter(|(_, (_, until))| *until <= now)
            .map(|(session, _)| session.clone())
            .collect();
        for session in &lapsed {
            self.close(session);
        }
    }

    pub(super) fn grant_or_queue(&mut self, asked: &Asked, now: BootInstant) -> Looked {
        if self.given_up.contains(&asked.grant_id) {
            return Looked::GivenUp;
        }
        if !self.leases.contains_key(&asked.session) {
            return Looked::SessionOver;
        }
        let place = self.place(asked);
        let somebody_ahead = self
            .queue
            .range(..place.unwrap_or(u64::MAX))
            .any(|(_, waiter)| waiter.meets(asked));
        let taken = asked.locks().any(|lock| self.held.contains_key(&lock));
        self.revision += 1;
        if !somebody_ahead && !taken {
            let revision = Revision::new(self.revision).expect("a store in memory counts few steps");
            let minted = Minted {
                token: Token::mint(Epoch::FIRST, revision),
            };
            for lock in asked.locks() {
                self.held
                    .insert(lock, (asked.grant_id.clone(), asked.session.clone(), minted));
            }
            self.leave_queue(asked);
            return Looked::Granted(minted);
        }
        if place.is_none() {
            self.queue.insert(self.revision, asked.clone());
        }
        let soonest = self.leases.values().map(|(_, until)| *until).min();
        Looked::Queued {
            until: soonest.unwrap_or(now),
        }
    }

    pub(super) fn holds(&self, asked: &Asked, minted: Minted) -> bool {
        let ours = (asked.grant_id.clone(), asked.session.clone(), minted);
        asked.locks().all(|lock| self.held.get(&lock) == Some(&ours))
    }

    pub(super) fn release(&mut self, asked: &Asked, minted: Minted) -> Release {
        self.ends += 1;
        let ours = (asked.grant_id.clone(), asked.session.clone(), minted);
        let mut all = true;
        for lock in asked.locks() {
            if self.held.get(&lock) == Some(&ours) {
                self.held.remove(&lock);
            } else {
                all = false;
            }
        }
        if all { Release::Released } else { Release::NotHeld }
    }

    /// With something still on its way, the attempt is remembered, so that it cannot land; what landed is taken back.
    pub(super) fn give_up(&mut self, asked: &Asked, may_land: bool) {
        self.ends += 1;
        if may_land {
            self.given_up.insert(asked.grant_id.clone());
        }
        self.leave_queue(asked);
        self.held.retain(|_, (grant_id, ..)| *grant_id != asked.grant_id);
    }

    /// How many holds, places and leases may have ended so far.
    pub(super) fn ends(&self) -> u64 {
        self.ends
    }

    pub(super) fn holder(&self, class: &ClassName, key: &Key) -> Option<GrantId> {
        let (grant_id, ..) = self.held.get(&(class.clone(), key.clone()))?;
        Some(grant_id.clone())
    }

    pub(super) fn waiters(&self, class: &ClassName, key: &Key) -> usize {
        let waits = |waiter: &&Asked| waiter.class == *class && waiter.keys.as_slice().contains(key);
        self.queue.values().filter(waits).count()
    }

    fn place(&self, asked: &Asked) -> Option<u64> {
        let ours = self
            .queue
            .iter()
            .find(|(_, waiter)| waiter.grant_id == asked.grant_id);
        ours.map(|(place, _)| *place)
    }

    fn leave_queue(&mut self, asked: &Asked) {
        self.queue.retain(|_, waiter| waiter.grant_id != asked.grant_id);
    }
}
