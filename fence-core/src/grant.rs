//! What the lock store gives, and what a request presents of it.

use crate::deadline::{BootInstant, Ttl};
use crate::key::Key;
use crate::name::{ClassName, GrantId};
use crate::token::Token;

/// One successful acquisition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The class of the lock.
    pub class: ClassName,
    /// The key within the class.
    pub key: Key,
    /// The token that this grant, and no other, carries.
    pub token: Token,
    /// The id of this grant.
    pub grant_id: GrantId,
    /// The time to live that the store granted, which may differ from the one asked for.
    pub ttl: Ttl,
    /// When the request was sent, on the holder's boot-time clock: the lease lives at least `ttl` from here.
    pub sent: BootInstant,
}

impl Grant {
    /// What a request made under this grant presents.
    pub fn claim(&self) -> Claim {
        Claim {
            class: self.class.clone(),
            key: self.key.clone(),
            token: self.token,
            grant_id: Some(self.grant_id.clone()),
        }
    }
}

/// What a request presents to the resource. It is not a credential: nothing here authenticates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The class of the lock.
    pub class: ClassName,
    /// The key within the class.
    pub key: Key,
    /// The fencing token.
    pub token: Token,
    /// The grant's id. A class of a tier needs one; a class that takes another issuer's tokens has none.
    pub grant_id: Option<GrantId>,
}
