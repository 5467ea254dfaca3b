//! The grant: one transaction, and the confirmation after it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use etcd_client::{Compare, CompareOp, GetOptions, PutOptions, Txn, TxnOp, TxnOpResponse, TxnResponse};
use fence_core::{Revision, Token};

use super::EtcdStore;
use super::call::revision;
use super::epoch::InForce;
use super::layout::LockKeys;
use super::lease::lease_id;
use crate::clock::{BootClock, Clock as _};
use crate::error::{AcquireError, StoreError};
use crate::store::{Attempt, LockStore, Minted};

/// Up to so many keys, the transaction that cannot grant takes the places in the queues by itself: 2 n + 3 comparisons and,
/// one level deeper, n puts, of which etcd allows 128 together. With more keys, a second transaction does.
const QUEUES_AT_ONCE: usize = 41;

/// An answer that took less was under way for less than any holder keeps as a margin.
const QUICK: Duration = Duration::from_millis(100);

/// Where an attempt stands after a transaction.
pub(super) enum Turn {
    /// The lock is ours.
    Granted(Minted),
    /// In the queue since this revision.
    Queued(i64),
    /// The epoch record moved under us: look again.
    Again,
}

impl EtcdStore {
    pub(super) async fn acquire_in_turn(&self, attempt: &Attempt) -> Result<Minted, AcquireError> {
        let (asked, most) = (attempt.keys().count(), self.most_keys());
        if asked > most {
            return Err(AcquireError::TooManyKeys { asked, most });
        }
        let mut place = None;
        loop {
            let in_force = self.in_force().await?;
            let asked = BootClock.now();
            let turn = match self.try_grant(attempt, &in_force, place).await {
                Ok(turn) => turn,
                Err(error) => return Err(self.after_a_look(error).await),
            };
            match turn {
                Turn::Granted(minted) => {
                    // What was granted by a store that is another one by now does not count.
                    if self.inner.doubt.is_raised() {
                        self.look_again().await?;
                    }
                    let quick = asked.until(BootClock.now()) < QUICK;
                    return self.confirm(attempt, minted, quick).await;
                }
                Turn::Queued(since) => place = Some(since),
                Turn::Again => {}
            }
            if let Some(since) = place {
                self.wait_for_turn(attempt, since).await?;
            }
        }
    }

    /// The error for the caller: why the store is sealed, where it is.
    async fn after_a_look(&self, error: AcquireError) -> AcquireError {
        let strange = matches!(
            error,
            AcquireError::NotInitialised { .. }
                | AcquireError::Sealed(_)
                | AcquireError::Store(StoreError::Regressed { .. })
        );
        if !strange {
            return error;
        }
        self.inner.doubt.raise();
        match self.look_again().await {
            Err(found @ AcquireError::Sealed(_)) => found,
            _ => error,
        }
    }

    /// The grant's transaction. Without a place in the queue it takes one if it cannot grant.
    async fn try_grant(
        &self,
        attempt: &Attempt,
        in_force: &InForce,
        place: Option<i64>,
    ) -> Result<Turn, AcquireError> {
        let seen = self.inner.seen.load(Ordering::SeqCst);
        attempt.sending();
        let answer = self
            .txn_unchecked(self.grant_txn(attempt, in_force, place))
            .await?;
        attempt.answered();
        if answer.succeeded() {
            self.check_revision(seen, answer.header())?;
            self.check_seal(&in_force.record, answer.header())?;
            let minted = mint(in_force, revision(answer.header()))?;
            return Ok(Turn::Granted(minted));
        }
        let otherwise = self.otherwise(attempt, seen, &answer)?;
        match (place, otherwise) {
            // The place was ours before, and waiting shows whether it still is.
            (Some(since), _) => Ok(Turn::Queued(since)),
            (None, Otherwise::Queued(since)) => Ok(Turn::Queued(since)),
            (None, Otherwise::EpochMoved) => Ok(Turn::Again),
            (None, Otherwise::NotAsked) => self.enqueue(attempt, in_force).await,
        }
    }

