//! What an operator and a test kit may see and do from outside.

use std::time::Duration;

use fence_core::{ClassName, GrantId, Key};

use super::EtcdStore;
use super::layout::{GrantRecord, decode};
use crate::error::StoreError;
use crate::store::SessionId;

/// Who holds a lock, as the store sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The grant.
    pub grant_id: GrantId,
    /// The session that it is attached to.
    pub session: SessionId,
}

/// What a revoke found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Revoked {
    /// The grant held the lock; its session's lease was revoked, and every hold and place of that session with it.
    Revoked,
    /// The grant did not hold the lock. Nothing was changed.
    NotHolder,
}

impl EtcdStore {
    /// Who holds the lock `class` / `key` now, if anybody does.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store does not answer or the lock's record cannot be read.
    pub async fn holder(&self, class: &ClassName, key: &Key) -> Result<Option<Holder>, StoreError> {
        Ok(self.held(class, key).await?.map(|(record, _)| Holder {
            grant_id: record.grant_id,
            session: record.session,
        }))
    }

    /// Ends the lease of the session whose grant `grant_id` holds the lock `class` / `key`: its holds are free at once,
    /// long before its own deadline. The holder learns of it at its next keepalive only, so this is for resources that
    /// refuse stale tokens, and for tests of them.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store did not answer; then the lease may have been revoked.
    pub async fn revoke_grant(
        &self,
        class: &ClassName,
        key: &Key,
        grant_id: &GrantId,
    ) -> Result<Revoked, StoreError> {
        match self.held(class, key).await? {
            Some((record, lease)) if record.grant_id == *grant_id => {
                let revoked = self.revoke_lease(lease).await?;
                Ok(if revoked {
                    Revoked::Revoked
                } else {
                    Revoked::NotHolder
                })
            }
            _ => Ok(Revoked::NotHolder),
        }
    }

    /// The whole seconds that the lease under a grant has left; none when the grant does not hold the lock any more.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store does not answer.
    pub async fn lease_ttl_remaining(
        &self,
        class: &ClassName,
        key: &Key,
        grant_id: &GrantId,
    ) -> Result<Option<Duration>, StoreError> {
        match self.held(class, key).await? {
            Some((record, lease)) if record.grant_id == *grant_id => self.lease_left(lease).await,
            _ => Ok(None),
        }
    }

    /// The version of the etcd member that answers, such as `3.4.23`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store does not answer.
    pub async fn cluster_version(&self) -> Result<String, StoreError> {
        let mut client = self.client_in_turn().await?;
        Ok(self.bounded(client.status()).await?.version().to_owned())
    }

    async fn held(&self, class: &ClassName, key: &Key) -> Result<Option<(GrantRecord, i64)>, StoreError> {
        let read = self.get(self.inner.layout.lock(class, key).held(), None).await?;
        read.kvs()
            .first()
            .map(|kv| Ok((decode(kv.key(), kv.value())?, kv.lease())))
            .transpose()
    }
}
