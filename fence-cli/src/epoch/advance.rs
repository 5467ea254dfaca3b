//! `fence epoch advance`.

use clap::Args;
use fence_core::{ClassName, Epoch};
use fence_lock::{Advance, AdvanceError};

use super::classes::ClassArguments;
use super::epoch;
use super::witness::{self, WitnessArguments};
use crate::exit::{Ending, Failure};
use crate::say;
use crate::store::TierArguments;

/// Which store, and why.
#[derive(Debug, Args)]
pub(crate) struct AdvanceArguments {
    #[command(flatten)]
    store: TierArguments,
    /// Why the epoch begins, for those who read the record later
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Take this epoch or a higher one; needed without a witness, and then above every epoch that any tier was ever in
    #[arg(long, value_name = "N", value_parser = epoch)]
    at_least: Option<Epoch>,
    #[command(flatten)]
    classes: ClassArguments,
    /// A class to take out of the tier, repeated for more: one that moves elsewhere
    #[arg(long, value_name = "CLASS")]
    without_class: Vec<ClassName>,
    #[command(flatten)]
    witnesses: WitnessArguments,
}

pub(super) async fn run(arguments: &AdvanceArguments) -> Result<Ending, Failure> {
    if arguments.witnesses.is_empty() && arguments.at_least.is_none() {
        return Err(Failure::usage(AdvanceError::NoWitness));
    }
    let mut advance = Advance::new(&arguments.reason)
        .place(arguments.classes.of(arguments.store.tier())?)
        .remove(arguments.without_class.iter().cloned());
    if let Some(at_least) = arguments.at_least {
        advance = advance.at_least(at_least);
    }
    let databases = arguments.witnesses.open().await?;
    let store = arguments.store.etcd().await?;
    let advanced = store.advance(&advance, &witness::all(&databases)).await;
    let advanced = advanced.map_err(|error| match error {
        AdvanceError::Reason { .. }
        | AdvanceError::NoWitness
        | AdvanceError::Exhausted(_)
        | AdvanceError::OtherTier { .. } => Failure::usage(error),
        AdvanceError::Witness(_) | AdvanceError::Busy | AdvanceError::Store(_) => Failure::service(error),
    })?;
    let record = &advanced.record;
    let by = if advanced.joined {
        format!("by another advance, for: {}", record.reason)
    } else {
        format!("for: {}", record.reason)
    };
    let rest = witness::register_with_the_rest(record, databases.len());
    let begun = format!(
        "epoch {} of tier {} is in force in cluster {}, {by}; {rest}",
        record.epoch, record.tier, record.cluster_id
    );
    let said = say::answer(&format!("{begun}\n"));
    if said.is_err() {
        // It cannot be asked for again: the epoch is in force.
        say::remark(&begun);
    }
    for database in &databases {
        // The epoch is in force whether or not it is remembered; `fence epoch watch` does the same.
        if let Err(error) = store.attend(database).await {
            say::remark(&format!("warning: {}", crate::exit::chain(&error)));
        }
    }
    said.map(|()| Ending::Done)
}
