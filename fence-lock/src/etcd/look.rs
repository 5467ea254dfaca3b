//! Who holds and who waits, in one read.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use etcd_client::{GetOptions, KeyValue};
use fence_core::{ClassName, Key, Revision, Token};

use super::EtcdStore;
use super::layout::{GrantRecord, LockKeyKind, decode};
use crate::error::{AcquireError, StoreError};
use crate::look::{HeldBy, LockState, Waiting};

/// What is known of one lock, its waiters by the revision at which they queued.
#[derive(Default)]
struct Found {
    held: Option<HeldBy>,
    waiting: BTreeMap<i64, Waiting>,
}

impl EtcdStore {
    /// Every lock that is held or waited for, in the order of class and key.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] when the store does not answer, holds a record that cannot be read, or has no epoch in force, without
    /// which there are no tokens.
    pub async fn locks(&self) -> Result<Vec<LockState>, AcquireError> {
        let in_force = self.read_in_force().await?;
        let all = GetOptions::new().with_prefix();
        let read = self.get(self.inner.layout.locks(), Some(all)).await?;
        let mut found: BTreeMap<(ClassName, Key), Found> = BTreeMap::new();
        for kv in read.kvs() {
            let kind = self.inner.layout.kind(kv.key());
            if !matches!(kind, LockKeyKind::Held | LockKeyKind::Queued) {
                continue;
            }
            let record: GrantRecord = decode(kv.key(), kv.value())?;
            let since = record.at_ms.map(|at| UNIX_EPOCH + Duration::from_millis(at));
            let lock = found.entry((record.class, record.key)).or_default();
            let (grant_id, session) = (record.grant_id, record.session);
            if kind == LockKeyKind::Held {
                let token = Token::mint(in_force.record.epoch, revision_of(kv)?);
                lock.held = Some(HeldBy {
                    token,
                    grant_id,
                    session,
                    since,
                });
            } else {
                let waiting = Waiting {
                    grant_id,
                    session,
                    since,
                };
                lock.waiting.insert(kv.create_revision(), waiting);
            }
        }
        let state = |((class, key), found): (_, Found)| LockState {
            class,
            key,
            held: found.held,
            waiting: found.waiting.into_values().collect(),
        };
        Ok(found.into_iter().map(state).collect())
    }
}

/// The revision that a grant was minted at. (A grant of an earlier epoch shows the present one here.)
fn revision_of(kv: &KeyValue) -> Result<Revision, StoreError> {
    let revision = u64::try_from(kv.create_revision()).unwrap_or(0);
    Revision::new(revision).map_err(|source| StoreError::Foreign {
        key: String::from_utf8_lossy(kv.key()).into_owned(),
        source: Box::new(source),
    })
}
