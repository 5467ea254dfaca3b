//! What a guarded request presents.

use std::sync::Arc;

use fence_core::{Claim, ClassName, GrantId, Key, Token};
use http::uri::PathAndQuery;
use http::{Extensions, HeaderValue};

use super::rule::{KeySource, Rules};
use crate::header;

/// The claim that the layer left in a request's extensions.
///
/// It is what the request presents, no more: the write's own transaction decides.
///
/// # Errors
///
/// [`NoClaim`] when no layer left one, so that a handler which was mounted without its guard fails closed.
pub fn claim(extensions: &Extensions) -> Result<Claim, NoClaim> {
    extensions.get().map(Presented::claim).ok_or(NoClaim)
}

/// The request carries no claim: its route is exempt or observed, its method is safe, or no
/// [`FenceLayer`](super::FenceLayer) stands before it. Mend the service; do not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no fencing layer left a claim in this request")]
pub struct NoClaim;

/// A claim, as far as the request's own bytes hold it: read at the door, and made into a [`Claim`] when it is asked for.
#[derive(Clone, Debug)]
pub(super) struct Presented {
    pub(super) rules: Arc<Rules>,
    pub(super) rule: usize,
    pub(super) token: Token,
    /// Was read before, without a fault.
    pub(super) header: HeaderValue,
    pub(super) named: Named,
}

/// Where class and key are.
#[derive(Clone, Debug)]
pub(super) enum Named {
    /// The key is a segment of this path, as it stands there, and was found to be one; the class is the rule's.
    InPath(PathAndQuery),
    Read(ClassName, Key),
}

impl Presented {
    pub(super) fn route(&self) -> &str {
        &self.rules.rule(self.rule).pattern.text
    }

    pub(super) fn claim(&self) -> Claim {
        let (class, key) = match &self.named {
            Named::Read(class, key) => (class.clone(), key.clone()),
            Named::InPath(_) => {
                let (class, key) = self.in_path().expect("a key in the path was found there");
                (
                    class.clone(),
                    Key::text(key).expect("the key was checked at the door"),
                )
            }
        };
        let grant = self.grant();
        Claim {
            class,
            key,
            token: self.token,
            grant_id: grant.map(|id| GrantId::new(id).expect("the grant id was checked at the door")),
        }
    }

    /// Whether this is the claim, without making one.
    pub(super) fn is(&self, claim: &Claim) -> bool {
        let named = match &self.named {
            Named::Read(class, key) => *class == claim.class && *key == claim.key,
            Named::InPath(_) => self
                .in_path()
                .is_some_and(|(class, key)| *class == claim.class && key == claim.key.as_str()),
        };
        let grant = self.grant();
        named && self.token == claim.token && grant.as_deref() == claim.grant_id.as_ref().map(GrantId::as_str)
    }

    fn grant(&self) -> Option<std::borrow::Cow<'_, str>> {
        header::read(&self.header).ok().and_then(|(_, grant)| grant)
    }

    fn in_path(&self) -> Option<(&ClassName, &str)> {
        let rule = self.rules.rule(self.rule);
        match (&self.named, &rule.key) {
            (Named::InPath(path), KeySource::Path(class)) => {
                Some((class, rule.pattern.plain_key(path.path())?))
            }
            _ => None,
        }
    }
}
