//! The classes that a command places in a tier.

use std::path::PathBuf;

use clap::Args;
use fence_core::{ClassName, TierName};

use crate::config::Manifest;
use crate::exit::Failure;

/// Which classes.
#[derive(Debug, Args)]
pub(super) struct ClassArguments {
    /// A class to place in the tier, repeated for more; a store with placed classes grants no others
    #[arg(long = "class", value_name = "CLASS")]
    classes: Vec<ClassName>,
    /// Place every class that this fence.toml declares in the tier
    #[arg(long, value_name = "FILE")]
    classes_of: Option<PathBuf>,
}

impl ClassArguments {
    /// The classes that are named, and those of the file.
    pub(super) fn of(&self, tier: &TierName) -> Result<Vec<ClassName>, Failure> {
        let mut classes = self.classes.clone();
        if let Some(file) = &self.classes_of {
            let manifest = Manifest::of_locks(Some(file)).map_err(Failure::usage)?;
            let ours = manifest
                .classes
                .into_iter()
                .filter(|(_, class)| class.tier == *tier);
            classes.extend(ours.map(|(name, _)| name));
        }
        classes.sort();
        classes.dedup();
        Ok(classes)
    }
}
