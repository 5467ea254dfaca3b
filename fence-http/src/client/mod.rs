//! The layer for clients: a live hold's token on every request, and answers as typed outcomes.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use fence_core::Claim;
//! use fence_http::client::{ClientError, ClientLayer};
//! use tower::{Layer, Service, ServiceExt};
//!
//! /// A hold of fence-lock has this method; any other lock's can be given it.
//! # struct Hold;
//! # #[derive(Debug, thiserror::Error)]
//! # #[error("the hold is fenced")]
//! # struct NotHeld;
//! # impl Hold { fn claim(&self) -> Result<Claim, NotHeld> { Err(NotHeld) } }
//! async fn refund(hold: Arc<Hold>) -> Result<(), Box<dyn std::error::Error>> {
//!     # #[cfg(feature = "reqwest")] {
//!     let plain = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build()?;
//!     let mut client = ClientLayer::new(move || hold.claim()).layer(plain);
//!     let request = reqwest::Request::new(
//!         reqwest::Method::POST,
//!         "http://127.0.0.1:8080/accounts/acct-1/transfers".parse()?,
//!     );
//!     match client.ready().await?.call(request).await {
//!         Ok(answer) => println!("done: {}", answer.status()),
//!         Err(ClientError::Refused(refused)) => println!("another holder is at work: {refused}"),
//!         Err(ClientError::Unknown(why)) => println!("read back, it may have landed: {why}"),
//!         Err(other) => return Err(other.into()),
//!     }
//!     # }
//!     Ok(())
//! }
//! ```
//!
//! - The token is read from the hold at the moment of sending. After the hold's deadline nothing is sent any more.
//! - A client belongs to the first grant that its hold gave it: a hold that later gives another one is refused, and so is a
//!   request that brings a token of its own. There is no way to swap in a newer token for the same work.
//! - Nothing is sent twice. Once the resource has called the grant stale, or its token another's, no further request leaves
//!   under it, so that a retry around this client does no harm. Switch off what the client inside would repeat or redirect.
//! - Success is what the resource said it did: 2xx, or 303. A connection that was cut, a time that ran out, and a 5xx in
//!   nobody's words are [`Unknown`], never a failure; [`resolve`] reads back.
//!
//! # What this layer does not do
//!
//! It is no fence: between its look at the hold and the resource lies a gap that no client can close. It renews nothing, and
//! it waits for nobody: [`ClientError::Blocked`] and its like may be sent again by the caller, as long as the hold lives.

mod bound;
mod error;
mod layer;
mod resolve;
mod sort;
mod wire;

pub use error::{Answer, ClientError, Refused, Unknown};
pub use layer::{Client, ClientLayer, Holder};
pub use resolve::{ReadBack, Resolved, resolve, resolve_after_raise};
pub use wire::{Outgoing, Reply, SendError};
