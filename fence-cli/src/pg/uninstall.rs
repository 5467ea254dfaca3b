//! `fence pg uninstall`: the guard removed, with every mark.

use clap::Args;
use serde_json::json;
use sqlx::Row as _;

use super::{ChangeArguments, Database, ServerError};
use crate::exit::{Ending, Failure};
use crate::say;

/// What is run, and what `--dry-run` prints.
const SQL: &str = "BEGIN;\nSET LOCAL lock_timeout = '1s';\nSET LOCAL client_min_messages = warning;\nDROP SCHEMA fence CASCADE;\nCOMMIT;";

/// Where, and whether it is meant.
#[derive(Debug, Args)]
pub(crate) struct UninstallArguments {
    /// Yes, every mark is to be lost: a token that was once refused would then be accepted
    #[arg(long)]
    danger_drop_all_marks: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

impl UninstallArguments {
    pub(super) fn json(&self) -> bool {
        self.change.answer.json
    }
}

/// It was not confirmed.
#[derive(Debug, thiserror::Error)]
#[error("this would lose {lost}; say --danger-drop-all-marks if that is meant")]
struct Unconfirmed {
    lost: String,
}

pub(super) async fn run(arguments: &UninstallArguments) -> Result<Ending, Failure> {
    let change = &arguments.change;
    if change.dry(SQL)? {
        return Ok(Ending::Done);
    }
    let mut database = change.guarded("fence pg uninstall").await?;
    let lost = lost(&mut database).await?;
    if !arguments.danger_drop_all_marks {
        return Err(Failure::usage(Unconfirmed { lost }));
    }
    database.run(SQL).await?;
    database.close().await;
    match change.answer.json {
        true => say::answer(&format!("{:#}\n", json!({ "lost": lost })))?,
        false => say::answer(&format!("removed, and with it {}\n", say::plain(&lost)))?,
    }
    Ok(Ending::Done)
}

/// What goes with the guard, in words.
async fn lost(database: &mut Database) -> Result<String, Failure> {
    let rows = database
        .run(
            "SELECT (SELECT count(*) FROM fence.high_water) AS marks,
                    (SELECT count(*) FROM fence.class) AS classes,
                    (SELECT string_agg(DISTINCT t.tgrelid::regclass::text, ', ') FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
                     WHERE p.pronamespace = 'fence'::regnamespace AND t.tgname IN ('fence_enforce', 'fence_column')) AS tables",
        )
        .await?;
    let row = rows
        .first()
        .ok_or_else(|| Failure::service("the server answered no row"))?;
    let marks: i64 = row.try_get("marks").map_err(ServerError::failure)?;
    let classes: i64 = row.try_get("classes").map_err(ServerError::failure)?;
    let tables: Option<String> = row.try_get("tables").map_err(ServerError::failure)?;
    let tables = tables.map_or_else(|| "of no table".to_owned(), |tables| format!("of {tables}"));
    let plural = |number: i64, one: &str, more: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {more}"),
    };
    Ok(format!(
        "{}, {} and the guard {tables}",
        plural(marks, "mark", "marks"),
        plural(classes, "class", "classes")
    ))
}
