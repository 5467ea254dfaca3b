//! Commands that are one call in the database.

use clap::Args;
use fence_core::{ClassName, TierName};
use serde_json::json;

use super::{ChangeArguments, literal, names};
use crate::exit::{Ending, Failure};
use crate::say;

/// Which table, for which class.
#[derive(Debug, Args)]
pub(crate) struct ProtectArguments {
    /// The table, as SQL writes it, such as orders or shop."Orders"
    #[arg(value_name = "TABLE")]
    table: String,
    /// The class of locks that its writers hold, such as shop.order
    #[arg(value_name = "CLASS")]
    class: ClassName,
    /// The columns whose values are the key, in order
    #[arg(value_name = "KEY_COLUMN", required = true)]
    key_columns: Vec<String>,
    /// Declare the class first, with tokens of this tier of lock stores
    #[arg(long, value_name = "TIER")]
    tier: Option<TierName>,
    /// Count what would be refused, and let it through; `fence pg enforce` ends that
    #[arg(long)]
    observe: bool,
    /// Use the column guard instead: compare the token in this column of the row
    #[arg(long, value_name = "COLUMN")]
    token_column: Option<String>,
    #[command(flatten)]
    change: ChangeArguments,
}

/// Which class.
#[derive(Debug, Args)]
pub(crate) struct EnforceArguments {
    /// The class
    #[arg(value_name = "CLASS")]
    class: ClassName,
    #[command(flatten)]
    change: ChangeArguments,
}

/// Which table.
#[derive(Debug, Args)]
pub(crate) struct UnprotectArguments {
    /// The table, as SQL writes it
    #[arg(value_name = "TABLE")]
    table: String,
    /// Take the column guard off, not the mark guard
    #[arg(long)]
    column: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

/// Which role.
#[derive(Debug, Args)]
pub(crate) struct GrantArguments {
    /// The role, as it is written: neither quoted nor folded
    #[arg(value_name = "ROLE")]
    role: String,
    /// Take it all back from the role
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

impl ProtectArguments {
    pub(super) fn json(&self) -> bool {
        self.change.answer.json
    }

    fn sql(&self) -> Result<String, Failure> {
        let (table, class) = (literal(&self.table), literal(self.class.as_str()));
        let mode = if self.observe {
            ", 'observe'::fence.mode"
        } else {
            ""
        };
        let call = match (&self.token_column, self.key_columns.as_slice()) {
            (None, columns) if self.observe => {
                format!("fence.protect({table}, {class}, {}{mode})", names(columns))
            }
            (None, columns) => {
                let columns: Vec<String> = columns.iter().map(|column| literal(column)).collect();
                format!("fence.protect({table}, {class}, {})", columns.join(", "))
            }
            (Some(token), [key]) => {
                format!(
                    "fence.protect_column({table}, {class}, {}, {}{mode})",
                    literal(key),
                    literal(token)
                )
            }
            (Some(_), _) => return Err(Failure::usage("the column guard has one key column")),
        };
        let declare = self
            .tier
            .as_ref()
            .map(|tier| format!("SELECT fence.declare({class}, {});\n", literal(tier.as_str())));
        Ok(format!(
            "BEGIN;\n{}SELECT {call};\nCOMMIT;",
            declare.unwrap_or_default()
        ))
    }
}

impl EnforceArguments {
    pub(super) fn json(&self) -> bool {
        self.change.answer.json
    }
}

impl UnprotectArguments {
    pub(super) fn json(&self) -> bool {
        self.change.answer.json
    }
}

impl GrantArguments {
    pub(super) fn json(&self) -> bool {
        self.change.answer.json
    }
}

pub(super) async fn protect(arguments: &ProtectArguments) -> Result<Ending, Failure> {
    let sql = arguments.sql()?;
    let (table, class) = (&arguments.table, &arguments.class);
    let done = match (arguments.observe, &arguments.token_column) {
        (true, _) => format!(
            "{table} is observed for class {class}: unadmitted writes are counted and let through, until fence pg enforce {class}"
        ),
        (false, None) => format!("{table} is guarded for class {class}"),
        (false, Some(column)) => format!("{table} is guarded for class {class}, by column {column}"),
    };
    change(&arguments.change, "fence pg protect", &sql, &done).await
}

pub(super) async fn enforce(arguments: &EnforceArguments) -> Result<Ending, Failure> {
    let class = &arguments.class;
    let sql = format!("SELECT fence.enforce({});", literal(class.as_str()));
    let done = format!("class {class} is enforced: unadmitted writes are refused");
    change(&arguments.change, "fence pg enforce", &sql, &done).await
}

pub(super) async fn unprotect(arguments: &UnprotectArguments) -> Result<Ending, Failure> {
    let function = match arguments.column {
        true => "unprotect_column",
        false => "unprotect",
    };
    let sql = format!("SELECT fence.{function}({});", literal(&arguments.table));
    let done = format!("{} is no longer guarded; its marks stay", arguments.table);
    change(&arguments.change, "fence pg unprotect", &sql, &done).await
}

pub(super) async fn grant(arguments: &GrantArguments) -> Result<Ending, Failure> {
    let role = &arguments.role;
    let (sql, done) = match arguments.revoke {
        false => (
            format!("SELECT fence.grant_application({});", literal(role)),
            format!("role {role} may use the guard, and nothing else of it"),
        ),
        true => (
            format!("SELECT fence.revoke_application({});", literal(role)),
            format!("role {role} may no longer use the guard"),
        ),
    };
    change(&arguments.change, "fence pg grant", &sql, &done).await
}

/// Prints the SQL, or runs it and says what is so now.
async fn change(
    arguments: &ChangeArguments,
    command: &str,
    sql: &str,
    done: &str,
) -> Result<Ending, Failure> {
    if arguments.dry(sql)? {
        return Ok(Ending::Done);
    }
    let mut database = arguments.guarded(command).await?;
    let ran = database.run(sql).await;
    let notices = database.notices.tell();
    ran?;
    database.close().await;
    match arguments.answer.json {
        true => say::answer(&format!("{:#}\n", json!({ "done": done, "notices": notices })))?,
        false => say::answer(&format!("{}\n", say::plain(done)))?,
    }
    Ok(Ending::Done)
}
