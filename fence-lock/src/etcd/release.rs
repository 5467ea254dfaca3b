//! The two ways out: releasing a grant, and giving an attempt up.

use etcd_client::{Compare, CompareOp, PutOptions, Txn, TxnOp, TxnOpResponse};

use super::EtcdStore;
use super::grant::minted_at;
use super::layout::{ReleaseRecord, encode};
use super::lease::lease_id;
use crate::error::StoreError;
use crate::store::{Attempt, Minted, Release};

impl EtcdStore {
    /// Frees each key that is held by this grant: same create revision, same value. The release writes its own record in
    /// the same transaction, since a deletion looks the same whether released, expired or revoked.
    pub(super) async fn release_grant(
        &self,
        attempt: &Attempt,
        minted: Minted,
    ) -> Result<Release, StoreError> {
        let record = encode(&ReleaseRecord {
            grant_id: attempt.grant_id().clone(),
            session: attempt.session().clone(),
            token: minted.token,
        });
        let mut each: Vec<Txn> = self
            .inner
            .layout
            .each(attempt)
            .into_iter()
            .map(|(keys, grant)| {
                let with_lease = PutOptions::new().with_lease(lease_id(attempt.session()));
                Txn::new()
                    .when([
                        Compare::create_revision(keys.held(), CompareOp::Equal, minted_at(minted)),
                        Compare::value(keys.held(), CompareOp::Equal, grant),
                    ])
                    .and_then([
                        TxnOp::put(keys.released(), record.clone(), Some(with_lease)),
                        TxnOp::delete(keys.held(), None),
                    ])
            })
            .collect();
        let release = match (each.len(), each.pop()) {
            (1, Some(one)) => one,
            (_, last) => {
                Txn::new().and_then(each.into_iter().chain(last).map(TxnOp::txn).collect::<Vec<_>>())
            }
        };
        match self.txn_unchecked(release).await {
            Ok(answer) => {
                let nested = answer.op_responses();
                let all = nested
                    .iter()
                    .all(|one| !matches!(one, TxnOpResponse::Txn(one) if !one.succeeded()));
                Ok(if answer.succeeded() && all {
                    Release::Released
                } else {
                    Release::NotHeld
                })
            }
            // A lease that is gone took the grant with it.
            Err(StoreError::LeaseGone) => Ok(Release::NotHeld),
            Err(error) => Err(error),
        }
    }

    /// Cancels first and reads back second. With the cancellation there, nothing of this attempt that is still on its way
    /// can land; what landed before is taken back. Without anything on its way there is nothing to cancel, and no
    /// cancellation key stays behind until the session ends.
    pub(super) async fn give_up_attempt(&self, attempt: &Attempt) -> Result<(), StoreError> {
        let each = self.inner.layout.each(attempt);
        if attempt.may_land() {
            let with_lease = PutOptions::new().with_lease(lease_id(attempt.session()));
            let (_, record) = &each[0];
            let cancel = TxnOp::put(
                self.inner.layout.cancelled(attempt),
                record.clone(),
                Some(with_lease),
            );
            match self.txn_unchecked(Txn::new().and_then([cancel])).await {
                // On a lease that is gone nothing lands.
                Err(StoreError::LeaseGone) => return Ok(()),
                outcome => outcome?,
            };
        }
        let mut take_back = Vec::new();
        for (keys, record) in each {
            take_back.push(TxnOp::delete(keys.place(attempt.grant_id()), None));
            take_back.push(TxnOp::txn(
                Txn::new()
                    .when([Compare::value(keys.held(), CompareOp::Equal, record)])
                    .and_then([TxnOp::delete(keys.held(), None)]),
            ));
        }
        self.txn_unchecked(Txn::new().and_then(take_back))
            .await
            .map(|_| ())
    }
}
