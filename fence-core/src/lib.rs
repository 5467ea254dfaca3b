//! Fencing tokens, claims, the admission decision and deadline arithmetic, without I/O, async or clocks.
//!
//! A holder that was paused for longer than its lease wakes up still believing that it holds. So mutual exclusion is only
//! claimed where the guarded resource itself refuses a stale token, in the same atomic step as the write:
//!
//! ```
//! use fence_core::{Decision, Epoch, GrantId, Presented, Ranges, Refusal, Revision, Token, TokenRange, admit};
//!
//! let ranges = Ranges::Registered(vec![TokenRange::of_epoch(Epoch::FIRST, None)?]);
//! let old = Token::mint(Epoch::FIRST, Revision::new(33)?);
//! let new = Token::mint(Epoch::FIRST, Revision::new(34)?);
//!
//! // The new holder comes first, and raises the mark …
//! let Decision::Raise(mark) = admit(None, &ranges, &Presented::Token(new, Some(GrantId::new("b2f1")?))) else {
//!     panic!("the first claim inside a registered range is admitted");
//! };
//! // … so the old one, however late, is refused.
//! let late = admit(Some(&mark), &ranges, &Presented::Token(old, Some(GrantId::new("a0c9")?)));
//! assert_eq!(late, Decision::Refuse(Refusal::Stale { presented: old, seen: new }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What this crate does not do
//!
//! It talks to no store, reads no clock and spawns nothing (a lint bans it): tokens come from `fence-lock`, the atomic step
//! is `fence-pg`'s. It does not authenticate: whoever knows a token may present it. It cannot tell two writes of one grant
//! apart that arrive out of order, nor a holder that was cloned with its memory.

mod admission;
mod class;
mod deadline;
mod epoch;
mod grant;
mod key;
mod name;
mod receipt;
mod register;
mod text;
mod token;

pub use admission::{
    CeilingError, Decision, Mark, MissingPart, Presented, Ranges, Refusal, TokenRange, admit,
};
pub use class::{Class, Enforcement, Purpose};
pub use deadline::{BootInstant, LeaseView, ParseTtlError, Phase, Ttl, TtlError};
pub use epoch::{Epoch, EpochRangeError, Revision, RevisionRangeError};
pub use grant::{Claim, Grant};
pub use key::{Key, KeyError};
pub use name::{ClassName, GrantId, NameError, TierName};
pub use receipt::{Effect, Receipt};
pub use register::{
    Day, Days, Declared, Demand, Disorder, DuplicateRisk, Proof, ProofOutcome, Risk, RiskError, RiskField,
    RiskParts, RiskRegister, disorders,
};
pub use token::{ParseTokenError, Token, TokenRangeError};
