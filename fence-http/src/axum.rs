//! Extractors for axum.

use std::convert::Infallible;
use std::ops::Deref;

use axum_core::body::Body;
use axum_core::extract::{FromRef, FromRequestParts, OptionalFromRequestParts};
use axum_core::response::{IntoResponse, Response};
use fence_core::{Claim, Receipt};
use http::request::Parts;

use crate::fenced::{Fenced, GuardedStore};
use crate::guard::{NoClaim, claim};
use crate::problem::{Problem, ProblemKind};

/// The claim of a request: what the layer in front has read, and the transaction that writes must admit.
///
/// A handler that is mounted without its layer is not run: the answer is a 500 of kind
/// [`Misconfigured`](ProblemKind::Misconfigured). `Option<Presented>` is for routes that are observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presented(pub Claim);

impl Deref for Presented {
    type Target = Claim;

    fn deref(&self) -> &Claim {
        &self.0
    }
}

impl<St: Sync> FromRequestParts<St> for Presented {
    type Rejection = NoClaim;

    async fn from_request_parts(parts: &mut Parts, _: &St) -> Result<Presented, NoClaim> {
        claim(&parts.extensions).map(Presented)
    }
}

impl<St: Sync> OptionalFromRequestParts<St> for Presented {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &St) -> Result<Option<Presented>, Infallible> {
        Ok(claim(&parts.extensions).ok().map(Presented))
    }
}

impl<S, St> FromRequestParts<St> for Fenced<S>
where
    S: GuardedStore + FromRef<St>,
    St: Sync,
{
    type Rejection = NoClaim;

    async fn from_request_parts(parts: &mut Parts, state: &St) -> Result<Fenced<S>, NoClaim> {
        Fenced::from_extensions(&parts.extensions, S::from_ref(state))
    }
}

impl IntoResponse for NoClaim {
    fn into_response(self) -> Response {
        let detail = format!("{self}; nothing was written");
        Problem::new(ProblemKind::Misconfigured, detail).into_response::<Body>()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        Problem::into_response::<Body>(self)
    }
}

/// An answer together with the receipt of its write, which strict mode looks for.
#[derive(Clone, Debug)]
pub struct Receipted<R>(pub Receipt, pub R);

impl<R: IntoResponse> IntoResponse for Receipted<R> {
    fn into_response(self) -> Response {
        let mut response = self.1.into_response();
        response.extensions_mut().insert(self.0);
        response
    }
}
