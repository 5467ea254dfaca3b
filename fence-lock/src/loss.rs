//! What shows that a store lost history.

use fence_core::Epoch;

/// Evidence that a store is not in the history that somebody saw it in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// A later epoch was in force before: the store came back from before an advance.
    #[error("epoch {seen} was in force before, and epoch {found} is now")]
    Epoch {
        /// The epoch that was seen.
        seen: Epoch,
        /// The epoch of the record now.
        found: Epoch,
    },
    /// The lineage had more links: the store came back from an earlier state.
    #[error("its lineage had {seen} links, and has {found} now")]
    Generation {
        /// How many there were.
        seen: u64,
        /// How many there are.
        found: u64,
    },
    /// The lineage has another link where one was seen: the store came back from an earlier state and went on from there.
    #[error("its lineage has another link {generation} than before")]
    Link {
        /// The link's number.
        generation: u64,
    },
    /// The lineage that was seen is gone.
    #[error("its lineage of {seen} links is gone")]
    Lineage {
        /// How many links it had.
        seen: u64,
    },
    /// The raft index is less far ahead of the revision than it was, which no unbroken history does: a snapshot was restored.
    #[error("its raft index was at least {seen} ahead of its revision, and is {found} at most")]
    Slack {
        /// The lower bound that was recorded.
        seen: i64,
        /// The upper bound now.
        found: i64,
    },
    /// The store was at a later revision: it came back from an earlier state.
    #[error("it was at revision {seen} before, and is at {found} now")]
    Revision {
        /// The highest revision that was seen.
        seen: u64,
        /// The revision of the store's log now.
        found: u64,
    },
    /// The state that was seen at a revision is not in the store's past.
    #[error("at revision {revision} its lineage was not what it had been seen to be")]
    Past {
        /// The revision.
        revision: i64,
    },
}
