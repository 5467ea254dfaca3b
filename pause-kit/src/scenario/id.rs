//! The scenarios by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::history::Alteration;
use crate::target::{GateName, Variant};

macro_rules! scenarios {
    ($( $(#[$doc:meta])* $id:ident = $name:literal $summary:literal, )*) => {
        /// A scenario of the kit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ScenarioId {
            $( $(#[$doc])* $id, )*
        }

        impl ScenarioId {
            /// Every scenario, in order.
            pub const ALL: &'static [ScenarioId] = &[$(ScenarioId::$id),*];

            /// The name, such as `S01`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(ScenarioId::$id => $name,)*
                }
            }

            /// What is done to the holder, in a few words.
            pub fn summary(self) -> &'static str {
                match self {
                    $(ScenarioId::$id => $summary,)*
                }
            }
        }
    };
}

scenarios! {
    /// A holder stopped before its send, past its real TTL.
    S01 = "S01" "holder stopped before its send, past its TTL",
    /// A holder stopped before its send, its lease ended by revoke.
    S02 = "S02" "holder stopped before its send, lease revoked",
    /// The legal gap: writes before a successor's first contact, after it, and beside one that was rolled back.
    S03 = "S03" "writes around the next holder's first contact",
    /// A holder stopped between its read and its write.
    S04 = "S04" "holder stopped between its read and its write",
    /// Fence, then read: a successor that reads with the mark raised, and, in the twin, without.
    S04b = "S04b" "old holder writes between the next one's read and write",
    /// The resource stopped with the dead holder's write in its socket.
    S05 = "S05" "resource stopped, the dead holder's write in its socket",
    /// A request held on its way after its first bytes.
    S07 = "S07" "request held on its way after its first bytes",
    /// A byte sweep: late writes, each held after another number of its bytes, up to the last.
    S08 = "S08" "requests held on their way after each number of bytes",
    /// Requests sent again by the path after the takeover: one that had landed, and one that had not.
    S09 = "S09" "requests sent again on their way, one landed before and one not",
    /// A control: only the writing thread is held, past the TTL, and what renews the lease lives.
    S12 = "S12" "control: writing thread held past the TTL, lease kept alive",
    /// A holder's write sent by a process of its own that has left its group; all of them stopped.
    S15 = "S15" "holder stopped with its child, which writes and has left its group",
    /// A control of the kit: a holder that cannot be stopped, so that the run is void.
    S16 = "S16" "control: holder that cannot be stopped, so that the run is void",
    /// Two holders stopped and a third active; the two go on in both orders.
    S17 = "S17" "two holders stopped, a third active, resumed in both orders",
    /// A control: a pause shorter than the TTL.
    S18 = "S18" "control: a pause shorter than the TTL",
    /// A holder killed with its write on disk and started again with its old grant.
    S21 = "S21" "holder killed and started again with its old grant from disk",
    /// The resource stopped after the token has passed its door and before anything is written.
    S24 = "S24" "resource stopped between its check and its write",
    /// The resource stopped while its open transaction holds the mark's row.
    S25 = "S25" "resource stopped while its transaction holds the mark's row",
    /// A control: the backend of an open transaction stopped, which holds the mark's row.
    S25b = "S25b" "control: a database backend stopped that holds the mark's row",
    /// A holder stopped idle in its own database transaction.
    S26 = "S26" "holder stopped idle in its transaction",
    /// A control: writes that are committed and whose answers are lost, before the reply and with the reply in flight.
    S28 = "S28" "control: committed, and the answer lost on its way",
    /// A request whose headers arrive before the takeover and whose body comes after it.
    S29 = "S29" "request held between its headers and its body",
    /// A write that the resource accepts with 202, and that a worker of it makes after the takeover.
    S33 = "S33" "write accepted with 202, made by the resource's worker afterwards",
    /// The resource killed and started again between the takeover and the late write.
    S34 = "S34" "resource killed and started again before the late write",
    /// Two replicas of the resource, of which the successor uses one and the late holder both.
    S35 = "S35" "two replicas of the resource, the late write on each",
    /// A control: a request that was answered comes once more, under the same live grant.
    S37 = "S37" "control: the same request once more, under the same grant",
    /// The successor's token with another grant.
    S39 = "S39" "late write under the next holder's token and its own grant",
    /// A control: tokens that are none, in every form.
    S47 = "S47" "control: what is no token, in every form",
    /// A control: no token, or not all of it, in every form.
    S48 = "S48" "control: no token, or not all of it, in every form",
    /// A control: the COMMIT of a failed transaction, which is answered without an error and commits nothing.
    S53 = "S53" "control: a failed transaction's COMMIT, answered ROLLBACK",
    /// A late write that carries two claims.
    S67 = "S67" "late write with a second Fencing-Token",
    /// A late write whose token a proxy has taken out.
    S69 = "S69" "late write whose Fencing-Token a proxy has taken out",
    /// The lock store stopped past the TTL, with a keepalive on its way.
    S75 = "S75" "lock store stopped past the TTL, a keepalive on its way",
    /// A control: the lock store is gone, and the guard goes on refusing.
    S82 = "S82" "control: the lock store gone, a late write and a rightful one",
}

impl ScenarioId {
    /// Whether it tests kit and guard against false alarms: there is no half that something is left out of. A control proves
    /// nothing by itself.
    pub fn is_control(self) -> bool {
        matches!(
            self,
            ScenarioId::S12
                | ScenarioId::S16
                | ScenarioId::S18
                | ScenarioId::S25b
                | ScenarioId::S28
                | ScenarioId::S37
                | ScenarioId::S47
                | ScenarioId::S48
                | ScenarioId::S53
                | ScenarioId::S82
        )
    }

