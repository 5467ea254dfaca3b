//! How the classes are proven now, to be held against how they were.

use std::collections::BTreeMap;

use fence_core::{ClassName, Proof};
use pause_kit::evidence::ProvenBy;

use super::evidence::Seen;
use crate::config::Manifest;
use crate::guard::{self, GuardError};
use crate::proven_by;

/// What is declared now of the classes that the evidence speaks of.
pub(super) struct Now {
    /// The digest of their guards together, as the run took it.
    pub(super) guards: String,
    /// The digests of each.
    pub(super) of: BTreeMap<ClassName, ProvenBy>,
}

impl Now {
    /// Reads what the classes with these proofs name.
    pub(super) fn of(manifest: &Manifest, proofs: &BTreeMap<ClassName, Proof>) -> Result<Now, GuardError> {
        let mut of = BTreeMap::new();
        let mut folders = Vec::new();
        for name in proofs.keys() {
            let Some(now) = proven_by::now(manifest, name)? else {
                continue;
            };
            of.insert(name.clone(), now);
            folders.extend(proven_by::target(manifest, name).map(|target| target.guard_sql.as_path()));
        }
        let guards = guard::sha256(folders.into_iter())?;
        Ok(Now { guards, of })
    }

    /// The digest of a class's guard, of the kind that its evidence keeps: of its own, or of all together.
    pub(super) fn guard(&self, class: &ClassName, seen: &Seen) -> &str {
        let keeps_own = match seen {
            Seen::Something(something) => something.bundle.evidence().proven_by(class).is_some(),
            Seen::Nothing(_) => false,
        };
        match self.of.get(class) {
            Some(own) if keeps_own => &own.guard_sql,
            _ => &self.guards,
        }
    }
}
