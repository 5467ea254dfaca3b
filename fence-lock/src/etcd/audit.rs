//! Everything that an audit must tell apart, taken from the revision stream alone.

use etcd_client::{GetOptions, ResponseHeader};
use fence_core::{Epoch, Revision};

use super::EtcdStore;
use super::layout::{EpochRecord, decode};
use super::watch::{GrantEvent, GrantWatch, WatchError};

/// One thing that happened in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditEvent {
    /// A grant, a release, or a loss.
    Grant(GrantEvent),
    /// An epoch came into force: the first, or by an advance.
    EpochBegan {
        /// Its record.
        record: EpochRecord,
        /// The store's revision of it.
        at: Revision,
    },
    /// The epoch record went out of force: the store was sealed, and grants nothing from here on.
    Closed {
        /// The epoch that was in force.
        epoch: Epoch,
        /// What showed that history was lost; none when the record was deleted otherwise.
        why: Option<String>,
        /// The store's revision of it.
        at: Revision,
    },
}

impl EtcdStore {
    /// Watches everything from a revision on: that and every later one, in order, each event once. Read from one revision
    /// twice, it tells the same twice, as long as the store has not compacted it.
    ///
    /// # Errors
    ///
    /// [`WatchError`] when the store does not answer, or has compacted the revision before that one.
    pub async fn audit_from(&self, from: Revision) -> Result<GrantWatch, WatchError> {
        let next = i64::try_from(from.as_u64()).unwrap_or(i64::MAX);
        let mut epoch = None;
        // Revision 0 would mean the newest one, and before revision 2 there is nothing.
        if next > 1 {
            let before = GetOptions::new().with_revision(next - 1);
            let read = self
                .get_unchecked(self.inner.layout.epoch(), Some(before))
                .await?;
            if let Some(kv) = read.kvs().first() {
                epoch = Some(decode::<EpochRecord>(kv.key(), kv.value())?.epoch);
            }
        }
        GrantWatch::open_at(self, next, epoch).await
    }

    /// The store's newest revision.
    ///
    /// # Errors
    ///
    /// [`crate::StoreError`] when the store does not answer.
    pub async fn revision(&self) -> Result<Revision, crate::StoreError> {
        let read = self.get_unchecked(self.inner.layout.epoch(), None).await?;
        let number = read.header().map_or(0, ResponseHeader::revision);
        super::watch::revision_of(self.inner.layout.epoch().as_bytes(), number)
    }
}

impl GrantWatch {
    /// The revision up to which everything has been told: 0 before the first.
    pub fn told_up_to(&self) -> u64 {
        if self.ready.is_empty() {
            u64::try_from(self.next - 1).unwrap_or(0)
        } else {
            0
        }
    }

    /// Waits until more of the stream has been read. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// As of [`GrantWatch::next_audited`].
    pub async fn read_on(&mut self) -> Result<(), WatchError> {
        self.fill().await
    }

    /// The next of what has been read already.
    pub fn ready_audited(&mut self) -> Option<AuditEvent> {
        self.ready.pop_front()
    }

    /// The next thing that happened, epochs among them. Dropping the future loses none.
    ///
    /// # Errors
    ///
    /// [`WatchError`] when the stream cannot be continued without a gap. While the store cannot be reached this waits.
    pub async fn next_audited(&mut self) -> Result<AuditEvent, WatchError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            self.fill().await?;
        }
    }
}
