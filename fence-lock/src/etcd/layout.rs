//! Keys and records under a store's prefix.

use fence_core::{ClassName, Epoch, GrantId, Key, TierName, Token};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::store::{Attempt, SessionId};

/// Everything but `A-Z a-z 0-9 - _ . : ~` is written as `%XX`, so that a key holds no `/`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b':')
    .remove(b'~');

/// The keys of one store.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    prefix: String,
}

/// The keys of one lock.
pub(super) struct LockKeys {
    base: String,
}

impl Layout {
    pub(super) fn new(prefix: &str) -> Layout {
        Layout {
            prefix: prefix.to_owned(),
        }
    }

    /// Everything of this store.
    pub(super) fn everything(&self) -> String {
        format!("{}/", self.prefix)
    }

    pub(super) fn epoch(&self) -> String {
        format!("{}/epoch", self.prefix)
    }

    /// Everything of every lock.
    pub(super) fn locks(&self) -> String {
        format!("{}/lock/", self.prefix)
    }

    /// There while the store is sealed.
    pub(super) fn sealed(&self) -> String {
        format!("{}/sealed", self.prefix)
    }

    /// There while an advance is under way.
    pub(super) fn intent(&self) -> String {
        format!("{}/intent", self.prefix)
    }

    pub(super) fn lineage(&self) -> String {
        format!("{}/lineage", self.prefix)
    }

    /// The tier of a class: there once it is placed.
    pub(super) fn class(&self, class: &ClassName) -> String {
        format!("{}/class/{class}", self.prefix)
    }

    /// Every class that is placed.
    pub(super) fn classes(&self) -> String {
        format!("{}/class/", self.prefix)
    }

    pub(super) fn lock(&self, class: &ClassName, key: &Key) -> LockKeys {
        let key = utf8_percent_encode(key.as_str(), ESCAPED);
        LockKeys {
            base: format!("{}{class}/{key}", self.locks()),
        }
    }

    /// The keys of each lock that an attempt asks for, with the attempt's record there.
    pub(super) fn each(&self, attempt: &Attempt) -> Vec<(LockKeys, Vec<u8>)> {
        let of = |key: &Key| {
            (
                self.lock(attempt.class(), key),
                encode(&GrantRecord::of(attempt, key)),
            )
        };
        attempt.keys().iter().map(of).collect()
    }

    /// What a key is about. No class, key or grant is written with a `/`, so that the number of parts tells, and never a name: a
    /// grant may be called `held`.
    pub(super) fn kind(&self, key: &[u8]) -> LockKeyKind {
        let Some(under) = key.strip_prefix(self.locks().as_bytes()) else {
            return LockKeyKind::Other;
        };
        let parts: Vec<&[u8]> = under.split(|byte| *byte == b'/').collect();
        match parts[..] {
            [_, _, b"held"] => LockKeyKind::Held,
            [_, _, b"released"] => LockKeyKind::Released,
            [_, _, b"queue", _] => LockKeyKind::Queued,
            _ => LockKeyKind::Other,
        }
    }

    /// The key that is there once an attempt was given up: one for all of its locks, under the first.
    pub(super) fn cancelled(&self, attempt: &Attempt) -> String {
        self.lock(attempt.class(), attempt.keys().first())
            .cancelled(attempt.grant_id())
    }
}

impl LockKeys {
    /// The lock key itself: there while a grant holds.
    pub(super) fn held(&self) -> String {
        format!("{}/held", self.base)
    }

    pub(super) fn released(&self) -> String {
        format!("{}/released", self.base)
    }

    pub(super) fn queue(&self) -> String {
        format!("{}/queue/", self.base)
    }

    pub(super) fn place(&self, grant_id: &GrantId) -> String {
        format!("{}/queue/{grant_id}", self.base)
    }

    fn cancelled(&self, grant_id: &GrantId) -> String {
        format!("{}/cancel/{grant_id}", self.base)
    }
}

/// What a key of a store is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockKeyKind {
    Held,
    Released,
    /// A place in the queue.
    Queued,
    /// Nothing of who holds and who waits.
    Other,
}

/// The value of `held`, of a place in the queue and of a cancellation: one grant, or the attempt at one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GrantRecord {
    pub(super) class: ClassName,
    pub(super) key: Key,
    pub(super) grant_id: GrantId,
    pub(super) session: SessionId,
    /// When the attempt began, by its own clock, in milliseconds since 1970; for people alone, and not in every client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at_ms: Option<u64>,
}

