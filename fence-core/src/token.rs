//! The fencing token: one ordered integer, and its only text form.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use crate::epoch::{Epoch, Revision};

/// A fencing token: the ordered number that a grant carries. Larger means newer.
///
/// The range is 1 ..= 2^63 - 1, so that a token fits PostgreSQL's `BIGINT`; 0 and negatives do not exist. The text form,
/// the same in headers, JSON, logs and on a command line, is 1 to 19 ASCII digits without sign, leading zero or space. In
/// JSON a token is a string: a JSON number is refused, because doubles round from epoch 32 on.
///
/// `Token` has no `Ord` on purpose. Comparing two tokens is a decision, and [`admit`](crate::admit) alone makes it.
///
/// ```
/// use fence_core::Token;
///
/// let token: Token = "562949953421399".parse()?;
/// assert_eq!(token.as_i64(), 562_949_953_421_399);
/// assert_eq!("007".parse::<Token>().unwrap_err().to_string(), "a token has no leading zero, got \"007\"");
/// # Ok::<(), fence_core::ParseTokenError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(NonZeroU64);

impl Token {
    /// The largest token, 2^63 - 1: epoch 32767 and revision 2^48 - 1.
    pub const MAX: Token = match NonZeroU64::new(i64::MAX as u64) {
        Some(value) => Token(value),
        None => unreachable!(),
    };

    /// Takes a number from a store or a database column as a token, 1 ..= 2^63 - 1.
    ///
    /// # Errors
    ///
    /// [`TokenRangeError`] when the number is zero or negative.
    pub fn new(number: i64) -> Result<Token, TokenRangeError> {
        u64::try_from(number)
            .ok()
            .and_then(NonZeroU64::new)
            .map(Token)
            .ok_or(TokenRangeError { number })
    }

    /// Mints `epoch * 2^48 + revision`. Order of (epoch, revision) and order of the integer agree for every pair.
    pub fn mint(epoch: Epoch, revision: Revision) -> Token {
        let value = (u64::from(epoch.as_u16()) << Revision::BITS) + revision.as_u64();
        Token(NonZeroU64::new(value).expect("an epoch is at least 1"))
    }

    /// The token as PostgreSQL's `BIGINT` holds it, 1 ..= 2^63 - 1.
    pub fn as_i64(self) -> i64 {
        i64::try_from(self.0.get()).expect("a token is at most 2^63 - 1")
    }

    /// Splits a minted token into its parts. `None` for a number below 2^48, which no epoch could have minted, or with
    /// revision 0. Only the minting side and people who explain tokens look inside; a guard never does.
    pub fn split(self) -> Option<(Epoch, Revision)> {
        let epoch = u16::try_from(self.0.get() >> Revision::BITS).ok()?;
        let revision = self.0.get() & (Revision::MAX.as_u64());
        Some((Epoch::new(epoch).ok()?, Revision::new(revision).ok()?))
    }
}

/// A number that is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token is 1 to 9223372036854775807, got {number}")]
pub struct TokenRangeError {
    /// The number that was offered.
    pub number: i64,
}

/// A text that is no token. The caller must send the text form as it was granted; nothing is repaired.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseTokenError {
    /// The text is empty. Send the token, or no token at all.
    #[error("a token is 1 to 19 digits, got an empty text")]
    Empty,
    /// Something other than ASCII digits: a sign, a space, a point. Send digits alone.
    #[error("a token is 1 to 19 ASCII digits, got {text:?}")]
    NotDigits {
        /// The text, cut at 40 characters.
        text: String,
    },
    /// A leading zero, or the number zero. Send the one canonical form.
    #[error("a token has no leading zero, got {text:?}")]
    LeadingZero {
        /// The text, cut at 40 characters.
        text: String,
    },
    /// More than 2^63 - 1. No issuer grants such a token.
    #[error("a token is at most 9223372036854775807, got {text:?}")]
    TooLarge {
        /// The text, cut at 40 characters.
        text: String,
    },
}

impl FromStr for Token {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Token, ParseTokenError> {
        let shown = || text.chars().take(40).collect::<String>();
        if text.is_empty() {
            return Err(ParseTokenError::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ParseTokenError::NotDigits { text: shown() });
        }
        if text.starts_with('0') {
            return Err(ParseTokenError::LeadingZero { text: shown() });
        }
        let number: i64 = text
            .parse()
            .map_err(|_| ParseTokenError::TooLarge { text: shown() })?;
        Ok(Token(
            NonZeroU64::new(number.unsigned_abs()).expect("digits without a leading zero are not zero"),
        ))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl serde::Serialize for Token {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Token {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Token, D::Error> {
        crate::text::deserialize(deserializer, "a fencing token as a string of 1 to 19 digits")
    }
}
