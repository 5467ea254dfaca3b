//! The layer that requires a fencing token and hands the handler a claim.
//!
//! A request reaches the inner service when one of these holds, and otherwise never:
//!
//! 1. A rule ([`Rule`]) covers its method and path, it carries exactly one `Fencing-Token` in the form that [`FencingToken`]
//!    describes, and its key, percent-decoded once, is UTF-8 and a [`Key`](fence_core::Key). Then [`claim`] finds the
//!    [`Claim`](fence_core::Claim) in the request's extensions.
//! 2. No rule covers it, and its method is safe (`GET`, `HEAD`, `OPTIONS` or `TRACE`) or was exempted together with its path
//!    ([`FenceLayerBuilder::exempt`]).
//! 3. The rule, or the layer, only observes ([`FenceLayerBuilder::observe`]): it is counted, and has no claim unless 1 holds.
//!
//! Anything else is answered with a [`Problem`], and counted ([`FenceLayer::counts`]): no rule 404, no token 428, a malformed
//! or second token or a malformed key 400. The [`Rejection`] and the `Problem` ride in that response's extensions.
//!
//! **A check at the door is not a fence.** The handler can be paused after it, for longer than the lease. So nothing here
//! compares two tokens: the transaction that writes must admit the claim (fence-pg does), and answers
//! [`Problem::from`]`(&Refusal)` when it may not write.
//!
//! In strict mode ([`FenceLayerBuilder::strict`]) an answer below 400 to a guarded request must carry, in its extensions, a
//! [`Receipt`](fence_core::Receipt) for the very claim of the request; otherwise it becomes a 500 that names the route. The
//! write has happened by then: this is an alarm for the first test of a handler that forgot its guard, not a fence.
//!
//! Bodies are never buffered. When a guarded request is answered with 400 or above and the rest of its body is still on its
//! way, that rest is read and thrown away first, up to the bounds of [`Linger`], because most clients write the whole body
//! before they look for an answer, and take a closed connection for a fault of the network. Beyond the bounds the answer
//! goes out with `Connection: close`, and such a client may see a reset. A client that asked with `Expect: 100-continue`
//! and was not told to go on is answered at once. The bound on time needs a tokio runtime with its timer on.
//!
//! # Deployment caveat
//!
//! Wrap the *finished* service, not a router that routes are still added to: a router's own layers cover only what was
//! there before them, and routes merged later, or a fallback, would write unguarded ([`coverage`](crate::coverage) finds
//! those in a test). Whatever rewrites the method
//! (`X-HTTP-Method-Override`) or the path must stand outside this layer, so that both see the same request. Patterns are
//! matched against the raw path: a router inside that folds case, drops slashes or decodes before it matches can reach a
//! route under a path that no rule names, which fails closed for guarded routes, and is a reason to keep exemptions few.
//!
//! A proxy in front must pass `Fencing-Token` on unchanged. One that drops it (as `Connection: fencing-token` makes it do)
//! costs a 428; one that joins repeated headers costs a 400; neither lets a request in.
//!
//! # Example
//!
//! ```
//! use bytes::Bytes;
//! use fence_core::{Claim, ClassName};
//! use fence_http::FenceLayer;
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use tower::{BoxError, Layer, ServiceExt, service_fn};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), BoxError> {
//! let layer = FenceLayer::builder()
//!     .guard(ClassName::new("paydb.account")?, "/accounts/{id}/transfers")
//!     .build()?;
//! let service = layer.layer(service_fn(|request: Request<_>| async move {
//!     let claim: Claim = fence_http::claim(request.extensions())?;
//!     // … begin, admit the claim, write, commit …
//!     Ok::<_, BoxError>(Response::new(Full::<Bytes>::from(claim.key.to_string())))
//! }));
//!
//! let admitted = Request::post("/accounts/acct-1/transfers")
//!     .header("Fencing-Token", r#""562949953421399";grant="b2f1""#)
//!     .body(Full::<Bytes>::default())?;
//! assert_eq!(service.clone().oneshot(admitted).await?.status(), 200);
//!
//! let refused = Request::post("/accounts/acct-1/transfers").body(Full::<Bytes>::default())?;
//! assert_eq!(service.oneshot(refused).await?.status(), 428);
//! # Ok(())
//! # }
//! ```
//!
//! [`FencingToken`]: crate::FencingToken
//! [`Problem`]: crate::Problem
//! [`Problem::from`]: crate::Problem

mod body;
mod builder;
mod count;
mod future;
mod layer;
mod pattern;
mod presented;
mod rejection;
mod rule;
mod service;

pub use body::GuardedBody;
pub use builder::{ConfigError, FenceLayerBuilder, Rule, Unnamed};
pub use count::{Counted, Counts};
pub use future::ResponseFuture;
pub use layer::{FenceLayer, Linger};
pub use presented::{NoClaim, claim};
pub use rejection::Rejection;
pub use service::Guard;
