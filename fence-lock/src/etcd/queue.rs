//! Waiting for one's turn.

use std::time::Duration;

use etcd_client::{
    Compare, CompareOp, EventType, GetOptions, ResponseHeader, SortOrder, SortTarget, Txn, TxnOp,
    TxnOpResponse, WatchOptions,
};

use super::EtcdStore;
use crate::error::{AcquireError, StoreError};
use crate::store::Attempt;

/// How long one watch is trusted. A connection that died without saying so is found out sooner, by a ping for all who wait on
/// it; looking again costs a request for each of them.
const WATCH_FOR: Duration = Duration::from_secs(60);

/// The pause after a read or a watch that failed.
const PAUSE: Duration = Duration::from_millis(100);

enum Ahead {
    /// Nobody, and the lock is free.
    Nothing,
    /// This key must go first; it was there at this revision. Whether it is the last: then it is our turn once it went.
    Key { key: Vec<u8>, at: i64, last: bool },
    /// Our own place is gone, and with it our lease.
    WeAreGone,
}

impl EtcdStore {
    /// Returns when it is this attempt's turn to try. A store that does not answer is asked again: the session ends the
    /// waiting when its deadline comes.
    pub(super) async fn wait_for_turn(&self, attempt: &Attempt, since: i64) -> Result<(), AcquireError> {
        loop {
            match self.ahead(attempt, since).await {
                Ok(Ahead::Nothing) => return Ok(()),
                Ok(Ahead::WeAreGone) => return Err(AcquireError::SessionOver),
                Ok(Ahead::Key { key, at, last }) => {
                    match tokio::time::timeout(WATCH_FOR, self.until_deleted(attempt, key, at + 1)).await {
                        // Whoever came since is behind us.
                        Ok(Ok(true)) if last => return Ok(()),
                        Ok(Err(_)) => tokio::time::sleep(PAUSE).await,
                        Ok(Ok(_)) | Err(_) => {}
                    }
                }
                Err(error @ (StoreError::Refused { .. } | StoreError::Regressed { .. })) => {
                    return Err(error.into());
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Who is ahead: the waiter right before us, so that a hand-over wakes one waiter; without one, the holder. Of several
    /// keys the first that is not free.
    async fn ahead(&self, attempt: &Attempt, since: i64) -> Result<Ahead, StoreError> {
        let (mut places, mut looks) = (Vec::new(), Vec::new());
        for (keys, _) in self.inner.layout.each(attempt) {
            let place = keys.place(attempt.grant_id());
            places.push(Compare::create_revision(place, CompareOp::Equal, since));
            let before_us = GetOptions::new()
                .with_prefix()
                .with_keys_only()
                .with_max_create_revision(since - 1)
                .with_sort(SortTarget::Create, SortOrder::Descend)
                .with_limit(1);
            looks.push(TxnOp::get(keys.queue(), Some(before_us)));
            looks.push(TxnOp::get(keys.held(), Some(GetOptions::new().with_keys_only())));
        }
        let look = Txn::new().when(places).and_then(looks);
        let answer = self.txn(look).await?;
        if !answer.succeeded() {
            return Ok(Ahead::WeAreGone);
        }
        let at = answer.header().map_or(0, ResponseHeader::revision);
        let found = answer
            .op_responses()
            .into_iter()
            .find_map(|response| match response {
                TxnOpResponse::Get(read) => read.kvs().first().map(|kv| kv.key().to_vec()),
                _ => None,
            });
        Ok(found.map_or(Ahead::Nothing, |key| {
            let lock = self.inner.layout.lock(attempt.class(), attempt.keys().first());
            let last = attempt.keys().count() == 1 && key == lock.held().as_bytes();
            Ahead::Key { key, at, last }
        }))
    }

    /// Watches a key from a revision on until it is deleted, or this attempt's own place is, or the watch ends. A lease takes all
    /// of its places at once, so one of them tells. Whether something was deleted.
    async fn until_deleted(&self, attempt: &Attempt, key: Vec<u8>, from: i64) -> Result<bool, StoreError> {
        let lock = self.inner.layout.lock(attempt.class(), attempt.keys().first());
        let place = lock.place(attempt.grant_id());
        let mut client = self.client_in_turn().await?;
        let options = WatchOptions::new().with_start_revision(from);
        let mut watch = client
            .watch(key, Some(options.clone()))
            .await
            .map_err(|error| self.sort(error))?;
        watch
            .watch(place, Some(options))
            .await
            .map_err(|error| self.sort(error))?;
        while let Some(answer) = watch.message().await.map_err(|error| self.sort(error))? {
            let gone = answer
                .events()
                .iter()
                .any(|event| event.event_type() == EventType::Delete);
            if gone || answer.canceled() {
                return Ok(gone);
            }
        }
        Ok(false)
    }
}
