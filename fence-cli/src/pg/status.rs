//! `fence pg status`: what is installed, and what it guards.

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Value, json};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use super::{AnswerArguments, Database, DatabaseArguments, ServerError};
use crate::exit::{Ending, Failure};
use crate::say;

/// Where.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    database: DatabaseArguments,
    #[command(flatten)]
    answer: AnswerArguments,
}

impl StatusArguments {
    pub(super) fn json(&self) -> bool {
        self.answer.json
    }
}

/// Which files of the guard a database has, measured against this command's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Installed {
    /// None.
    Nothing,
    /// All of them. Those that psql applied are known by name alone.
    Whole,
    /// These are missing, or other than this command's.
    Behind(Vec<String>),
    /// It has one that this command does not know.
    Newer(String),
}

impl Installed {
    pub(crate) async fn read(database: &mut Database) -> Result<Installed, Failure> {
        if !database.has_guard().await? {
            return Ok(Installed::Nothing);
        }
        let rows = database
            .run("SELECT m.name, to_jsonb(m) ->> 'sha256' AS sha256 FROM fence.migration m ORDER BY m.name")
            .await?;
        let mut ledger = Vec::new();
        for row in &rows {
            ledger.push((text(row, "name")?.unwrap_or_default(), text(row, "sha256")?));
        }
        Ok(Installed::of(&ledger))
    }

    /// Whether the database can be asked for findings.
    pub(crate) fn has_doctor(&self) -> bool {
        match self {
            Installed::Nothing => false,
            Installed::Behind(files) => !files.iter().any(|file| file.ends_with("_doctor.sql")),
            Installed::Whole | Installed::Newer(_) => true,
        }
    }

    fn of(ledger: &[(String, Option<String>)]) -> Installed {
        let known = |name: &str| {
            fence_pg::MIGRATIONS
                .iter()
                .any(|migration| migration.name == name)
        };
        if let Some((name, _)) = ledger.iter().find(|(name, _)| !known(name)) {
            return Installed::Newer(name.clone());
        }
        let behind: Vec<String> = fence_pg::MIGRATIONS
            .iter()
            .filter(|migration| {
                let row = ledger.iter().find(|(name, _)| name == migration.name);
                match row {
                    None => true,
                    Some((_, sha256)) => sha256
                        .as_ref()
                        .is_some_and(|sha256| *sha256 != migration.sha256()),
                }
            })
            .map(|migration| migration.name.to_owned())
            .collect();
        match behind.is_empty() {
            true => Installed::Whole,
            false => Installed::Behind(behind),
        }
    }

    fn words(&self) -> String {
        match self {
            Installed::Nothing => "the guard is not installed: fence pg migrate installs it".to_owned(),
            Installed::Whole => "the guard is installed and up to date".to_owned(),
            Installed::Behind(files) => format!(
                "the guard is behind this command, by {}: fence pg migrate",
                files.join(", ")
            ),
            Installed::Newer(file) => format!("the guard is newer than this command: it has {file}"),
        }
    }
}

pub(super) async fn run(arguments: &StatusArguments) -> Result<Ending, Failure> {
    let mut database = arguments.database.connect("fence pg status").await?;
    let installed = Installed::read(&mut database).await?;
    let whole = matches!(installed, Installed::Whole | Installed::Newer(_));
    let (classes, tables) = match whole {
        true => (
            objects(
                &mut database,
                CLASSES,
                &["class", "tier", "mode", "marks", "would_be_refused"],
            )
            .await?,
            objects(&mut database, TABLES, &["table", "guard", "class", "columns"]).await?,
        ),
        false => (Vec::new(), Vec::new()),
    };
    database.close().await;
    let words = installed.words();
    if arguments.answer.json {
        let behind = match &installed {
            Installed::Behind(files) => files.clone(),
            _ => Vec::new(),
        };
        let status = json!({
            "installed": installed != Installed::Nothing,
            "behind": behind,
            "words": words,
            "classes": classes,
            "tables": tables,
        });
        say::answer(&format!("{status:#}\n"))?;
        return Ok(Ending::Done);
    }
    let mut out = format!("{}\n", say::plain(&words));
    if whole {
        out.push_str(&table(
            "classes",
            &["class", "tier", "mode", "marks", "would_be_refused"],
            &classes,
        ));
        out.push_str(&table(
            "guarded tables",
            &["table", "guard", "class", "columns"],
            &tables,
        ));
    }
    say::answer(&out)?;
    Ok(Ending::Done)
}

