//! What the suite needs of a store's surroundings.

use std::sync::Arc;

use fence_core::{ClassName, GrantId, Key};
use futures_util::future::BoxFuture;

use crate::store::LockStore;

/// A store cannot be set up, looked into or disturbed: the case that needed it has not been played.
pub type BenchError = Box<dyn std::error::Error + Send + Sync>;

/// Makes places to play in.
pub trait Bench: Send + Sync {
    /// A place of its own: initialised, nothing held, nobody waiting, reached by nothing else.
    fn place(&self) -> BoxFuture<'_, Result<Box<dyn Place>, BenchError>>;

    /// How many cases may be played at the same time, at least 1. Each has some ten clients at most.
    fn at_once(&self) -> usize {
        usize::MAX
    }
}

/// One store, set up for one case.
pub trait Place: Send + Sync {
    /// A client such as another process would have, with connections of its own.
    fn client(&self) -> BoxFuture<'_, Result<Arc<dyn LockStore>, BenchError>>;

    /// A client behind a path that can be disturbed.
    fn wire(&self) -> BoxFuture<'_, Result<Box<dyn Wire>, BenchError>>;

    /// The grant that holds `class` / `key` now, as the store itself says; none when its lease is gone.
    fn holder<'a>(
        &'a self,
        class: &'a ClassName,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<GrantId>, BenchError>>;

    /// How many attempts wait for `class` / `key` now, as the store itself says.
    fn waiters<'a>(&'a self, class: &'a ClassName, key: &'a Key) -> BoxFuture<'a, Result<usize, BenchError>>;
}

/// The path between one client and the store.
///
/// Connections that are open when something is held are held; those opened afterwards pass. Leases of a held client are not
/// renewed, so the suite gives them a long TTL.
pub trait Wire: Send + Sync {
    /// The client that the path leads to the store.
    fn client(&self) -> Arc<dyn LockStore>;

    /// Holds every request of the open connections on its way.
    fn hold_requests(&self);

    /// Waits until a whole request lies held.
    fn holds_a_request(&self) -> BoxFuture<'_, Result<(), BenchError>>;

    /// Holds every answer to the open connections on its way.
    fn hold_answers(&self);

    /// Waits until a whole answer lies held.
    fn holds_an_answer(&self) -> BoxFuture<'_, Result<(), BenchError>>;

    /// The client loses its open connections; the store does not notice yet. What was held may still get there.
    fn cut(&self);

    /// Everything that is held goes on, and nothing is held any more. Waits until the store has dealt with the requests.
    fn let_go(&self) -> BoxFuture<'_, Result<(), BenchError>>;
}
