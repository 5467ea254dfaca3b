//! Questions to the guard whose right answers are known beforehand, asked in every guarded half once its scenario is over.

mod asked;
mod column;
mod enforced;
mod front;
mod mark;
mod races;
mod rolled_back;

pub(crate) use rolled_back::roll_back;

use crate::run::RunError;
use crate::scenario::Half;
use crate::target::Guard;

/// Asks everything that this class's guard can be asked, and records the answers.
pub(crate) async fn ask(half: &Half<'_>) -> Result<(), RunError> {
    match half.task.class.guard {
        Guard::Mark => {
            front::ask(half).await?;
            mark::ask(half).await?;
            races::ask(half).await?;
            enforced::ask(half).await
        }
        Guard::Column => column::ask(half).await,
    }
}
