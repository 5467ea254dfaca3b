//! The grant: one transaction, and the confirmation after it.

use std::sync::atomic::Ordering;

use etcd_client::{Compare, CompareOp, PutOptions, Txn, TxnOp, TxnOpResponse, TxnResponse};
use fence_core::{Revision, Token};

use super::EtcdStore;
use super::call::revision;
use super::epoch::InForce;
use super::layout::{GrantRecord, encode};
use super::lease::lease_id;
use crate::error::AcquireError;
use crate::store::{Attempt, LockStore, Minted};

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
            match self.try_grant(attempt, &in_force, place).await? {
                Turn::Granted(minted) => return self.confirm(attempt, minted).await,
                Turn::Queued(since) => place = Some(since),
                Turn::Again => {}
            }
            if let Some(since) = place {
                self.wait_for_turn(attempt, since).await?;
            }
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
        let (queued, cancelled, epoch) = else_branch(&answer, place);
        self.adopt(seen, epoch.as_ref(), answer.header())?;
        if cancelled {
            return Err(AcquireError::GivenUp);
        }
        match place {
            // The place was ours before, and waiting shows whether it still is.
            Some(since) => Ok(Turn::Queued(since)),
            None if queued => Ok(Turn::Queued(
                answer.header().map_or(0, etcd_client::ResponseHeader::revision),
            )),
            None => Ok(Turn::Again),
        }
    }

    fn grant_txn(&self, attempt: &Attempt, in_force: &InForce, place: Option<i64>) -> Txn {
        let keys = self.inner.layout.of(attempt);
        let with_lease = || Some(PutOptions::new().with_lease(lease_id(attempt.session())));
        let record = encode(&GrantRecord::of(attempt));
        let same_epoch =
            || Compare::mod_revision(self.inner.layout.epoch(), CompareOp::Equal, in_force.moved_at);
        let not_given_up =
            || Compare::create_revision(keys.cancelled(attempt.grant_id()), CompareOp::Equal, 0);
        let nobody_ahead = match place {
            None => Compare::create_revision(keys.queue(), CompareOp::Equal, 0),
            Some(since) => Compare::create_revision(keys.queue(), CompareOp::Greater, since - 1),
        };

        let mut grant = vec![TxnOp::put(keys.held(), record.clone(), with_lease())];
        let look = vec![
            TxnOp::get(self.inner.layout.epoch(), None),
            TxnOp::get(keys.cancelled(attempt.grant_id()), None),
        ];
        let otherwise = if place.is_some() {
            grant.push(TxnOp::delete(keys.place(attempt.grant_id()), None));
            look
        } else {
            let enqueue = Txn::new()
                .when([same_epoch(), not_given_up()])
                .and_then([TxnOp::put(keys.place(attempt.grant_id()), record, with_lease())]);
            [look, vec![TxnOp::txn(enqueue)]].concat()
        };
        Txn::new()
            .when([
                Compare::create_revision(keys.held(), CompareOp::Equal, 0),
                nobody_ahead.with_prefix(),
                same_epoch(),
                not_given_up(),
            ])
            .and_then(grant)
            .or_else(otherwise)
    }

    /// A grant can be gone before its answer is here: the lease ran out, or was revoked. Only one that is there, attached
    /// to this session's lease, since the revision that minted it, is handed out.
    async fn confirm(&self, attempt: &Attempt, minted: Minted) -> Result<Minted, AcquireError> {
        let read = self.get(self.inner.layout.of(attempt).held(), None).await?;
        let minted_at = minted_at(minted);
        let confirmed = read.kvs().first().is_some_and(|kv| {
            kv.create_revision() == minted_at
                && kv.lease() == lease_id(attempt.session())
                && kv.value() == encode(&GrantRecord::of(attempt))
        });
        if confirmed {
            Ok(minted)
        } else {
            Err(AcquireError::NotConfirmed)
        }
    }
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

/// Whether a place was taken, whether the attempt was given up, and the epoch record.
fn else_branch(answer: &TxnResponse, place: Option<i64>) -> (bool, bool, Option<etcd_client::KeyValue>) {
    let mut responses = answer.op_responses().into_iter();
    let mut next_get = || match responses.next() {
        Some(TxnOpResponse::Get(read)) => read.kvs().first().cloned(),
        _ => None,
    };
    let epoch = next_get();
    let cancelled = next_get().is_some();
    let queued =
        place.is_none() && matches!(responses.next(), Some(TxnOpResponse::Txn(txn)) if txn.succeeded());
    (queued, cancelled, epoch)
}