    fn grant_txn(&self, attempt: &Attempt, in_force: &InForce, place: Option<i64>) -> Txn {
        let (mut when, mut grant) = (self.still(attempt, in_force), Vec::new());
        for (keys, record) in self.inner.layout.each(attempt) {
            when.push(Compare::create_revision(keys.held(), CompareOp::Equal, 0));
            let nobody_ahead = match place {
                None => Compare::create_revision(keys.queue(), CompareOp::Equal, 0),
                Some(since) => Compare::create_revision(keys.queue(), CompareOp::Greater, since - 1),
            };
            when.push(nobody_ahead.with_prefix());
            grant.push(TxnOp::put(keys.held(), record, with_lease(attempt)));
            if place.is_some() {
                grant.push(TxnOp::delete(keys.place(attempt.grant_id()), None));
            }
        }
        let mut otherwise = self.look(attempt);
        if place.is_none() && attempt.keys().count() <= QUEUES_AT_ONCE {
            otherwise.push(TxnOp::txn(self.enqueue_txn(attempt, in_force)));
        }
        Txn::new().when(when).and_then(grant).or_else(otherwise)
    }

    /// Takes the place in the queues in a transaction of its own.
    async fn enqueue(&self, attempt: &Attempt, in_force: &InForce) -> Result<Turn, AcquireError> {
        let seen = self.inner.seen.load(Ordering::SeqCst);
        attempt.sending();
        let enqueue = self.enqueue_txn(attempt, in_force).or_else(self.look(attempt));
        let answer = self.txn_unchecked(enqueue).await?;
        attempt.answered();
        if answer.succeeded() {
            self.check_revision(seen, answer.header())?;
            return Ok(Turn::Queued(place_of(&answer)));
        }
        self.otherwise(attempt, seen, &answer)?;
        Ok(Turn::Again)
    }

    fn enqueue_txn(&self, attempt: &Attempt, in_force: &InForce) -> Txn {
        let places: Vec<TxnOp> = self
            .inner
            .layout
            .each(attempt)
            .into_iter()
            .map(|(keys, record)| TxnOp::put(keys.place(attempt.grant_id()), record, with_lease(attempt)))
            .collect();
        Txn::new().when(self.still(attempt, in_force)).and_then(places)
    }

    /// The epoch has not moved, the attempt was not given up, and where classes are placed, its class is placed here.
    fn still(&self, attempt: &Attempt, in_force: &InForce) -> Vec<Compare> {
        let layout = &self.inner.layout;
        let mut still = vec![
            Compare::mod_revision(layout.epoch(), CompareOp::Equal, in_force.moved_at),
            Compare::create_revision(layout.cancelled(attempt), CompareOp::Equal, 0),
        ];
        if in_force.record.classes_placed {
            let tier = self.inner.tier.as_str();
            let class = layout.class(attempt.class());
            still.push(Compare::value(class, CompareOp::Equal, tier));
        }
        still
    }

    /// What shows why there was no grant: the epoch record, the cancellation of the attempt, and the place of its class.
    fn look(&self, attempt: &Attempt) -> Vec<TxnOp> {
        let layout = &self.inner.layout;
        vec![
            TxnOp::get(layout.epoch(), None),
            TxnOp::get(layout.cancelled(attempt), None),
            TxnOp::get(layout.class(attempt.class()), None),
        ]
    }

