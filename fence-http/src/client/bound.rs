//! What a client remembers of its grant.

use std::sync::{Mutex, PoisonError};

use fence_core::Claim;

use super::error::{ClientError, Refused};

/// The grant that a client belongs to, and whether it is over.
#[derive(Debug, Default)]
pub(super) struct Bound(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    claim: Option<Claim>,
    refused: Option<Refused>,
}

impl Bound {
    /// Takes the claim for one more request: the first one binds.
    pub(super) fn take(&self, claim: &Claim) -> Result<(), ClientError> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(refused) = &state.refused {
            let refused = Refused {
                sent: false,
                ..refused.clone()
            };
            return Err(ClientError::Refused(refused));
        }
        if *state.claim.get_or_insert_with(|| claim.clone()) == *claim {
            Ok(())
        } else {
            Err(ClientError::OtherGrant)
        }
    }

    /// Notes that the grant is over.
    pub(super) fn end(&self, refused: &Refused) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.refused.get_or_insert_with(|| refused.clone());
    }
}
