//! The two parts of a minted token.

use std::fmt;

use crate::token::Token;

/// The upper part of a minted token, 1 ..= 32767: raised by an operator when the issuing store has lost history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u16);

impl Epoch {
    /// The first epoch.
    pub const FIRST: Epoch = Epoch(1);
    /// The last epoch: above it the token would leave PostgreSQL's `BIGINT`.
    pub const MAX: Epoch = Epoch(32767);

    /// An epoch, 1 ..= 32767.
    ///
    /// # Errors
    ///
    /// [`EpochRangeError`] outside that range. Nothing is clamped.
    pub fn new(number: u16) -> Result<Epoch, EpochRangeError> {
        if (Epoch::FIRST.0..=Epoch::MAX.0).contains(&number) {
            Ok(Epoch(number))
        } else {
            Err(EpochRangeError {
                number: number.into(),
            })
        }
    }

    /// The number, 1 ..= 32767.
    pub fn as_u16(self) -> u16 {
        self.0
    }

    /// The epoch after this one.
    ///
    /// # Errors
    ///
    /// [`EpochRangeError`] after [`Epoch::MAX`]: the issuer can never grant again under this form.
    pub fn next(self) -> Result<Epoch, EpochRangeError> {
        Epoch::new(self.0 + 1)
    }

    /// The smallest and the largest token that this epoch can mint.
    pub fn tokens(self) -> (Token, Token) {
        (
            Token::mint(self, Revision::FIRST),
            Token::mint(self, Revision::MAX),
        )
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number that is no epoch. Raise no epoch past its end; ask why so many were used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an epoch is 1 to 32767, got {number}")]
pub struct EpochRangeError {
    /// The number that was offered.
    pub number: u32,
}

/// The lower part of a minted token, 1 ..< 2^48: the revision of the transaction that granted the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(u64);

impl Revision {
    /// How many bits of a token the revision takes.
    pub const BITS: u32 = 48;
    /// The first revision.
    pub const FIRST: Revision = Revision(1);
    /// The last revision, 2^48 - 1. There is no carry into the epoch.
    pub const MAX: Revision = Revision((1 << Self::BITS) - 1);

    /// A revision, 1 ..< 2^48.
    ///
    /// # Errors
    ///
    /// [`RevisionRangeError`] outside that range. Nothing wraps and nothing carries into the epoch.
    pub fn new(number: u64) -> Result<Revision, RevisionRangeError> {
        if (Revision::FIRST.0..=Revision::MAX.0).contains(&number) {
            Ok(Revision(number))
        } else {
            Err(RevisionRangeError { number })
        }
    }

    /// The number, 1 ..< 2^48.
    pub fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number that is no revision. At 2^48 the store needs a new epoch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a revision is 1 to 281474976710655, got {number}")]
pub struct RevisionRangeError {
    /// The number that was offered.
    pub number: u64,
}