    /// Whether a run of it is right to be void: the kit must say that it could not do what it is about.
    pub(crate) fn must_be_void(self) -> bool {
        self == ScenarioId::S16
    }

    /// What its path changes in the late write's `Fencing-Token`.
    pub(crate) fn alteration(self) -> Alteration {
        match self {
            ScenarioId::S39 => Alteration::EqualToken,
            ScenarioId::S47 => Alteration::Malformed,
            ScenarioId::S48 => Alteration::Missing,
            ScenarioId::S67 => Alteration::Twice,
            ScenarioId::S69 => Alteration::Stripped,
            _ => Alteration::Nothing,
        }
    }

    /// What its twin goes without, in words. The same must then go wrong that the guarded half does not let happen.
    pub fn left_out(self) -> &'static str {
        match self {
            ScenarioId::S04b => "raising the mark before the read",
            ScenarioId::S25 => "the guard and its bounds",
            ScenarioId::S26 => "the guard's bounds",
            ScenarioId::S67 => "the guard and the second claim",
            ScenarioId::S69 => "the guard and the proxy",
            _ => "the guard",
        }
    }

    /// Whether the guard is made to admit everything in its twin.
    pub fn defeats_the_guard(self) -> bool {
        self != ScenarioId::S04b
    }

    /// Whether holders are granted the class's own TTL, which runs out or is outlived. Otherwise it is so long that only a
    /// revoke can have ended a lease.
    pub fn needs_real_ttl(self) -> bool {
        matches!(
            self,
            ScenarioId::S01 | ScenarioId::S12 | ScenarioId::S18 | ScenarioId::S75
        )
    }

    /// Whether its time is spent waiting for a lease or bounds to run out: others then work meanwhile, with which it shares
    /// nothing but the servers.
    pub fn mostly_waits(self) -> bool {
        self.needs_real_ttl() || self.keeps_transactions_open()
    }

    /// Whether it keeps a transaction open for seconds.
    pub(crate) fn keeps_transactions_open(self) -> bool {
        matches!(self, ScenarioId::S25 | ScenarioId::S25b | ScenarioId::S26)
    }

    /// Whether it stops or ends its lock store, which it then has for itself.
    pub(crate) fn has_its_own_store(self) -> bool {
        matches!(self, ScenarioId::S75 | ScenarioId::S82)
    }

    /// The gates at which holders are kept: a holder must offer each of them.
    pub fn gates(self) -> &'static [GateName] {
        match self {
            ScenarioId::S03 => &[GateName::AfterGrant, GateName::BeforeSend],
            ScenarioId::S04 => &[GateName::AfterRead],
            ScenarioId::S26 | ScenarioId::S53 => &[GateName::BeforeCommit],
            ScenarioId::S33 => &[],
            _ => &[GateName::BeforeSend],
        }
    }

    /// The kinds of holders that it needs beside the plain one.
    pub fn variants(self) -> &'static [Variant] {
        match self {
            ScenarioId::S03
            | ScenarioId::S09
            | ScenarioId::S17
            | ScenarioId::S28
            | ScenarioId::S35
            | ScenarioId::S37
            | ScenarioId::S82 => &[Variant::Again],
            ScenarioId::S04b => &[Variant::Unraised],
            ScenarioId::S08 => &[Variant::Sweep],
            ScenarioId::S21 => &[Variant::Journal],
            ScenarioId::S33 => &[Variant::Later],
            _ => &[],
        }
    }

    /// Whether it is about the mark guard: about reads that a mark protects, or an admission apart from its write.
    pub fn needs_mark(self) -> bool {
        matches!(
            self,
            ScenarioId::S03 | ScenarioId::S04 | ScenarioId::S04b | ScenarioId::S25 | ScenarioId::S25b
        )
    }

    /// Whether a worker of the resource has a part in it.
    pub fn needs_worker(self) -> bool {
        self == ScenarioId::S33
    }

    /// Whether what is held or left waiting is a request to the resource, so that the holder must write through its front
    /// door.
    pub fn needs_front(self) -> bool {
        matches!(
            self,
            ScenarioId::S05
                | ScenarioId::S07
                | ScenarioId::S08
                | ScenarioId::S09
                | ScenarioId::S24
                | ScenarioId::S25
                | ScenarioId::S25b
                | ScenarioId::S28
                | ScenarioId::S29
                | ScenarioId::S33
                | ScenarioId::S34
                | ScenarioId::S35
                | ScenarioId::S37
                | ScenarioId::S39
                | ScenarioId::S47
                | ScenarioId::S48
                | ScenarioId::S67
                | ScenarioId::S69
        )
    }
}

impl fmt::Display for ScenarioId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that names no scenario. Use one of those listed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no scenario is called {word:?}; there are {}", listed())]
pub struct UnknownScenario {
    /// The word, cut at 40 characters.
    pub word: String,
}

impl FromStr for ScenarioId {
    type Err = UnknownScenario;

    fn from_str(word: &str) -> Result<ScenarioId, UnknownScenario> {
        let mut all = ScenarioId::ALL.iter().copied();
        all.find(|id| id.as_str().eq_ignore_ascii_case(word))
            .ok_or_else(|| UnknownScenario {
                word: word.chars().take(40).collect(),
            })
    }
}

fn listed() -> String {
    let names: Vec<&str> = ScenarioId::ALL.iter().map(|id| id.as_str()).collect();
    names.join(", ")
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
