//! Names: of classes, of tiers, of grants.

use std::fmt;
use std::str::FromStr;

/// A text that is no name of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} is {form}, got {text:?}")]
pub struct NameError {
    kind: &'static str,
    form: &'static str,
    text: String,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $form:literal, $valid:path) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Takes a text as this name.
            ///
            /// # Errors
            ///
            /// [`NameError`] when the text has not the form that the type's documentation gives.
            pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
                let text = text.into();
                Self::check(&text).map(|()| Self(text))
            }

            /// Whether a text is such a name, without keeping it.
            ///
            /// # Errors
            ///
            /// As [`Self::new`].
            pub fn check(text: &str) -> Result<(), NameError> {
                if $valid(text) {
                    Ok(())
                } else {
                    let text = text.chars().take(80).collect();
                    Err(NameError { kind: $kind, form: $form, text })
                }
            }

            /// The name's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::text::deserialize(deserializer, $kind)
            }
        }
    };
}

name!(
    /// The name of a lock class, such as `paydb.account`: 1 to 64 bytes, parts of `[a-z0-9_-]` that begin with a letter,
    /// joined by single points.
    ClassName,
    "a class name",
    "1 to 64 characters: parts of [a-z0-9_-] that begin with a letter, joined by points",
    dotted
);

name!(
    /// The name of a tier, such as `entity`: the form of a class name.
    TierName,
    "a tier name",
    "1 to 64 characters: parts of [a-z0-9_-] that begin with a letter, joined by points",
    dotted
);

name!(
    /// The id of one grant: 1 to 64 of `[A-Za-z0-9._:-]`, unique per grant, not secret.
    GrantId,
    "a grant id",
    "1 to 64 of [A-Za-z0-9._:-]",
    grant_id
);

fn dotted(text: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_lowercase())
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
    };
    text.len() <= 64 && text.split('.').all(part)
}

fn grant_id(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b))
}
