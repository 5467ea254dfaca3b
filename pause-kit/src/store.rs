//! What the kit asks of a lock store: who was granted what, whose lease ended, and to end one.
//!
//! The kit knows no lock store. Whoever runs it fills these traits in.

use std::error::Error;

use fence_core::{ClassName, GrantId, Key, TierName, Token};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

/// Opens the lock stores of a run.
pub trait Stores: Send + Sync {
    /// The store of `tier` at `endpoint`, such as `http://127.0.0.1:2379`, under a key prefix that no other half uses.
    fn open<'a>(
        &'a self,
        tier: &'a TierName,
        endpoint: &'a str,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Box<dyn Store>, StoreError>>;
}

/// One lock store, as an operator sees it.
pub trait Store: Send + Sync {
    /// Everything that is granted or ends from now on, in the store's order, from its own record alone. Once this has
    /// returned, nothing is missed.
    fn watch(&self) -> BoxFuture<'_, Result<StoreEvents, StoreError>>;

    /// Ends the lease under this grant, as an operator would, and says whether this grant held the lock.
    fn revoke<'a>(
        &'a self,
        class: &'a ClassName,
        key: &'a Key,
        grant: &'a GrantId,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// The events of a store. It ends only with the store, or with an error.
pub type StoreEvents = BoxStream<'static, Result<StoreEvent, StoreError>>;

/// Something that a store did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreEvent {
    /// It granted a lock.
    Granted {
        /// The class.
        class: ClassName,
        /// The key.
        key: Key,
        /// The token.
        token: Token,
        /// The grant id.
        grant: GrantId,
    },
    /// A grant ended.
    Ended {
        /// The grant id.
        grant: GrantId,
        /// Whether its holder released it. Otherwise its lease expired or was revoked.
        released: bool,
    },
}

/// The store could not be asked. Look at its log; the run cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("the lock store could not be asked")]
pub struct StoreError(#[source] pub Box<dyn Error + Send + Sync>);