    /// Why there was no grant, from what the transaction looked at.
    fn otherwise(
        &self,
        attempt: &Attempt,
        seen: u64,
        answer: &TxnResponse,
    ) -> Result<Otherwise, AcquireError> {
        let mut responses = answer.op_responses().into_iter();
        let mut next_get = || match responses.next() {
            Some(TxnOpResponse::Get(read)) => read.kvs().first().cloned(),
            _ => None,
        };
        let (epoch, cancelled, class) = (next_get(), next_get(), next_get());
        let in_force = self.adopt(seen, epoch.as_ref(), answer.header())?;
        if cancelled.is_some() {
            return Err(AcquireError::GivenUp);
        }
        let tier = &self.inner.tier;
        if in_force.record.classes_placed && class.is_none_or(|kv| kv.value() != tier.as_str().as_bytes()) {
            return Err(AcquireError::Unplaced {
                class: attempt.class().clone(),
                tier: tier.clone(),
            });
        }
        Ok(match responses.next() {
            Some(TxnOpResponse::Txn(queued)) if queued.succeeded() => Otherwise::Queued(place_of(answer)),
            Some(_) => Otherwise::EpochMoved,
            None => Otherwise::NotAsked,
        })
    }

    /// A grant can be gone before its answer is here: the lease ran out, or was revoked. Only one that is there, each key
    /// of it attached to this session's lease, since the revision that minted it, is handed out.
    ///
    /// After an answer that was quick, the member that gave it is asked for what it has, which costs the cluster nothing: no
    /// lease runs out so soon. A member that stood still meanwhile does not know what it has missed, and its answer is not quick.
    async fn confirm(&self, attempt: &Attempt, minted: Minted, quick: bool) -> Result<Minted, AcquireError> {
        let each = self.inner.layout.each(attempt);
        let reads = |options: Option<GetOptions>| {
            let read = |(keys, _): &(LockKeys, Vec<u8>)| TxnOp::get(keys.held(), options.clone());
            Txn::new().and_then(each.iter().map(read).collect::<Vec<_>>())
        };
        if quick {
            let as_it_is_there = GetOptions::new().with_serializable();
            let answer = self.txn_unchecked(reads(Some(as_it_is_there))).await?;
            if is_there(attempt, minted, &each, &answer) {
                return Ok(minted);
            }
        }
        let answer = self.txn(reads(None)).await?;
        match is_there(attempt, minted, &each, &answer) {
            true => Ok(minted),
            false => Err(AcquireError::NotConfirmed),
        }
    }
}

/// Whether each key of a grant is there as it was granted.
fn is_there(attempt: &Attempt, minted: Minted, each: &[(LockKeys, Vec<u8>)], answer: &TxnResponse) -> bool {
    let ours = |response: TxnOpResponse, record: &[u8]| {
        let TxnOpResponse::Get(read) = response else {
            return false;
        };
        read.kvs().first().is_some_and(|kv| {
            kv.create_revision() == minted_at(minted)
                && kv.lease() == lease_id(attempt.session())
                && kv.value() == record
        })
    };
    let responses = answer.op_responses();
    responses.len() == each.len()
        && responses
            .into_iter()
            .zip(each)
            .all(|(response, (_, record))| ours(response, record))
}

/// Why a transaction did not grant.
enum Otherwise {
    /// It took a place in the queue, at this revision, instead.
    Queued(i64),
    /// It would have, had the epoch not moved.
    EpochMoved,
    /// It was not told to.
    NotAsked,
}

fn with_lease(attempt: &Attempt) -> Option<PutOptions> {
    Some(PutOptions::new().with_lease(lease_id(attempt.session())))
}

/// The place in the queues that a transaction took: its revision, which is the create revision of every key there.
fn place_of(answer: &TxnResponse) -> i64 {
    answer.header().map_or(0, etcd_client::ResponseHeader::revision)
}

/// The token of a grant, from the revision of its one transaction.
fn mint(in_force: &InForce, revision: u64) -> Result<Minted, AcquireError> {
    let revision = Revision::new(revision).map_err(AcquireError::Revision)?;
    Ok(Minted {
        token: Token::mint(in_force.record.epoch, revision),
    })
}

/// The revision that a token of this store was minted from.
pub(super) fn minted_at(minted: Minted) -> i64 {
    let revision = minted.token.split().map_or(0, |(_, revision)| revision.as_u64());
    i64::try_from(revision).expect("a revision has 48 bits")
}
