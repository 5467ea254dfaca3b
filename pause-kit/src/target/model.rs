//! The description of a target.

use std::path::PathBuf;

use serde::Deserialize;

use super::{Front, Holder, RequestForm, Template};
use crate::scenario::ScenarioId;

/// A resource and how a half of a scenario sets it up.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Where every command of the target starts: the folder of the file that declares it.
    #[serde(skip)]
    pub folder: PathBuf,
    /// The folder of the guard's SQL. Every `*.sql` in it is applied in name order, as it stands there when the run begins.
    pub guard_sql: PathBuf,
    /// The SQL that makes the guard admit everything, applied after `guard_sql` in defeated halves alone. A target has
    /// either this or [`defeat`](Self::defeat).
    pub defeat_sql: Option<PathBuf>,
    /// How else the guard is defeated.
    pub defeat: Option<Defeat>,
    /// What is done to lock stores and database before the resource starts, in order.
    #[serde(default)]
    pub setup: Vec<Step>,
    /// The resource's own process; none where holders write to the database themselves.
    pub resource: Option<Resource>,
}

impl Target {
    /// The program that a command's first word names: in PATH where the word has no slash, else seen from the folder.
    pub fn program(&self, word: &str) -> PathBuf {
        match word.contains('/') {
            true => self.folder.join(word.strip_prefix("./").unwrap_or(word)),
            false => word.into(),
        }
    }
}

/// How a guard is defeated without touching it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Defeat {
    /// The kit's path puts the newest holder's claim in the place of an older one's in `Fencing-Token`, once it is granted.
    FresherToken,
}

/// The resource's own process.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Program and arguments.
    pub command: Vec<Template>,
    /// It is ready when a line on its standard output begins with this. The rest of the line is its address, unless the
    /// command takes `{port}`. Left out, it is ready when that port takes a connection.
    pub ready: Option<String>,
    /// Program and arguments of a process that makes what the resource has accepted for later, and ends with status 0 once
    /// nothing of that is left, whatever came of each.
    pub worker: Option<Vec<Template>>,
}

impl Resource {
    /// Whether the kit chooses the port on which it listens.
    pub fn takes_port(&self) -> bool {
        self.command
            .iter()
            .any(|word| word.names().any(|name| name == "port"))
    }
}

/// One step of a set-up: exactly one of the three.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// A program that must end with status 0.
    pub command: Option<Vec<Template>>,
    /// SQL for the half's database, run as its owner.
    pub sql: Option<Template>,
    /// A request to the resource that must be answered 2xx.
    pub request: Option<RequestForm>,
}

/// What compares the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// A row of `fence.high_water`, admitted first in the writing transaction.
    Mark,
    /// A column of the guarded row, compared in the writing statement.
    Column,
}

/// How one class is proven.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassProof {
    /// The target's name.
    pub target: String,
    /// The scenarios to run.
    pub scenarios: Vec<ScenarioId>,
    /// The form of the class's keys: a text with `{n}`.
    pub keys: Template,
    /// What is done once the resource is ready, before any holder starts.
    #[serde(default)]
    pub prepare: Vec<Step>,
    /// The process that takes the lock and writes.
    pub holder: Holder,
    /// The resource's front door, where holders write through the resource. Without it they write to the database.
    pub front: Option<Front>,
    /// What a write does to its job, as a past participle such as `refunded`; for plain words only.
    pub deed: String,
    /// How long the guard lets an operation wait for an older holder's open transaction, in milliseconds.
    pub deadline_ms: u64,
    /// After how long the server ends a transaction whose client is idle, in milliseconds.
    pub idle_ms: u64,
    /// How the kit reads which writes there are.
    pub read: Read,
    /// SQL that shows every account and its balance, where there are balances.
    pub balances: Option<Template>,
    /// How a write shows in the database's commit order.
    pub writes: LedgerWrites,
    /// What the path replaces in defeated halves, where the guard's bounds are defeated and not its comparison.
    #[serde(default)]
    pub defeat_on_path: Vec<Replacement>,
}

/// How the kit reads which writes there are, on a key: exactly one of the two.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// A path whose JSON answer is an array of objects, or an object that holds one.
    pub path: Option<Template>,
    /// The member of each object that is the write's id.
    pub id: Option<String>,
    /// SQL whose first column is the write's id.
    pub sql: Option<Template>,
}

/// How a write shows in the database's commit order.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerWrites {
    /// The table, `schema.table`.
    pub table: String,
    /// The column of the lock's key.
    pub key: String,
    /// The column of the write's id. Up to its last `:`, or whole, it is the id of the grant under which it was written.
    pub id: String,
    /// The column of the token, where the row has one.
    pub token: Option<String>,
    /// SQL by which somebody who forgets the token would write on `{key}`, for a guard whose table is to refuse it.
    pub forgetful: Option<Template>,
    /// The column that tells what the write was for; two writes with one job are the same work done twice.
    pub job: Option<String>,
    /// The columns that tell what it moved, where it moves money.
    pub moves: Option<MoveColumns>,
}

/// The columns of a transfer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveColumns {
    /// The account that is debited.
    pub from: String,
    /// The account that is credited.
    pub to: String,
    /// How much, in minor units.
    pub amount: String,
}

/// Bytes of equal length that the path puts in place of others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// What is looked for on the way to the database.
    pub find: String,
    /// What goes on in its place.
    pub replace: String,
}
