//! `fence epoch init`.

use clap::Args;
use fence_core::Epoch;
use fence_lock::{Claim, InitError};

use super::classes::ClassArguments;
use super::epoch;
use super::witness::{self, WitnessArguments};
use crate::exit::{Ending, Failure};
use crate::say;
use crate::store::TierArguments;

/// Which store, and which epoch.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    #[command(flatten)]
    store: TierArguments,
    /// The epoch, 1 to 32767; above every epoch that any store of this system ever granted in
    #[arg(long, value_name = "N", default_value = "1", value_parser = epoch)]
    epoch: Epoch,
    /// Why the epoch begins, for those who read the record later
    #[arg(long, value_name = "TEXT", default_value = "a new lock store")]
    reason: String,
    #[command(flatten)]
    classes: ClassArguments,
    #[command(flatten)]
    witnesses: WitnessArguments,
}

/// A witness knows better than to begin there.
#[derive(Debug, thiserror::Error)]
#[error(
    "{witness} knows tier {tier} to be in epoch {known} already: a store that lost its record is opened by `fence epoch advance`, a new one by `fence epoch init --epoch` above {highest}"
)]
struct Known {
    witness: String,
    tier: fence_core::TierName,
    known: Epoch,
    highest: Epoch,
}

/// Another tier has the number, or a higher one.
#[derive(Debug, thiserror::Error)]
#[error(
    "{witness} has registered epoch {epoch} or a higher one for another tier: say --epoch with a higher number"
)]
struct Taken {
    witness: String,
    epoch: Epoch,
}

pub(super) async fn run(arguments: &InitArguments) -> Result<Ending, Failure> {
    let tier = arguments.store.tier();
    let classes = arguments.classes.of(tier)?;
    let databases = arguments.witnesses.open().await?;
    let witnesses = witness::all(&databases);
    let store = arguments.store.etcd().await?;
    let status = store.epoch_status().await.map_err(Failure::service)?;
    // A store that has a record is left alone, and so are its witnesses.
    let witnesses = if status.record.is_some() {
        Vec::new()
    } else {
        witnesses
    };
    for witness in &witnesses {
        let known = witness.known().await.map_err(Failure::service)?;
        let highest = known.iter().map(|(_, epoch)| *epoch).max();
        let ours = known
            .iter()
            .filter(|(of, _)| of == tier)
            .map(|(_, epoch)| *epoch)
            .max();
        if let (Some(known), Some(highest)) = (ours, highest)
            && known >= arguments.epoch
        {
            let (witness, tier) = (witness.name(), tier.clone());
            return Err(Failure::usage(Known {
                witness,
                tier,
                known,
                highest,
            }));
        }
        let claim = witness
            .register(tier, arguments.epoch)
            .await
            .map_err(Failure::service)?;
        if claim == Claim::Taken {
            let (witness, epoch) = (witness.name(), arguments.epoch);
            return Err(Failure::usage(Taken { witness, epoch }));
        }
    }
    let begun = store
        .init_with(arguments.epoch, &arguments.reason, &classes)
        .await;
    let record = begun.map_err(|error| match error {
        InitError::Store(_) => Failure::service(error),
        InitError::Exists { .. } | InitError::Sealed { .. } | InitError::Reason { .. } => {
            Failure::usage(error)
        }
    })?;
    let begun = format!(
        "epoch {} of tier {} begins in cluster {}; {}",
        record.epoch,
        record.tier,
        record.cluster_id,
        witness::register_with_the_rest(&record, databases.len())
    );
    if let Err(failure) = say::answer(&format!("{begun}\n")) {
        // It cannot be asked for again: the record stands.
        say::remark(&begun);
        return Err(failure);
    }
    Ok(Ending::Done)
}
