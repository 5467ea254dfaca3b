//! A live grant of several keys.

use fence_core::{Claim, ClassName, GrantId, Phase, Token};
use tokio_util::sync::CancellationToken;

use crate::error::StoreError;
use crate::hold::{Hold, NotHeld};
use crate::keys::Keys;
use crate::store::Release;

/// A live grant of several keys of one class, taken in one step: all end together. Each key's resource is shown the same token
/// and grant id with the claim of its key.
///
/// What is said of [`Hold`] holds here too, of dropping in particular.
#[derive(Debug)]
#[must_use = "a hold that is dropped keeps its locks for one full TTL"]
pub struct HoldAll {
    hold: Hold,
}

impl HoldAll {
    pub(crate) fn new(hold: Hold) -> HoldAll {
        HoldAll { hold }
    }

    /// The token, for work that starts now.
    ///
    /// # Errors
    ///
    /// [`NotHeld`] after a keepalive failed, and for good after the deadline.
    pub fn token(&self) -> Result<Token, NotHeld> {
        self.hold.token()
    }

    /// What requests of work that starts now present: one claim for each key, in the order of the keys.
    ///
    /// # Errors
    ///
    /// [`NotHeld`], as for [`HoldAll::token`].
    pub fn claims(&self) -> Result<Vec<Claim>, NotHeld> {
        let first = self.hold.claim()?;
        let of = |key: &fence_core::Key| Claim {
            key: key.clone(),
            ..first.clone()
        };
        Ok(self.keys().iter().map(of).collect())
    }

    /// The class of the locks.
    pub fn class(&self) -> &ClassName {
        self.hold.class()
    }

    /// The keys of the locks.
    pub fn keys(&self) -> &Keys {
        self.hold.attempt().keys()
    }

    /// The id of this grant.
    pub fn grant_id(&self) -> &GrantId {
        self.hold.grant_id()
    }

    /// Where the hold stands now. Advice, never permission, as for [`Hold::phase`].
    pub fn phase(&self) -> Phase {
        self.hold.phase()
    }

    /// Resolves when a keepalive has failed, or the hold is over, as for [`Hold::draining`].
    pub fn draining(&self) -> impl Future<Output = ()> + Send + use<> {
        self.hold.draining()
    }

    /// The session's draining as a token, as for [`Hold::draining_token`].
    pub fn draining_token(&self) -> CancellationToken {
        self.hold.draining_token()
    }

    /// Resolves when the hold is over: fenced, overlong, or released.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        self.hold.lost()
    }

    /// [`HoldAll::lost`] as a token. Cancelling it ends nothing.
    pub fn lost_token(&self) -> CancellationToken {
        self.hold.lost_token()
    }

    /// Runs `work` while the hold lasts, and drops it at its next await once the hold is over.
    ///
    /// # Errors
    ///
    /// [`NotHeld`], as for [`Hold::run`].
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, NotHeld> {
        self.hold.run(work).await
    }

    /// Frees every lock that this grant still holds; later grants are never touched. Await the work under the hold first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store did not answer, as for [`Hold::release`].
    pub async fn release(self) -> Result<Release, StoreError> {
        self.hold.release().await
    }
}
