//! Questions to the guard whose right answers are known beforehand, asked in every guarded half once its scenario is over.

mod asked;
mod batches;
mod column;
mod enforced;
mod front;
mod losses;
mod mark;
mod modes;
mod races;
mod rolled_back;
mod tokened;

pub(crate) use rolled_back::roll_back;

use tokio_postgres::Client;

use asked::open;

use crate::run::RunError;
use crate::scenario::{Half, connect};
use crate::target::Guard;

/// Asks everything that this class's guard can be asked, and records the answers.
pub(crate) async fn ask(half: &Half<'_>) -> Result<(), RunError> {
    match half.task.class.guard {
        Guard::Mark => {
            front::ask(half).await?;
            mark::ask(half).await?;
            races::ask(half).await?;
            let own = [open(half).await?, open(half).await?, open(half).await?];
            let applier = as_replica(half).await?;
            enforced::forget(half, &own[0]).await?;
            batches::ask(half, &own).await?;
            enforced::ask(half, &own, &applier).await?;
            tokened::ask(half, &own[0], &applier).await?;
            modes::ask(half, &own, &applier).await?;
            losses::ask(half, &own[0]).await
        }
        Guard::Column => column::ask(half).await,
    }
}

/// A superuser's connection in the role of whoever applies replicated changes.
async fn as_replica(half: &Half<'_>) -> Result<Client, RunError> {
    let postgres = half.ground.postgres;
    let url = postgres.superuser_url_of(half.database.database());
    let applier = connect(&url).await?;
    asked::run(&applier, "SET session_replication_role = replica").await?;
    Ok(applier)
}
