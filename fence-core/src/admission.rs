//! The admission decision: the one place in Rust where two tokens are compared.

use crate::epoch::Epoch;
use crate::name::GrantId;
use crate::token::Token;

/// The high-water mark: the largest token that the resource has accepted for a key, and whose it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The largest token accepted.
    pub token: Token,
    /// The grant that it came with. `None` in a class that takes another issuer's tokens.
    pub grant_id: Option<GrantId>,
}

/// Which tokens above the mark a class takes. The resource knows ranges, nothing else about a token's inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// A class of a tier: the ranges of the epochs registered for it. Every claim needs a grant id.
    Registered(Vec<TokenRange>),
    /// A class declared for another issuer's tokens: every token, and no grant ids.
    Open,
}

/// A range of tokens, both ends inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRange {
    first: Token,
    last: Token,
}

impl TokenRange {
    /// The tokens that an epoch can mint, up to `ceiling` when there is one.
    ///
    /// # Errors
    ///
    /// [`CeilingError`] when the ceiling lies outside the epoch's own tokens.
    pub fn of_epoch(epoch: Epoch, ceiling: Option<Token>) -> Result<TokenRange, CeilingError> {
        let (first, end) = epoch.tokens();
        let last = ceiling.unwrap_or(end);
        if first.as_i64() <= last.as_i64() && last.as_i64() <= end.as_i64() {
            Ok(TokenRange { first, last })
        } else {
            Err(CeilingError { epoch, ceiling: last })
        }
    }

    fn contains(self, token: Token) -> bool {
        (self.first.as_i64()..=self.last.as_i64()).contains(&token.as_i64())
    }
}

/// A ceiling that its epoch's tokens do not contain. Give a token of that epoch, or none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ceiling {ceiling} is no token of epoch {epoch}")]
pub struct CeilingError {
    /// The epoch.
    pub epoch: Epoch,
    /// The ceiling offered for it.
    pub ceiling: Token,
}

/// What a request brought, before anything was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presented {
    /// No token at all.
    Absent,
    /// Something that is not a token's text form.
    Malformed,
    /// A token, and a grant id when there was one.
    Token(Token, Option<GrantId>),
}

/// What the guard does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// The same holder goes on; the mark stays.
    Admit,
    /// Admitted, and the mark becomes the presented one.
    Raise(Mark),
    /// Refused; nothing changes.
    Refuse(Refusal),
}

/// Why a claim was refused. Each is terminal for its grant, but for an unknown epoch, which an operator may register.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// A newer holder has been here. Stop; do not fetch a newer token for the same work.
    #[error("stale token: presented {presented}, seen {seen}")]
    Stale {
        /// The token presented.
        presented: Token,
        /// The mark.
        seen: Token,
    },
    /// Two grants share a token: the issuer has lost history. Stop, and let an operator advance the epoch.
    #[error("token {token} was already used by another grant")]
    Collision {
        /// The token that both carry.
        token: Token,
    },
    /// The token lies outside every registered range. An operator may register its epoch.
    #[error("token {presented} lies outside every registered range")]
    UnknownEpoch {
        /// The token presented.
        presented: Token,
    },
    /// No token, or no grant id where the class needs one. Present what the grant gave.
    #[error("missing {0}")]
    Missing(MissingPart),
    /// Not the text form of a token. Present what the grant gave.
    #[error("malformed token")]
    Malformed,
}

/// What a claim lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MissingPart {
    /// The fencing token.
    Token,
    /// The grant id.
    GrantId,
}

impl std::fmt::Display for MissingPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MissingPart::Token => "fencing token",
            MissingPart::GrantId => "grant id",
        })
    }
}

/// Decides whether a claim may write, from the mark of its key (`None` before the first admission) and the ranges of its
/// class. The decision is pure: a resource must take it, and act on it, in one atomic step with the write.
///
/// | presented | decision |
/// |---|---|
/// | lower than the mark | refused: stale, with both numbers |
/// | equal, same grant id | admitted: the same holder goes on |
/// | equal, another grant id | refused: collision |
/// | higher, inside a registered range | admitted, and the mark is raised |
/// | higher, outside every registered range | refused: unknown epoch |
/// | absent, or without a grant id where the class needs one | refused: missing |
/// | not in the text form | refused: malformed |
///
/// In an open class equal is admitted, and every higher token lies in range.
///
/// ```
/// use fence_core::{Decision, Mark, Presented, Ranges, Refusal, Token, admit};
///
/// let old = Token::new(33)?;
/// let new = Token::new(34)?;
/// let mark = Mark { token: new, grant_id: None };
/// let admitted = admit(Some(&mark), &Ranges::Open, &Presented::Token(new, None));
/// assert_eq!(admitted, Decision::Admit);
/// let refused = admit(Some(&mark), &Ranges::Open, &Presented::Token(old, None));
/// assert_eq!(refused, Decision::Refuse(Refusal::Stale { presented: old, seen: new }));
/// # Ok::<(), fence_core::TokenRangeError>(())
/// ```
pub fn admit(mark: Option<&Mark>, ranges: &Ranges, presented: &Presented) -> Decision {
    let (token, grant_id) = match presented {
        Presented::Absent => return Decision::Refuse(Refusal::Missing(MissingPart::Token)),
        Presented::Malformed => return Decision::Refuse(Refusal::Malformed),
        Presented::Token(token, grant_id) => (*token, grant_id),
    };
    // A grant id says nothing in an open class, so it is neither needed, nor compared, nor stored there.
    let grant_id = match ranges {
        Ranges::Open => None,
        Ranges::Registered(_) if grant_id.is_none() => {
            return Decision::Refuse(Refusal::Missing(MissingPart::GrantId));
        }
        Ranges::Registered(_) => grant_id.clone(),
    };
    if let Some(mark) = mark {
        if token.as_i64() < mark.token.as_i64() {
            return Decision::Refuse(Refusal::Stale {
                presented: token,
                seen: mark.token,
            });
        }
        if token == mark.token {
            return match ranges {
                Ranges::Registered(_) if grant_id != mark.grant_id => {
                    Decision::Refuse(Refusal::Collision { token })
                }
                _ => Decision::Admit,
            };
        }
    }
    let in_range = match ranges {
        Ranges::Open => true,
        Ranges::Registered(ranges) => ranges.iter().any(|range| range.contains(token)),
    };
    if in_range {
        Decision::Raise(Mark { token, grant_id })
    } else {
        Decision::Refuse(Refusal::UnknownEpoch { presented: token })
    }
}