impl GrantRecord {
    pub(super) fn of(attempt: &Attempt, key: &Key) -> GrantRecord {
        GrantRecord {
            class: attempt.class().clone(),
            key: key.clone(),
            grant_id: attempt.grant_id().clone(),
            session: attempt.session().clone(),
            at_ms: Some(attempt.began_ms()),
        }
    }
}

/// The value of `released`: the last grant of the lock that was released, not lapsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReleaseRecord {
    pub(super) grant_id: GrantId,
    pub(super) session: SessionId,
    pub(super) token: Token,
}

/// The epoch record: which epoch is in force, and in which cluster it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// The number of the epoch in force.
    #[serde(with = "epoch_number")]
    pub epoch: Epoch,
    /// The cluster that the record was written in: etcd's id in 16 hexadecimal digits, or `fence_lock.identity()`.
    pub cluster_id: String,
    /// The tier that the store serves.
    pub tier: TierName,
    /// Why the epoch was begun, in the words of whoever began it.
    pub reason: String,
    /// Whether the store grants only classes that were placed in its tier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub classes_placed: bool,
}

/// An epoch as its number.
pub(crate) mod epoch_number {
    use fence_core::Epoch;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(epoch: &Epoch, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(epoch.as_u16())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Epoch, D::Error> {
        Epoch::new(u16::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

pub(super) fn encode(record: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(record).expect("a record of strings and numbers is JSON")
}

pub(super) fn decode<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(value).map_err(|source| StoreError::Foreign {
        key: String::from_utf8_lossy(key).into_owned(),
        source: Box::new(source),
    })
}

/// A cluster id as the epoch record holds it.
pub(super) fn cluster_text(cluster_id: u64) -> String {
    format!("{cluster_id:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The prefix under which all keys of a lock lie.
    fn under(class: &str, key: &str) -> String {
        let (class, key) = (ClassName::new(class).unwrap(), Key::text(key).unwrap());
        Layout::new("p").lock(&class, &key).base + "/"
    }

    #[test]
    fn names_that_begin_alike_are_no_prefixes_of_each_other() {
        let locks = [
            ("pay", "eu"),
            ("pay", "eu/queue"),
            ("pay", "eu/held"),
            ("pay", "e"),
            ("pay.eu", "x"),
            ("pay", "eu%2Fheld"),
            ("pay", "é"),
        ];
        for (i, (class, key)) in locks.iter().enumerate() {
            for (j, (other_class, other_key)) in locks.iter().enumerate() {
                let (one, other) = (under(class, key), under(other_class, other_key));
                assert!(i == j || !other.starts_with(&one), "{one} is a prefix of {other}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn no_lock_is_a_prefix_of_another(
            class in "(a|b)(\\.(a|b)){0,2}",
            other_class in "(a|b)(\\.(a|b)){0,2}",
            // Few characters, those that the layout itself uses among them, so that near misses are common.
            key in "[a/%2Fé]{1,6}",
            other_key in "[a/%2Fé]{1,6}",
        ) {
            let same = class == other_class && key == other_key;
            let (one, other) = (under(&class, &key), under(&other_class, &other_key));
            proptest::prop_assert_eq!(other.starts_with(&one), same);
        }
    }

    #[test]
    fn what_a_key_is_about_no_name_in_it_decides() {
        let layout = Layout::new("fence");
        let class = ClassName::new("held").unwrap();
        for name in ["held", "released", "queue", "cancel", "lock"] {
            let lock = layout.lock(&class, &Key::text(name).unwrap());
            let grant = GrantId::new(name).unwrap();
            for (key, kind) in [
                (lock.held(), LockKeyKind::Held),
                (lock.released(), LockKeyKind::Released),
                (lock.place(&grant), LockKeyKind::Queued),
                (lock.cancelled(&grant), LockKeyKind::Other),
                (layout.class(&class), LockKeyKind::Other),
                (format!("other/{}", lock.held()), LockKeyKind::Other),
            ] {
                assert_eq!(layout.kind(key.as_bytes()), kind, "{key}");
            }
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let class = ClassName::new("paydb.account").unwrap();
        let lock = Layout::new("fence").lock(&class, &Key::text("a/b c").unwrap());
        let grant = GrantId::new("b2f1").unwrap();
        assert_eq!(lock.held(), "fence/lock/paydb.account/a%2Fb%20c/held");
        assert_eq!(
            lock.place(&grant),
            "fence/lock/paydb.account/a%2Fb%20c/queue/b2f1"
        );
        assert_eq!(
            lock.cancelled(&grant),
            "fence/lock/paydb.account/a%2Fb%20c/cancel/b2f1"
        );
        assert_eq!(lock.released(), "fence/lock/paydb.account/a%2Fb%20c/released");
    }
}
