//! One half, from an empty database to its history.

use super::half::{Assignment, Finished, Ground, Half};
use super::trouble::Trouble;
use super::{
    ScenarioId, answers, failed_commit, from_disk, held_mark, held_request, idle_transaction, late_send,
    later, legal_gap, relayed, replicas, short_pause, stale_read, stopped_resource, store, sweep,
    two_stopped, unstoppable,
};
use crate::probes;
use crate::run::{RunError, Turn};

/// Sets a half up, plays its scenario, asks the probes where there is a guard to ask, and reads everything back. It is this
/// half's turn until it is over; one that mostly waits lets another one work while it does.
pub(crate) async fn play<'a>(
    ground: Ground<'a>,
    task: Assignment<'a>,
    mut turn: Turn<'_>,
) -> Result<Finished, RunError> {
    let half = Half::open(ground, task).await?;
    if task.slot.scenario.mostly_waits() {
        turn.give_up();
    }
    let played = match task.slot.scenario {
        ScenarioId::S01 | ScenarioId::S02 | ScenarioId::S15 => late_send::play(&half).await,
        ScenarioId::S03 => legal_gap::play(&half).await,
        ScenarioId::S04 => stale_read::write_on_an_old_read(&half).await,
        ScenarioId::S04b => stale_read::fence_then_read(&half).await,
        ScenarioId::S05 => stopped_resource::play(&half).await,
        ScenarioId::S07 | ScenarioId::S29 => held_request::play(&half).await,
        ScenarioId::S08 => sweep::play(&half).await,
        ScenarioId::S09 => relayed::again(&half).await,
        ScenarioId::S12 => short_pause::only_the_writer(&half).await,
        ScenarioId::S16 => unstoppable::play(&half).await,
        ScenarioId::S17 => two_stopped::play(&half).await,
        ScenarioId::S18 => short_pause::play(&half).await,
        ScenarioId::S21 => from_disk::play(&half).await,
        ScenarioId::S24 => answers::stopped_between(&half).await,
        ScenarioId::S25 => held_mark::client_stopped(&half).await,
        ScenarioId::S25b => held_mark::backend_stopped(&half).await,
        ScenarioId::S26 => idle_transaction::play(&half).await,
        ScenarioId::S28 => answers::lost(&half).await,
        ScenarioId::S33 => later::play(&half).await,
        ScenarioId::S34 => replicas::restarted(&half).await,
        ScenarioId::S35 => replicas::late_on_each(&half).await,
        ScenarioId::S37 => relayed::once_more(&half).await,
        ScenarioId::S39 | ScenarioId::S67 | ScenarioId::S69 => {
            relayed::otherwise(&half, task.slot.scenario.alteration()).await
        }
        ScenarioId::S47 | ScenarioId::S48 => {
            relayed::without_a_token(&half, task.slot.scenario.alteration()).await
        }
        ScenarioId::S53 => failed_commit::play(&half).await,
        ScenarioId::S75 => store::stopped(&half).await,
        ScenarioId::S82 => store::gone(&half).await,
    };
    let played = match played {
        Ok(()) => half.holders_end().await,
        failed => failed,
    };
    let mut trouble = match played {
        Ok(()) => None,
        Err(Trouble::Declared(error)) => return Err(error),
        Err(Trouble::Lost { what, source }) => return Err(RunError::Lost { what, source }),
        Err(trouble) => Some(trouble),
    };
    half.end_holders().await?;
    turn.take_again().await;
    half.shows_the_writes(trouble.is_none()).await?;
    if trouble.is_none() {
        half.was_freshened()?;
    }
    if !half.is_twin() {
        // A guard under test may do anything, also to the probes' own statements: what they showed by then still counts.
        let asked = probes::ask(&half).await.map_err(Trouble::Probes);
        trouble = trouble.or(asked.err());
    }
    half.finish(trouble).await
}
