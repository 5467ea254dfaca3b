//! What reads showed, and what stood there at the end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::observed::{At, TokenNumber};

/// What a read showed of one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// Who read, such as `H2` or `kit`.
    pub by: String,
    /// The class.
    pub class: String,
    /// The key.
    pub key: String,
    /// When its first byte was sent.
    pub began: At,
    /// The ids of the writes that it showed.
    pub ids: Vec<String>,
    /// Balances that the same snapshot showed, in minor units.
    pub balances: BTreeMap<String, i64>,
}

/// The state of a mark as it was read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The class.
    pub class: String,
    /// The key.
    pub key: String,
    /// The mark.
    pub token: TokenNumber,
}

/// Everything read back at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Final {
    /// Every id of every key that the resource holds. Under the column guard, each row's last writer.
    pub ids: Vec<String>,
    /// Every account's balance, in minor units.
    pub balances: BTreeMap<String, i64>,
    /// Every mark; under the column guard, each row's token.
    pub marks: Vec<Mark>,
}
