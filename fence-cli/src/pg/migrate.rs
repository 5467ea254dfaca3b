//! `fence pg migrate`: the guard's SQL, installed or brought up to date.

use std::fmt::Write as _;

use clap::Args;
use fence_pg::{InstallError, Migration};
use serde_json::json;

use super::{ChangeArguments, literal};
use crate::exit::{Ending, Failure};
use crate::say;

/// Where.
#[derive(Debug, Args)]
pub(crate) struct MigrateArguments {
    #[command(flatten)]
    change: ChangeArguments,
}

impl MigrateArguments {
    pub(super) fn json(&self) -> bool {
        self.change.answer.json
    }
}

pub(super) async fn run(arguments: &MigrateArguments) -> Result<Ending, Failure> {
    let change = &arguments.change;
    let mut database = change.database.connect("fence pg migrate").await?;
    let pending = fence_pg::sqlx::pending(&mut database.connection)
        .await
        .map_err(failure)?;
    if change.dry(&script(pending))? {
        return Ok(Ending::Done);
    }
    let applied = fence_pg::sqlx::install(&mut database.connection).await;
    let notices = database.notices.tell();
    let applied = applied.map_err(failure)?;
    database.close().await;
    match change.answer.json {
        true => say::answer(&format!(
            "{:#}\n",
            json!({ "applied": applied, "notices": notices })
        ))?,
        false if applied.is_empty() => say::answer("the guard is up to date\n")?,
        false => say::answer(&format!(
            "applied {}\nthe guard is up to date\n",
            applied.join(", ")
        ))?,
    }
    Ok(Ending::Done)
}

/// What `psql -v ON_ERROR_STOP=1` would apply: each file, and its row in the ledger.
fn script(pending: &[Migration]) -> String {
    if pending.is_empty() {
        return "-- The guard is up to date.".to_owned();
    }
    let mut script = "\\set ON_ERROR_STOP 1\n".to_owned();
    for migration in pending {
        // Writing to a String does not fail.
        let _ = write!(
            script,
            "\n-- {}\n{}\nINSERT INTO fence.migration (name, sha256) VALUES ({}, {})\n    ON CONFLICT (name) DO UPDATE SET sha256 = EXCLUDED.sha256, applied_at = clock_timestamp();\n",
            migration.name,
            migration.sql.trim_end(),
            literal(migration.name),
            literal(&migration.sha256()),
        );
    }
    script
}

fn failure(error: InstallError) -> Failure {
    match &error {
        InstallError::Newer { .. } => Failure::usage(error),
        InstallError::Migration { source, .. } | InstallError::Ledger { source } => {
            let answered = source
                .downcast_ref::<sqlx::Error>()
                .is_some_and(|source| source.as_database_error().is_some());
            match answered {
                true => Failure::usage(error),
                false => Failure::service(error),
            }
        }
    }
}
