//! The small values that events are made of.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant: nanoseconds since the run began, on the one monotonic clock of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct At(u64);

impl At {
    /// The instant `nanos` nanoseconds after the run began.
    pub const fn from_nanos(nanos: u64) -> At {
        At(nanos)
    }

    /// Nanoseconds since the run began.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this instant; zero when it is not later.
    pub const fn since(self, earlier: At) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ms", self.0 / 1_000_000, self.0 / 1_000 % 1_000)
    }
}

/// The name of one operation, unique in its history, such as `H1-write-1`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Op(String);

impl Op {
    /// An operation's name; any text that no other operation of the history bears.
    pub fn new(name: impl Into<String>) -> Op {
        Op(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A number that stood where a token belongs: any `i64`, because a broken guard may let in one that no issuer grants. In
/// JSON it is a string. It has no order on purpose: the judge compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenNumber(i64);

impl TokenNumber {
    /// Takes a number as it was seen.
    pub const fn new(number: i64) -> TokenNumber {
        TokenNumber(number)
    }

    /// The number.
    pub const fn number(self) -> i64 {
        self.0
    }
}

impl From<fence_core::Token> for TokenNumber {
    fn from(token: fence_core::Token) -> TokenNumber {
        TokenNumber(token.as_i64())
    }
}

impl fmt::Display for TokenNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for TokenNumber {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TokenNumber {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<TokenNumber, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.parse::<i64>() {
            Ok(number) if number.to_string() == text => Ok(TokenNumber(number)),
            _ => Err(serde::de::Error::custom(format!(
                "expected a token number as a string, got {text:?}"
            ))),
        }
    }
}

/// What a request presented, letter for letter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Presented {
    /// The token's text. `None` when there was none.
    pub token: Option<String>,
    /// The grant id's text. `None` when there was none.
    pub grant: Option<String>,
}

/// What was answered, as it stood on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// An HTTP answer.
    Http {
        /// The status, 100 ..= 599.
        status: u16,
        /// The problem details' `type`, when the answer had one.
        problem: Option<String>,
        /// The answer said that it is the stored one of an earlier request.
        stored: bool,
    },
    /// The last word of a PostgreSQL transaction (its COMMIT), or of a statement that stood alone.
    Sql {
        /// The error's SQLSTATE; `None` when there was no error.
        sqlstate: Option<String>,
        /// The error's DETAIL.
        detail: Option<String>,
        /// The command tag, such as `COMMIT`, `ROLLBACK` or `UPDATE 1`.
        tag: Option<String>,
    },
}
