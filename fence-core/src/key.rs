//! The key of a lock within its class, and its one canonical text.

use std::fmt;
use std::str::FromStr;

/// The key of a lock within its class, in its canonical text: 1 to 512 bytes of UTF-8 without NUL.
///
/// The resource and the holder must name the same thing by the same text, or a mark guards nothing. So there is one text
/// for each value, here and in the SQL (`fence.key`), with vectors that both are tested against (`vectors/keys.json`):
///
/// - an integer is its decimal digits, `-` in front when negative: `42`;
/// - a UUID is 36 characters, lower case, with hyphens;
/// - a text is itself, byte for byte: no trimming, no folding of case, no normalization;
/// - a composite joins its parts with `/`, after `\` became `\\` and `/` became `\/` inside each part. A class has one
///   number of parts, and within it two composites have one text only if all their parts are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// The most bytes that a key's canonical text may have.
    pub const MAX_BYTES: usize = 512;

    /// Takes a text key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] when the text is empty, holds a NUL, or is longer than [`Key::MAX_BYTES`].
    pub fn text(text: impl Into<String>) -> Result<Key, KeyError> {
        let text = text.into();
        Key::check(&text).map(|()| Key(text))
    }

    /// Whether a text is a key, without keeping it.
    ///
    /// # Errors
    ///
    /// As [`Key::text`].
    pub fn check(text: &str) -> Result<(), KeyError> {
        if text.is_empty() {
            Err(KeyError::Empty)
        } else if text.contains('\0') {
            Err(KeyError::Nul)
        } else if text.len() > Key::MAX_BYTES {
            Err(KeyError::TooLong { bytes: text.len() })
        } else {
            Ok(())
        }
    }

    /// The key of a row whose key column is an integer of any width.
    pub fn integer(number: i64) -> Key {
        Key(number.to_string())
    }

    /// The key of a row whose key column is a UUID, given as its 128 bits in network order.
    pub fn uuid(bits: u128) -> Key {
        let hex = format!("{bits:032x}");
        Key(format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        ))
    }

    /// The key of a row whose key has two or more columns, given as the canonical texts of its parts in column order.
    /// Parts may be empty.
    ///
    /// # Errors
    ///
    /// [`KeyError`] with fewer than two parts, a NUL, or more than [`Key::MAX_BYTES`] in all.
    pub fn composite(parts: &[&str]) -> Result<Key, KeyError> {
        if parts.len() < 2 {
            return Err(KeyError::FewParts { parts: parts.len() });
        }
        let escaped: Vec<String> = parts
            .iter()
            .map(|part| part.replace('\\', "\\\\").replace('/', "\\/"))
            .collect();
        Key::text(escaped.join("/"))
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A value that is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// An empty text names nothing. Give the key of the row that is guarded.
    #[error("a key is not empty")]
    Empty,
    /// PostgreSQL's `text` cannot hold NUL. Encode the key before it comes here.
    #[error("a key holds no NUL character")]
    Nul,
    /// The text is too long. Use a digest of it as the key.
    #[error("a key is at most 512 bytes, got {bytes}")]
    TooLong {
        /// How many bytes the text had.
        bytes: usize,
    },
    /// A composite has at least two parts. Use [`Key::text`] for a single one.
    #[error("a composite key has at least 2 parts, got {parts}")]
    FewParts {
        /// How many parts were given.
        parts: usize,
    },
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Key, KeyError> {
        Key::text(text)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl serde::Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        crate::text::deserialize(deserializer, "a key as a string")
    }
}
