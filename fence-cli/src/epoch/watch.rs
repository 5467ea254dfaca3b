//! `fence epoch watch`.

use std::time::Duration;

use clap::Args;
use fence_lock::{AcquireError, AttendError, Witness as _};

use super::witness::WitnessArguments;
use crate::exit::{Ending, Failure};
use crate::say;
use crate::store::TierArguments;

/// Which store, and which witnesses.
#[derive(Debug, Args)]
pub(crate) struct WatchArguments {
    #[command(flatten)]
    store: TierArguments,
    #[command(flatten)]
    witnesses: WitnessArguments,
    /// Look once, and end
    #[arg(long)]
    once: bool,
}

/// How long between two looks.
const EVERY: Duration = Duration::from_secs(10);

/// There is nothing to keep current.
#[derive(Debug, thiserror::Error)]
#[error("name a witness: --witness postgresql://USER@HOST/NAME")]
struct NoWitness;

/// Ends with 1 as soon as the store is found sealed, or not initialised; what cannot be reached is tried again, unless asked
/// for once.
pub(super) async fn run(arguments: &WatchArguments) -> Result<Ending, Failure> {
    if arguments.witnesses.is_empty() {
        return Err(Failure::usage(NoWitness));
    }
    let databases = arguments.witnesses.open().await?;
    let store = arguments.store.etcd().await?;
    let mut told = Vec::new();
    loop {
        for database in &databases {
            let attended = match store.attend(database).await {
                Ok(attended) => attended,
                Err(AttendError::Store(
                    closed @ (AcquireError::Sealed(_) | AcquireError::NotInitialised { .. }),
                )) => {
                    say::answer(&format!("{}\n", crate::exit::chain(&closed)))?;
                    return Ok(Ending::Found);
                }
                Err(error) if arguments.once => return Err(Failure::service(error)),
                Err(error) => {
                    say::remark(&format!("warning: {}", crate::exit::chain(&error)));
                    continue;
                }
            };
            let (memory, name) = (&attended.memory, database.name());
            let line = format!(
                "{name} knows epoch {} of tier {}",
                memory.epoch(),
                arguments.store.tier()
            );
            if arguments.once || !told.contains(&line) {
                say::show(&format!("{line}, at link {}\n", memory.generation()));
                told.push(line);
            }
        }
        if arguments.once {
            return Ok(Ending::Done);
        }
        tokio::time::sleep(EVERY).await;
    }
}
