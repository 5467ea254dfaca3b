//! The column guard, on the guarded rows themselves. It has no grant ids and no ranges, so there is less to ask.

use super::asked::{open, reply};
use crate::history::{Presented, Probe, ProbeKind, TokenNumber};
use crate::run::RunError;
use crate::scenario::Half;

/// The older holder's token on a row that nobody contests, which is applied; and on the contested row by a statement that
/// does not compare, which the trigger refuses.
pub(super) async fn ask(half: &Half<'_>) -> Result<(), RunError> {
    let holders = half.holders();
    let granted = |index: usize| holders.get(index).and_then(|holder| holder.grant().cloned());
    let (Some(older), Some(newer), Some(column)) =
        (granted(0), granted(1), &half.task.class.proof.writes.token)
    else {
        // Nothing was granted, so nothing was shown; the missing probes say so.
        return Ok(());
    };
    let writes = &half.task.class.proof.writes;
    let [contested, _, bystander] = &half.keys;
    let token = older.token;
    let update = |key: &fence_core::Key| {
        let key = key.as_str().replace('\'', "''");
        format!(
            "UPDATE {} SET {column} = {token} WHERE {} = '{key}'",
            writes.table, writes.key
        )
    };
    let sql = open(half).await?;
    for (kind, key, seen, statement) in [
        (
            ProbeKind::Bystander,
            bystander,
            None,
            format!("{} AND {column} <= {token}", update(bystander)),
        ),
        (
            ProbeKind::Smaller,
            contested,
            Some(newer.token),
            update(contested),
        ),
    ] {
        let reply = reply(&sql, &statement).await?;
        half.recorder.record(
            half.recorder.now(),
            Probe {
                probe: kind,
                class: half.task.class.name.to_string(),
                key: key.to_string(),
                presented: Presented {
                    token: Some(token.to_string()),
                    grant: None,
                },
                seen: seen.map(TokenNumber::from),
                id: None,
                reply,
                sqlstate: None,
                detail: None,
            },
        );
    }
    Ok(())
}
