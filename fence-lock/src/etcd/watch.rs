//! Grants and their ends, taken from the revision stream alone.

use std::collections::VecDeque;
use std::time::Duration;

use etcd_client::{Event, EventType, KeyValue, ResponseHeader, WatchOptions, WatchStream};
use fence_core::{ClassName, Epoch, GrantId, Key, Revision, Token};

use super::EtcdStore;
use super::audit::AuditEvent;
use super::layout::{EpochRecord, GrantRecord, LockKeyKind, ReleaseRecord, decode};
use super::present::SealedRecord;
use crate::error::StoreError;
use crate::store::SessionId;

/// The pause before a watch that was lost is opened again.
const PAUSE: Duration = Duration::from_millis(100);

/// One change in who holds what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantEvent {
    /// A lock was granted.
    Granted {
        /// The class of the lock.
        class: ClassName,
        /// The key of the lock.
        key: Key,
        /// The token, from the epoch in force at that revision and the revision itself.
        token: Token,
        /// The grant.
        grant_id: GrantId,
        /// The session that it is attached to.
        session: SessionId,
        /// The store's revision of the grant.
        at: Revision,
    },
    /// A grant was released by its holder.
    Released {
        /// The class of the lock.
        class: ClassName,
        /// The key of the lock.
        key: Key,
        /// The grant.
        grant_id: GrantId,
        /// The store's revision of the release.
        at: Revision,
    },
    /// A grant is gone without a release: its lease expired or was revoked (which of the two cannot be told apart), its key
    /// was deleted, or the acquisition was given up.
    Gone {
        /// The class of the lock.
        class: ClassName,
        /// The key of the lock.
        key: Key,
        /// The grant.
        grant_id: GrantId,
        /// The store's revision of the loss.
        at: Revision,
    },
}

