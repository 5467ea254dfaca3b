//! From the check at the door to the write: a store that opens a transaction for a claim, and in no other way.

use std::fmt;

use fence_core::Claim;
use http::Extensions;

use crate::guard::{NoClaim, claim};

/// A store whose guarded transactions begin with a claim, such as a pool of connections to a database that fence-pg guards.
///
/// Implement it for a type of the service's own that keeps the pool to itself. Then a handler that was given a [`Fenced`]
/// store, and nothing else, can write in no way but through the claim of its request.
pub trait GuardedStore {
    /// A transaction that has admitted its claim, or will before it writes.
    type Transaction;
    /// Why there is none.
    type Error;

    /// Opens a transaction for the claim.
    fn open(&self, claim: &Claim) -> impl Future<Output = Result<Self::Transaction, Self::Error>> + Send;
}

/// A store and the claim of one request: what a handler of a guarded route is given.
///
/// ```
/// use std::sync::Arc;
///
/// use fence_core::{Claim, Decision, Effect, Mark, Presented, Ranges, Receipt, Refusal, admit};
/// use fence_http::{Fenced, GuardedStore};
/// use tokio::sync::{Mutex, OwnedMutexGuard};
///
/// /// A balance, and its mark, behind one lock.
/// #[derive(Clone, Default)]
/// struct Ledger(Arc<Mutex<(Option<Mark>, i64)>>);
///
/// impl GuardedStore for Ledger {
///     type Transaction = OwnedMutexGuard<(Option<Mark>, i64)>;
///     type Error = Refusal;
///
///     async fn open(&self, claim: &Claim) -> Result<Self::Transaction, Refusal> {
///         let mut ledger = Arc::clone(&self.0).lock_owned().await;
///         let presented = Presented::Token(claim.token, claim.grant_id.clone());
///         match admit(ledger.0.as_ref(), &Ranges::Open, &presented) {
///             Decision::Admit => {}
///             Decision::Raise(mark) => ledger.0 = Some(mark),
///             Decision::Refuse(refusal) => return Err(refusal),
///         }
///         Ok(ledger)
///     }
/// }
///
/// async fn pay(ledger: Fenced<Ledger>) -> Result<Receipt, Refusal> {
///     ledger.open().await?.1 -= 1; // a stale claim ends before this
///     Ok(Receipt::danger_assume(ledger.claim().clone(), Effect::Applied))
/// }
/// ```
///
/// paydb does the same over fence-pg, whose `open` and `begin` take a claim and alone make receipts of what is committed.
///
/// In axum (feature `axum`) it is an extractor; in any other tower service, [`Fenced::from_extensions`].
#[derive(Clone)]
pub struct Fenced<S> {
    store: S,
    claim: Claim,
}

impl<S: GuardedStore> Fenced<S> {
    /// Joins a store to the claim that the layer left in a request's extensions.
    ///
    /// # Errors
    ///
    /// [`NoClaim`] when no layer left one.
    pub fn from_extensions(extensions: &Extensions, store: S) -> Result<Fenced<S>, NoClaim> {
        let claim = claim(extensions)?;
        Ok(Fenced { store, claim })
    }

    /// The claim.
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// The store, for what else it offers to whoever has a claim.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Opens a transaction for the claim.
    ///
    /// # Errors
    ///
    /// The store's own: a refusal, or what kept it from deciding.
    pub async fn open(&self) -> Result<S::Transaction, S::Error> {
        self.store.open(&self.claim).await
    }
}

impl<S> fmt::Debug for Fenced<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fenced")
            .field("claim", &self.claim)
            .finish_non_exhaustive()
    }
}
