//! Witnesses: what remembers a lock store from outside, so that its losses are seen.

use std::error::Error;

use fence_core::{Epoch, TierName};
use futures_util::future::BoxFuture;

use crate::memory::StoreMemory;

/// Something outside every lock store that remembers which epochs it has registered, and how it last saw each tier's store:
/// a database that the guards stand in.
///
/// Epoch numbers are one sequence over all tiers. A witness that was itself restored may have forgotten the newest, and then
/// must answer with an error until an operator has looked at it.
pub trait Witness: Send + Sync {
    /// Its name in messages, without a password.
    fn name(&self) -> String;

    /// Every epoch that it has registered, with its tier.
    fn known(&self) -> BoxFuture<'_, Result<Vec<(TierName, Epoch)>, WitnessError>>;

    /// Registers an epoch, in one step that no other registration comes between: it is [`Claim::Taken`] when another tier
    /// has this epoch or a higher one, unless this tier has this very epoch already.
    fn register<'a>(&'a self, tier: &'a TierName, epoch: Epoch)
    -> BoxFuture<'a, Result<Claim, WitnessError>>;

    /// How it last saw the store of a tier.
    fn memory<'a>(&'a self, tier: &'a TierName) -> BoxFuture<'a, Result<Option<StoreMemory>, WitnessError>>;

    /// Remembers how the store is now, if the memory is still `before`; `false` when somebody else changed it meanwhile.
    fn remember<'a>(
        &'a self,
        tier: &'a TierName,
        before: Option<&'a StoreMemory>,
        now: &'a StoreMemory,
    ) -> BoxFuture<'a, Result<bool, WitnessError>>;
}

/// What a registration found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Claim {
    /// The epoch is registered for the tier, now or since before.
    Registered,
    /// Another tier is at this epoch or beyond. Take a higher one.
    Taken,
}

/// A witness that gave no answer to rely on. Mend it, or leave it out and say `--at-least`.
#[derive(Debug, thiserror::Error)]
#[error("witness {witness} gave no answer to rely on")]
pub struct WitnessError {
    /// The witness's name.
    pub witness: String,
    /// Why.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}
