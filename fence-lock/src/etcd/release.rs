//! The two ways out: releasing a grant, and giving an attempt up.

use etcd_client::{Compare, CompareOp, PutOptions, Txn, TxnOp};

use super::EtcdStore;
use super::grant::minted_at;
use super::layout::{GrantRecord, ReleaseRecord, encode};
use super::lease::lease_id;
use crate::error::StoreError;
use crate::store::{Attempt, Minted, Release};

impl EtcdStore {
    /// Frees the lock if it is held by this grant: same create revision, same value. The release writes its own record in
    /// the same transaction, since a deletion looks the same whether released, expired or revoked.
    pub(super) async fn release_grant(
        &self,
        attempt: &Attempt,
        minted: Minted,
    ) -> Result<Release, StoreError> {
        let keys = self.inner.layout.of(attempt);
        let record = ReleaseRecord {
            grant_id: attempt.grant_id().clone(),
            session: attempt.session().clone(),
            token: minted.token,
        };
        let with_lease = PutOptions::new().with_lease(lease_id(attempt.session()));
        let release = Txn::new()
            .when([
                Compare::create_revision(keys.held(), CompareOp::Equal, minted_at(minted)),
                Compare::value(keys.held(), CompareOp::Equal, encode(&GrantRecord::of(attempt))),
            ])
            .and_then([
                TxnOp::put(keys.released(), encode(&record), Some(with_lease)),
                TxnOp::delete(keys.held(), None),
            ]);
        match self.txn_unchecked(release).await {
            Ok(answer) if answer.succeeded() => Ok(Release::Released),
            // A lease that is gone took the grant with it.
            Ok(_) | Err(StoreError::LeaseGone) => Ok(Release::NotHeld),
            Err(error) => Err(error),
        }
    }

    /// Cancels first and reads back second. With the cancellation there, nothing of this attempt that is still on its way
    /// can land; what landed before is taken back. Without anything on its way there is nothing to cancel, and no
    /// cancellation key stays behind until the session ends.
    pub(super) async fn give_up_attempt(&self, attempt: &Attempt) -> Result<(), StoreError> {
        let keys = self.inner.layout.of(attempt);
        let record = encode(&GrantRecord::of(attempt));
        if attempt.may_land() {
            let with_lease = PutOptions::new().with_lease(lease_id(attempt.session()));
            let cancel = TxnOp::put(
                keys.cancelled(attempt.grant_id()),
                record.clone(),
                Some(with_lease),
            );
            match self.txn_unchecked(Txn::new().and_then([cancel])).await {
                // On a lease that is gone nothing lands.
                Err(StoreError::LeaseGone) => return Ok(()),
                outcome => outcome?,
            };
        }
        let leave_queue = TxnOp::delete(keys.place(attempt.grant_id()), None);
        let take_back = Txn::new()
            .when([Compare::value(keys.held(), CompareOp::Equal, record)])
            .and_then([leave_queue.clone(), TxnOp::delete(keys.held(), None)])
            .or_else([leave_queue]);
        self.txn_unchecked(take_back).await.map(|_| ())
    }
}
