//! The tower layer that requires a fencing token and hands the claim to the handler, and the one that sends it.
//!
//! A paused holder of a lock wakes up and sends the request that it had in mind. Nothing at the door can tell: the handler,
//! too, may be paused after any check. So this crate parses the header, insists on it, and passes it on as a typed
//! [`Claim`](fence_core::Claim); the transaction that writes admits the claim or refuses it, and this crate turns the
//! refusal into an answer that every client can act on.
//!
//! ```
//! use fence_core::{Refusal, Token};
//! use fence_http::{FencingToken, Problem};
//! use http::HeaderMap;
//!
//! // What a client sends is read back exactly …
//! let mut headers = HeaderMap::new();
//! headers.insert("Fencing-Token", r#""562949953421399";grant="b2f1""#.parse()?);
//! let presented = FencingToken::from_headers(&headers)?;
//! assert_eq!(presented.token, Token::new(562_949_953_421_399)?);
//!
//! // … and a stale one is answered with 412, which says: stop.
//! let refusal = Refusal::Stale { presented: presented.token, seen: Token::new(562_949_953_421_400)? };
//! assert_eq!(Problem::from(&refusal).kind().status(), 412);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`guard`] states exactly which requests reach the handler, [`client`] what a client makes of the answers. Statuses, with a problem `type` each ([`ProblemKind`]):
//!
//! | what | status |
//! |---|---|
//! | no token, or no grant id where the class needs one | 428 |
//! | malformed token or key, more than one token | 400 |
//! | stale, or a token that another grant has used | 412, terminal |
//! | an epoch that is not registered | 409, may resolve |
//! | blocked, retryable, or the guard's store cannot answer; nothing was written | 503 with `Retry-After` |
//! | outcome unknown | 500 without it |
//! | no rule covers the route | 404 |
//! | strict mode: success without a receipt; or the guard is set up wrongly | 500 |
//!
//! The mark is never echoed, so that a refused client cannot present it.
//!
//! # What this crate does not do
//!
//! It compares no tokens and keeps no marks. It does not authenticate: a token is not a credential. It does not retry, and
//! it offers a refused client no newer token: that takes a new grant.

#[cfg(feature = "axum")]
pub mod axum;
pub mod client;
pub mod coverage;
mod fenced;
pub mod guard;
mod header;
mod problem;

pub use fenced::{Fenced, GuardedStore};
pub use guard::{
    ConfigError, Counted, Counts, FenceLayer, FenceLayerBuilder, Guard, Linger, NoClaim, Rejection, Rule,
    Unnamed, claim,
};
pub use header::{FENCING_TOKEN, FencingToken, HeaderError, header_value};
pub use problem::{Problem, ProblemKind};
