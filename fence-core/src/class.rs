//! What a class of locks is for, and what enforces it.

use serde::{Deserialize, Serialize};

use crate::deadline::Ttl;
use crate::name::TierName;

/// What happens when two holders act at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// A double holder corrupts.
    Correctness,
    /// A double holder only wastes work.
    Efficiency,
}

/// What stands between a late holder and the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Enforcement {
    /// The resource refuses stale tokens in the same atomic step as the write.
    Fenced,
    /// Nothing does.
    Advisory,
}

/// A class of locks, as `fence.toml` declares it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// What a double holder does.
    pub purpose: Purpose,
    /// What refuses a stale holder.
    pub enforcement: Enforcement,
    /// The tier whose lock store grants this class.
    pub tier: TierName,
    /// How long a grant lives without renewal.
    #[serde(default)]
    pub ttl: Ttl,
}