/// The watch cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The store has no epoch record, so grants have no tokens. Initialise it first.
    #[error("the lock store has no epoch record")]
    NotInitialised,
    /// The store has compacted revisions that were not read yet. Watch anew, and count what was between as unknown.
    #[error("the lock store has compacted its revisions up to {compacted}")]
    Compacted {
        /// Up to which revision.
        compacted: i64,
    },
    /// A record under the prefix cannot be read, or a revision fits no token. Nothing after it is told.
    #[error("the revision stream holds something unreadable")]
    Unreadable(#[source] StoreError),
    /// The store did not answer, or refused the watch.
    #[error("the lock store cannot be watched")]
    Store(#[source] StoreError),
}

impl From<StoreError> for WatchError {
    fn from(error: StoreError) -> WatchError {
        match error {
            error @ StoreError::Foreign { .. } => WatchError::Unreadable(error),
            error => WatchError::Store(error),
        }
    }
}

/// A grant that stands at the key of another lock: whoever made it excludes nobody.
#[derive(Debug, thiserror::Error)]
#[error("the grant in it is of a lock whose key is {right:?}")]
struct Misplaced {
    right: String,
}

/// The stream of grant events of one store, in revision order. See [`EtcdStore::watch_grants`].
pub struct GrantWatch {
    store: EtcdStore,
    stream: Option<WatchStream>,
    pub(super) next: i64,
    epoch: Option<Epoch>,
    /// Why the store was sealed at the revision at hand.
    sealed: Option<(i64, String)>,
    /// The grant that a release record of the revision at hand names.
    released: Option<(i64, GrantId)>,
    pub(super) ready: VecDeque<AuditEvent>,
}

impl EtcdStore {
    /// Watches grants from now on: every change after this call returns is told, in order, once. A connection that is lost
    /// is taken up again where it was.
    ///
    /// # Errors
    ///
    /// [`WatchError`] when the store is not initialised or does not answer.
    pub async fn watch_grants(&self) -> Result<GrantWatch, WatchError> {
        let read = self.get_unchecked(self.inner.layout.epoch(), None).await?;
        let kv = read.kvs().first().ok_or(WatchError::NotInitialised)?;
        let record: EpochRecord = decode(kv.key(), kv.value())?;
        let next = read.header().map_or(0, ResponseHeader::revision) + 1;
        GrantWatch::open_at(self, next, Some(record.epoch)).await
    }
}

impl GrantWatch {
    pub(super) async fn open_at(
        store: &EtcdStore,
        next: i64,
        epoch: Option<Epoch>,
    ) -> Result<GrantWatch, WatchError> {
        let mut watch = GrantWatch {
            store: store.clone(),
            stream: None,
            next,
            epoch,
            sealed: None,
            released: None,
            ready: VecDeque::new(),
        };
        watch.open().await?;
        Ok(watch)
    }

    /// The next event. Dropping the future loses none.
    ///
    /// # Errors
    ///
    /// [`WatchError`] when the stream cannot be continued without a gap. While the store cannot be reached this waits.
    pub async fn next(&mut self) -> Result<GrantEvent, WatchError> {
        loop {
            if let AuditEvent::Grant(event) = self.next_audited().await? {
                return Ok(event);
            }
        }
    }

    /// Waits until there is something more, or nothing for this watch.
    pub(super) async fn fill(&mut self) -> Result<(), WatchError> {
        loop {
            let Some(stream) = &mut self.stream else {
                if self.open().await.is_err() {
                    tokio::time::sleep(PAUSE).await;
                }
                continue;
            };
            let answer = match stream.message().await {
                Ok(Some(answer)) => answer,
                Ok(None) | Err(_) => {
                    self.stream = None;
                    continue;
                }
            };
            if answer.compact_revision() > 0 {
                return Err(WatchError::Compacted {
                    compacted: answer.compact_revision(),
                });
            }
            if answer.canceled() {
                self.stream = None;
            }
            for event in answer.events() {
                self.take(event)?;
            }
            return Ok(());
        }
    }

    async fn open(&mut self) -> Result<(), StoreError> {
        let store = self.store.clone();
        let mut client = store.client_in_turn().await?;
        let options = WatchOptions::new()
            .with_prefix()
            .with_prev_key()
            .with_start_revision(self.next);
        let open = client.watch(store.inner.layout.everything(), Some(options));
        self.stream = Some(store.bounded(open).await?);
        Ok(())
    }

    fn take(&mut self, event: &Event) -> Result<(), WatchError> {
        let Some(kv) = event.kv() else { return Ok(()) };
        let revision = kv.mod_revision();
        let layout = &self.store.inner.layout;
        match (event.event_type(), layout.kind(kv.key())) {
            (EventType::Put, _) if kv.key() == layout.epoch().as_bytes() => {
                let record: EpochRecord = decode(kv.key(), kv.value())?;
                self.epoch = Some(record.epoch);
                let at = revision_of(kv.key(), revision)?;
                self.ready.push_back(AuditEvent::EpochBegan { record, at });
            }
            (EventType::Put, _) if kv.key() == layout.sealed().as_bytes() => {
                let sealed: SealedRecord = decode(kv.key(), kv.value())?;
                self.sealed = Some((revision, sealed.why));
            }
            (EventType::Delete, _) if kv.key() == layout.epoch().as_bytes() => {
                // A seal puts its record before it deletes the epoch's, in one revision.
                let sealed = self.sealed.take().filter(|(put_at, _)| *put_at == revision);
                let why = sealed.map(|(_, why)| why);
                let at = revision_of(kv.key(), revision)?;
                if let Some(epoch) = self.epoch.take() {
                    self.ready.push_back(AuditEvent::Closed { epoch, why, at });
                }
            }
            (EventType::Put, LockKeyKind::Released) => {
                let record: ReleaseRecord = decode(kv.key(), kv.value())?;
                self.released = Some((revision, record.grant_id));
            }
            (EventType::Put, LockKeyKind::Held) => {
                let event = self.granted(kv)?;
                self.ready.push_back(AuditEvent::Grant(event));
            }
            (EventType::Delete, LockKeyKind::Held) => {
                if let Some(before) = event.prev_kv() {
                    let event = self.ended(before, revision)?;
                    self.ready.push_back(AuditEvent::Grant(event));
                }
            }
            _ => {}
        }
        self.next = self.next.max(revision + 1);
        Ok(())
    }

    fn granted(&self, kv: &KeyValue) -> Result<GrantEvent, WatchError> {
        let epoch = self.epoch.ok_or(WatchError::NotInitialised)?;
        let record: GrantRecord = decode(kv.key(), kv.value())?;
        let at = revision_of(kv.key(), kv.create_revision())?;
        let right = self.store.inner.layout.lock(&record.class, &record.key).held();
        if kv.key() != right.as_bytes() {
            let source = Misplaced { right };
            return Err(WatchError::Unreadable(StoreError::Foreign {
                key: String::from_utf8_lossy(kv.key()).into_owned(),
                source: Box::new(source),
            }));
        }
        Ok(GrantEvent::Granted {
            class: record.class,
            key: record.key,
            token: Token::mint(epoch, at),
            grant_id: record.grant_id,
            session: record.session,
            at,
        })
    }

    fn ended(&self, before: &KeyValue, revision: i64) -> Result<GrantEvent, StoreError> {
        let GrantRecord {
            class, key, grant_id, ..
        } = decode(before.key(), before.value())?;
        let at = revision_of(before.key(), revision)?;
        // A release puts its record before it deletes, in one revision.
        let released = self
            .released
            .as_ref()
            .is_some_and(|(put_at, by)| *put_at == revision && *by == grant_id);
        Ok(if released {
            GrantEvent::Released {
                class,
                key,
                grant_id,
                at,
            }
        } else {
            GrantEvent::Gone {
                class,
                key,
                grant_id,
                at,
            }
        })
    }
}

impl std::fmt::Debug for GrantWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrantWatch")
            .field("store", &self.store)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

pub(super) fn revision_of(key: &[u8], number: i64) -> Result<Revision, StoreError> {
    Revision::new(u64::try_from(number).unwrap_or(0)).map_err(|source| StoreError::Foreign {
        key: String::from_utf8_lossy(key).into_owned(),
        source: Box::new(source),
    })
}
