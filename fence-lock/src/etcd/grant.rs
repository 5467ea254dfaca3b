//! The grant: one transaction, and a look at what became of it where its answer was slow.

use std::sync::atomic::Ordering;

use etcd_client::{Compare, CompareOp, PutOptions, ResponseHeader, Txn, TxnOp, TxnOpResponse, TxnResponse};
use fence_core::{Revision, Token};

use super::EtcdStore;
use super::call::revision;
use super::epoch::InForce;
use super::layout::LockKeys;
use super::lease::lease_id;
use crate::clock::{BootClock, Clock as _};
use crate::error::{AcquireError, StoreError};
use crate::store::{Attempt, FRESH_FOR, LockStore, Minted};

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
        let (mut place, mut line) = (None, None);
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
                    // That the grant was there is known from the answer itself, and is as old as the question at most.
                    if asked.until(BootClock.now()) < FRESH_FOR {
                        return Ok(minted);
                    }
                    return self.confirm(attempt, minted).await;
                }
                Turn::Queued(since) => {
                    place = Some(since);
                    line.get_or_insert_with(|| self.in_line(attempt));
                }
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

    /// The grant's transaction; without a place in the queue, and where it cannot grant, one more that takes a place. Where others
    /// of this process wait, that one alone.
    async fn try_grant(
        &self,
        attempt: &Attempt,
        in_force: &InForce,
        place: Option<i64>,
    ) -> Result<Turn, AcquireError> {
        if place.is_none() && self.waits_already(attempt) {
            return self.enqueue(attempt, in_force).await;
        }
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
        match place {
            None => self.enqueue(attempt, in_force).await,
            Some(since) => {
                self.why_not(attempt, seen, &answer)?;
                // The place was ours before, and waiting shows whether it still is.
                Ok(Turn::Queued(since))
            }
        }
    }

    /// Grants if nobody holds and nobody is ahead. What is compared first is what fails first where many wait: to compare a
    /// queue, etcd reads all of it.
    ///
    /// Who waits has looked, and has seen nobody before its place. Whoever came since is behind it, so that nobody is ahead for
    /// as long as the place is there.
    fn grant_txn(&self, attempt: &Attempt, in_force: &InForce, place: Option<i64>) -> Txn {
        let (mut when, mut grant) = (Vec::new(), Vec::new());
        let each = self.inner.layout.each(attempt);
        for (keys, _) in &each {
            when.push(Compare::create_revision(keys.held(), CompareOp::Equal, 0));
        }
        when.extend(self.still(attempt, in_force));
        for (keys, record) in each {
            when.push(match place {
                None => Compare::create_revision(keys.queue(), CompareOp::Equal, 0).with_prefix(),
                Some(since) => {
                    Compare::create_revision(keys.place(attempt.grant_id()), CompareOp::Equal, since)
                }
            });
            grant.push(TxnOp::put(keys.held(), record, with_lease(attempt)));
            if place.is_some() {
                grant.push(TxnOp::delete(keys.place(attempt.grant_id()), None));
            }
        }
        let grant = Txn::new().when(when).and_then(grant);
        match place {
            // Taking a place shows why not.
            None => grant,
            Some(_) => grant.or_else(self.look(attempt)),
        }
    }

    /// Takes a place in the queue of each key, in a transaction of its own.
    async fn enqueue(&self, attempt: &Attempt, in_force: &InForce) -> Result<Turn, AcquireError> {
        let seen = self.inner.seen.load(Ordering::SeqCst);
        let places: Vec<TxnOp> = self
            .inner
            .layout
            .each(attempt)
            .into_iter()
            .map(|(keys, record)| TxnOp::put(keys.place(attempt.grant_id()), record, with_lease(attempt)))
            .collect();
        let enqueue = Txn::new()
            .when(self.still(attempt, in_force))
            .and_then(places)
            .or_else(self.look(attempt));
        attempt.sending();
        let answer = self.txn_unchecked(enqueue).await?;
        attempt.answered();
        if answer.succeeded() {
            self.check_revision(seen, answer.header())?;
            // Its revision is the create revision of every place.
            return Ok(Turn::Queued(answer.header().map_or(0, ResponseHeader::revision)));
        }
        self.why_not(attempt, seen, &answer)?;
        Ok(Turn::Again)
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

    /// Why a transaction did nothing, from what it looked at: an error, unless only the epoch moved.
    fn why_not(&self, attempt: &Attempt, seen: u64, answer: &TxnResponse) -> Result<(), AcquireError> {
        let mut responses = answer.op_responses().into_iter();
        let mut next = || match responses.next() {
            Some(TxnOpResponse::Get(read)) => read.kvs().first().cloned(),
            _ => None,
        };
        let (epoch, cancelled, class) = (next(), next(), next());
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
        Ok(())
    }

    /// A grant can be gone before its answer is here: the lease ran out, or was revoked. One whose answer was slow is
    /// handed out only if it is there, each key of it attached to this session's lease, since the revision that minted it.
    async fn confirm(&self, attempt: &Attempt, minted: Minted) -> Result<Minted, AcquireError> {
        let each = self.inner.layout.each(attempt);
        let reads: Vec<TxnOp> = each
            .iter()
            .map(|(keys, _)| TxnOp::get(keys.held(), None))
            .collect();
        let answer = self.txn(Txn::new().and_then(reads)).await?;
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

fn with_lease(attempt: &Attempt) -> Option<PutOptions> {
    Some(PutOptions::new().with_lease(lease_id(attempt.session())))
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
