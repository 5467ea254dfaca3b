//! What operators do to marks: floors, pruning, lowering, and stopping every admission.

use tokio_postgres::Client;

use super::asked::{Ask, reply, run};
use crate::history::ProbeKind as Kind;
use crate::run::RunError;
use crate::scenario::Half;

const CLASS: &str = "pause-kit.operated";
const FLOOR: i64 = 20;

pub(super) async fn ask(half: &Half<'_>, sql: &Client) -> Result<(), RunError> {
    run(&half.sql, &format!("SELECT fence.declare('{CLASS}')")).await?;
    let on = |kind, key, token| Ask::new(kind, CLASS, key, token);
    // What an operator's statement is answered shows in the questions that follow it.
    let operator = async |statement: &str| reply(&half.sql, statement).await;

    for (key, token) in [("low", 5), ("pruned", 6), ("high", 50), ("forged", 90)] {
        on(Kind::Prepare, key, token).put(half, sql).await?;
    }
    operator(&format!("SELECT fence.raise_floor('{CLASS}', {FLOOR})")).await?;
    on(Kind::Smaller, "low", FLOOR - 1)
        .meets(FLOOR)
        .put(half, sql)
        .await?;
    on(Kind::Smaller, "untouched", FLOOR - 1)
        .meets(FLOOR)
        .put(half, sql)
        .await?;
    on(Kind::Larger, "low", FLOOR).put(half, sql).await?;
    operator(&format!("SELECT fence.prune('{CLASS}')")).await?;
    on(Kind::Smaller, "pruned", 7).meets(FLOOR).put(half, sql).await?;
    operator(&format!(
        "UPDATE fence.class SET floor = 1 WHERE name = '{CLASS}'"
    ))
    .await?;
    on(Kind::Smaller, "pruned", 8).meets(FLOOR).put(half, sql).await?;

    // Only the logged path lowers a mark, and none removes one above the floor.
    for statement in [
        "UPDATE fence.high_water SET token = 30 WHERE class = '{}' AND key = 'high'",
        "DELETE FROM fence.high_water WHERE class = '{}' AND key = 'high'",
        "TRUNCATE fence.high_water",
    ] {
        operator(&statement.replace("{}", CLASS)).await?;
        on(Kind::Smaller, "high", 49).meets(50).put(half, sql).await?;
    }
    operator(&format!(
        "SELECT fence.danger_lower('{CLASS}', 'forged', 30, NULL, 'a probe of lowering')"
    ))
    .await?;
    on(Kind::Smaller, "forged", 29).meets(30).put(half, sql).await?;
    on(Kind::EqualAgain, "forged", 30).put(half, sql).await?;
    on(Kind::Larger, "forged", 31).put(half, sql).await?;
    on(Kind::WrittenDown, "forged", 30)
        .with(half, &half.sql, &logged("a probe of lowering"))
        .await?;

    operator("SELECT fence.stop('a probe of stopping')").await?;
    on(Kind::Stopped, "high", 51).put(half, sql).await?;
    on(Kind::Stopped, "high", 50).put(half, sql).await?;
    on(Kind::Stopped, "unheard-of", 51).put(half, sql).await?;
    operator("SELECT fence.acknowledge('a probe', nothing_lost => true)").await?;
    on(Kind::Larger, "high", 52).put(half, sql).await?;
    on(Kind::WrittenDown, "high", 52)
        .with(half, &half.sql, &logged("a probe of stopping"))
        .await
}

/// Fails unless a line of the log has this reason.
pub(super) fn logged(reason: &str) -> String {
    format!("DO $$ BEGIN ASSERT EXISTS (SELECT FROM fence.danger_log WHERE reason = '{reason}'); END $$")
}
