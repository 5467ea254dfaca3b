//! The scenarios by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A scenario of the kit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScenarioId {
    /// A holder stopped before its send, past its real TTL.
    S01,
    /// A holder stopped before its send, its lease ended by revoke.
    S02,
    /// The resource stopped with the dead holder's write in its socket.
    S05,
    /// A request held on its way after its first bytes.
    S07,
    /// A holder stopped idle in its own database transaction.
    S26,
}

impl ScenarioId {
    /// Every scenario, in order.
    pub const ALL: [ScenarioId; 5] = [
        ScenarioId::S01,
        ScenarioId::S02,
        ScenarioId::S05,
        ScenarioId::S07,
        ScenarioId::S26,
    ];

    /// The name, such as `S01`.
    pub fn as_str(self) -> &'static str {
        match self {
            ScenarioId::S01 => "S01",
            ScenarioId::S02 => "S02",
            ScenarioId::S05 => "S05",
            ScenarioId::S07 => "S07",
            ScenarioId::S26 => "S26",
        }
    }

    /// What is done to the holder, in a few words.
    pub fn summary(self) -> &'static str {
        match self {
            ScenarioId::S01 => "holder stopped before its send, past its TTL",
            ScenarioId::S02 => "holder stopped before its send, lease revoked",
            ScenarioId::S05 => "resource stopped, the dead holder's write in its socket",
            ScenarioId::S07 => "request held on its way after its first bytes",
            ScenarioId::S26 => "holder stopped idle in its transaction",
        }
    }

    /// Whether the kit ends the first holder's lease by revoke, so that its real TTL need not pass.
    pub fn revokes(self) -> bool {
        self != ScenarioId::S01
    }

    /// Whether its time is spent waiting for bounds to pass: its two halves, which share nothing but the servers, then run
    /// side by side.
    pub fn mostly_waits(self) -> bool {
        self == ScenarioId::S26
    }

    /// Whether the holder writes through the resource's front door; otherwise it writes to the database itself.
    pub fn needs_front(self) -> bool {
        self != ScenarioId::S26
    }
}

impl fmt::Display for ScenarioId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that names no scenario. Use one of those listed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no scenario is called {word:?}; there are S01, S02, S05, S07, S26")]
pub struct UnknownScenario {
    /// The word, cut at 40 characters.
    pub word: String,
}

impl FromStr for ScenarioId {
    type Err = UnknownScenario;

    fn from_str(word: &str) -> Result<ScenarioId, UnknownScenario> {
        ScenarioId::ALL
            .into_iter()
            .find(|id| id.as_str() == word)
            .ok_or_else(|| UnknownScenario {
                word: word.chars().take(40).collect(),
            })
    }
}

impl Serialize for ScenarioId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ScenarioId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<ScenarioId, D::Error> {
        let word = String::deserialize(deserializer)?;
        word.parse().map_err(serde::de::Error::custom)
    }
}
