//! What scenarios have in common, by name.

use std::fmt;
use std::str::FromStr;

use super::ScenarioId;

/// What some scenarios have in common. It follows from what they do, so that a new one has its tags from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// It tests kit and guard against false alarms, and has no twin.
    Control,
    /// It has a twin that must corrupt.
    Pair,
    /// The class's own time to live runs out, or is outlived.
    Ttl,
    /// Leases are ended by revoke, or not at all: it takes no longer than its work.
    Revoke,
    /// It is about the mark guard.
    Mark,
    /// The holder writes through the resource's front door.
    Front,
    /// Its time is spent waiting for bounds to pass.
    Waits,
}

impl Tag {
    /// Every tag.
    pub const ALL: &'static [Tag] = &[
        Tag::Control,
        Tag::Pair,
        Tag::Ttl,
        Tag::Revoke,
        Tag::Mark,
        Tag::Front,
        Tag::Waits,
    ];

    /// Whether this scenario bears it.
    pub fn is_on(self, scenario: ScenarioId) -> bool {
        match self {
            Tag::Control => scenario.is_control(),
            Tag::Pair => !scenario.is_control(),
            Tag::Ttl => scenario.needs_real_ttl(),
            Tag::Revoke => !scenario.needs_real_ttl(),
            Tag::Mark => scenario.needs_mark(),
            Tag::Front => scenario.needs_front(),
            Tag::Waits => scenario.mostly_waits(),
        }
    }

    /// The name, such as `revoke`.
    pub fn as_str(self) -> &'static str {
        match self {
            Tag::Control => "control",
            Tag::Pair => "pair",
            Tag::Ttl => "ttl",
            Tag::Revoke => "revoke",
            Tag::Mark => "mark",
            Tag::Front => "front",
            Tag::Waits => "waits",
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that names no tag. Use one of those listed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no tag is called {word:?}; there are {}", Tag::ALL.iter().map(|tag| tag.as_str()).collect::<Vec<_>>().join(", "))]
pub struct UnknownTag {
    /// The word, cut at 40 characters.
    pub word: String,
}

impl FromStr for Tag {
    type Err = UnknownTag;

    fn from_str(word: &str) -> Result<Tag, UnknownTag> {
        let mut all = Tag::ALL.iter().copied();
        all.find(|tag| tag.as_str() == word).ok_or_else(|| UnknownTag {
            word: word.chars().take(40).collect(),
        })
    }
}
