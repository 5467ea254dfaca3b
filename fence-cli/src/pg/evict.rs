//! `fence pg evict`: frees a key that an older holder's open transaction keeps.

use clap::Args;
use fence_core::{ClassName, Key, Token};
use serde_json::json;
use sqlx::Row as _;

use super::{ChangeArguments, ServerError, literal};
use crate::exit::{Ending, Failure};
use crate::say;

/// At the end of its `--help`.
const HELP: &str = "\
Exit code 1: the key is still held; the answer says by whom. It ends the backend of whoever holds the key, if the token presented
is above the key's mark and that transaction is still the one that was found. To end another role's backend the caller needs that
role or pg_signal_backend.";

/// Which key, by which right.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct EvictArguments {
    /// The class
    #[arg(value_name = "CLASS")]
    class: ClassName,
    /// The key, as it is admitted
    #[arg(value_name = "KEY")]
    key: Key,
    /// The token of the newer holder for whom the key is freed
    #[arg(value_name = "TOKEN", allow_negative_numbers = true)]
    token: Token,
    #[command(flatten)]
    change: ChangeArguments,
}

impl EvictArguments {
    pub(super) fn json(&self) -> bool {
        self.change.answer.json
    }
}

pub(super) async fn run(arguments: &EvictArguments) -> Result<Ending, Failure> {
    let change = &arguments.change;
    let sql = format!(
        "SELECT pid, transaction::text, outcome, detail FROM fence.evict({}, {}, {});",
        literal(arguments.class.as_str()),
        literal(arguments.key.as_str()),
        arguments.token
    );
    if change.dry(&sql)? {
        return Ok(Ending::Done);
    }
    let mut database = change.guarded("fence pg evict").await?;
    let rows = database.run(&sql).await;
    let notices = database.notices.tell();
    let mut held = false;
    let (mut lines, mut objects) = (String::new(), Vec::new());
    for row in rows? {
        let pid: Option<i32> = row.try_get("pid").map_err(ServerError::failure)?;
        let text = |column: &str| {
            row.try_get::<Option<String>, _>(column)
                .map_err(ServerError::failure)
        };
        let outcome = text("outcome")?.unwrap_or_default();
        held |= !["evicted", "committed", "nobody"].contains(&outcome.as_str());
        let detail = text("detail")?.unwrap_or_default();
        lines.push_str(&say::plain(&format!("{outcome}: {detail}")));
        lines.push('\n');
        objects.push(
            json!({ "pid": pid, "transaction": text("transaction")?, "outcome": outcome, "detail": detail }),
        );
    }
    database.close().await;
    match change.answer.json {
        true => say::answer(&format!(
            "{:#}\n",
            json!({ "holders": objects, "held": held, "notices": notices })
        ))?,
        false => say::answer(&lines)?,
    }
    match held {
        true => Ok(Ending::Found),
        false => Ok(Ending::Done),
    }
}