/// The classes; of those that observe, how many transactions of the last day would have been refused.
const CLASSES: &str = "\
SELECT c.name AS class, coalesce(c.tier, '-') AS tier, c.mode::text AS mode,
       (SELECT count(*) FROM fence.high_water h WHERE h.class = c.name)::text AS marks,
       (SELECT coalesce(sum(o.transactions), 0) FROM fence.observed o
        WHERE o.class = c.name AND o.last_at > clock_timestamp() - interval '1 day')::text AS would_be_refused
FROM fence.class c ORDER BY c.name";

/// The tables that were protected.
const TABLES: &str = "\
SELECT g.relation::text AS table, g.guard, g.class,
       array_to_string(g.key_columns, ', ') || coalesce('; token ' || g.token_column, '') AS columns
FROM fence.guarded g ORDER BY 1, 2";

async fn objects(database: &mut Database, sql: &str, columns: &[&str]) -> Result<Vec<Value>, Failure> {
    let mut objects = Vec::new();
    for row in database.run(sql).await? {
        let mut object = serde_json::Map::new();
        for column in columns {
            object.insert((*column).to_owned(), json!(text(&row, column)?));
        }
        objects.push(Value::Object(object));
    }
    Ok(objects)
}

fn text(row: &PgRow, column: &str) -> Result<Option<String>, Failure> {
    row.try_get(column).map_err(ServerError::failure)
}

/// A heading, and rows below the names of their columns.
fn table(heading: &str, columns: &[&str], rows: &[Value]) -> String {
    if rows.is_empty() {
        return format!("\n{heading}: none\n");
    }
    let cell = |row: &Value, column: &str| say::plain(row[column].as_str().unwrap_or_default());
    let width = |column: &str| {
        let widths = rows.iter().map(|row| cell(row, column).chars().count());
        widths.max().unwrap_or_default().max(column.len())
    };
    let mut out = format!("\n{heading}\n");
    let mut line = |cells: Vec<String>| {
        let padded: Vec<String> = columns
            .iter()
            .zip(cells)
            .map(|(column, cell)| format!("{cell:<0$}", width(column)))
            .collect();
        // Writing to a String does not fail.
        let _ = writeln!(out, "  {}", padded.join("  ").trim_end());
    };
    line(columns.iter().map(|column| column.replace('_', " ")).collect());
    for row in rows {
        line(columns.iter().map(|column| cell(row, column)).collect());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(sha256: impl Fn(&fence_pg::Migration) -> Option<String>) -> Vec<(String, Option<String>)> {
        fence_pg::MIGRATIONS
            .iter()
            .map(|file| (file.name.to_owned(), sha256(file)))
            .collect()
    }

    #[test]
    fn what_psql_applied_is_known_by_name_alone() {
        assert_eq!(Installed::of(&whole(|_| None)), Installed::Whole);
        assert_eq!(
            Installed::of(&whole(|file| Some(file.sha256()))),
            Installed::Whole
        );
    }

    #[test]
    fn a_file_that_is_missing_or_other_is_named_and_a_stranger_is_newer() {
        let mut ledger = whole(|_| None);
        let gone = ledger.pop().expect("there are files").0;
        assert_eq!(Installed::of(&ledger), Installed::Behind(vec![gone.clone()]));
        ledger.push((gone.clone(), Some("0".repeat(64))));
        assert_eq!(Installed::of(&ledger), Installed::Behind(vec![gone]));
        ledger.push(("9999_later.sql".to_owned(), None));
        assert_eq!(
            Installed::of(&ledger),
            Installed::Newer("9999_later.sql".to_owned())
        );
    }
}
