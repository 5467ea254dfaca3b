//! What a guarded write came to, where that is more than a receipt.

use fence_core::{Claim, ClassName, Effect, Key, Receipt, Token};

use crate::error::GuardError;
use crate::refused::{Refused, StaleKey};

/// A write that was committed together with its admission.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Written {
    /// How many rows the write touched. None is no error: the server committed the admission, and that no row matched.
    pub rows_affected: u64,
    /// The receipt: [`Effect::Applied`], or [`Effect::NoWrite`] when no row was touched.
    pub receipt: Receipt,
}

impl Written {
    pub(crate) fn new(rows_affected: u64, claim: &Claim) -> Written {
        let effect = match rows_affected {
            0 => Effect::NoWrite("no row matched".into()),
            _ => Effect::Applied,
        };
        Written {
            rows_affected,
            receipt: Receipt::danger_assume(claim.clone(), effect),
        }
    }
}

/// What became of a write whose outcome was unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Resolved {
    /// It is committed.
    Landed,
    /// It is not, and will not be: whatever transaction carried it has ended.
    NotLanded,
}

impl Resolved {
    pub(crate) fn from_found(found: bool) -> Resolved {
        if found {
            Resolved::Landed
        } else {
            Resolved::NotLanded
        }
    }
}

/// What one row of a batch came to, where each stands for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum RowOutcome<R> {
    /// It was updated; what RETURNING gave.
    Applied(R),
    /// Its token is above the one presented. Terminal for that key's grant.
    Stale {
        /// The row's token.
        seen: Token,
    },
    /// There is no such row, or none that this role may see.
    NotFound,
}

impl<R> RowOutcome<R> {
    /// Makes something else of what RETURNING gave.
    pub fn map<T>(self, with: impl FnOnce(R) -> T) -> RowOutcome<T> {
        match self {
            RowOutcome::Applied(row) => RowOutcome::Applied(with(row)),
            RowOutcome::Stale { seen } => RowOutcome::Stale { seen },
            RowOutcome::NotFound => RowOutcome::NotFound,
        }
    }
}

/// Why a batch was not done; nothing of it was.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// Some rows could not be updated. Leave out the stale ones, whose grants are over; look why the others are not there.
    #[error("{} stale and {} absent rows in the batch", stale.len(), not_found.len())]
    Rows {
        /// The rows whose token is above the one presented, in the batch's order.
        stale: Vec<StaleKey>,
        /// The keys of which there is no row, or none that this role may see, in the batch's order.
        not_found: Vec<Key>,
    },
    /// As for a single row.
    #[error(transparent)]
    Guard(#[from] GuardError),
}

impl From<BatchError> for GuardError {
    fn from(error: BatchError) -> GuardError {
        match error {
            BatchError::Guard(error) => error,
            BatchError::Rows { stale, .. } if stale.is_empty() => GuardError::NotFound,
            BatchError::Rows { stale, .. } => GuardError::Refused(Refused::StaleKeys(stale)),
        }
    }
}

/// The claims of a batch, each key once, in the given order.
pub(crate) fn distinct(claims: &[Claim]) -> Result<Vec<Claim>, GuardError> {
    let mut distinct: Vec<Claim> = Vec::with_capacity(claims.len());
    let mut known: std::collections::HashMap<(&ClassName, &Key), &Claim> = std::collections::HashMap::new();
    for claim in claims {
        match known.insert((&claim.class, &claim.key), claim) {
            None => distinct.push(claim.clone()),
            Some(before) if before == claim => {}
            Some(_) => {
                return Err(GuardError::Misuse(
                    "one key with two tokens or two grants in a batch",
                ));
            }
        }
    }
    Ok(distinct)
}

/// What a look at a row that was not updated found: its token, and whether that is above the one presented.
pub(crate) type Look = (Option<i64>, Option<bool>);

/// Why a row of a batch was not updated.
pub(crate) enum Untouched {
    NotFound,
    Stale {
        seen: Token,
    },
    /// The token column may be NULL, and is.
    NullToken,
    /// The row is there now, with a token that is not above: it came after the update.
    Replaced,
}

impl Untouched {
    pub(crate) fn from_look(look: Option<&Look>) -> Untouched {
        match look {
            Some((Some(seen), Some(true))) => match Token::new(*seen) {
                Ok(seen) => Untouched::Stale { seen },
                Err(_) => Untouched::Replaced,
            },
            Some((None, _)) => Untouched::NullToken,
            Some(_) => Untouched::Replaced,
            None => Untouched::NotFound,
        }
    }
}

/// What every row gave, or which rows were in the way of all.
pub(crate) fn gather<R>(claims: &[Claim], outcomes: Vec<(Key, RowOutcome<R>)>) -> Result<Vec<R>, BatchError> {
    let (mut rows, mut stale, mut not_found) = (Vec::new(), Vec::new(), Vec::new());
    for (claim, (key, outcome)) in claims.iter().zip(outcomes) {
        match outcome {
            RowOutcome::Applied(row) => rows.push(row),
            RowOutcome::Stale { seen } => stale.push(StaleKey {
                class: claim.class.clone(),
                key,
                presented: claim.token,
                seen,
            }),
            RowOutcome::NotFound => not_found.push(key),
        }
    }
    if stale.is_empty() && not_found.is_empty() {
        Ok(rows)
    } else {
        Err(BatchError::Rows { stale, not_found })
    }
}
