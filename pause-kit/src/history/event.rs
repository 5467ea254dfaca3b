//! The kinds of events, one struct a kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::observed::{At, Op, Presented, Reply, TokenNumber};

macro_rules! events {
    ($( $(#[$doc:meta])* $kind:ident($body:ident), )*) => {
        /// Something that happened. The time of it stands beside it in the history.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum Event {
            $( $(#[$doc])* $kind($body), )*
        }

        $(
            impl From<$body> for Event {
                fn from(body: $body) -> Event {
                    Event::$kind(body)
                }
            }
        )*
    };
}

events! {
    /// The lock store granted; at the time when the kit saw it.
    Grant(GrantRecord),
    /// The lock store ended a lease, whatever the cause; at the time when the kit saw it.
    LeaseEnd(LeaseEnd),
    /// A process and all below it stood still; at the time when the last task was confirmed stopped.
    Stop(Stop),
    /// The path kept bytes back; at the time when the first of them reached it.
    Hold(Hold),
    /// A request lay unread in the resource's socket; at the time when that was seen.
    Queued(Queued),
    /// A backend was seen waiting for another one; at the time when that was seen.
    Waiting(Waiting),
    /// A process was killed; at the time when it was reaped.
    Killed(Killed),
    /// A holder's request; at the time when its first byte was seen.
    Request(Request),
    /// The answer to a request; at the time when its last byte was passed to the holder.
    Answer(Answer),
    /// A request that got no answer; at the time when the kit gave up, or the connection ended.
    Unanswered(Unanswered),
    /// What PostgreSQL answered to the resource, or to a holder inside its transaction.
    DbAnswer(DbAnswer),
    /// A read that was answered; at the time when the last byte of the answer was there.
    Read(Read),
    /// One change that was committed, from the write-ahead log; at the time when the kit read it.
    Commit(Commit),
    /// A question to the guard whose right answer is known beforehand; at the time of the answer.
    Probe(Probe),
    /// Everything read back, after the last operation.
    Final(Final),
}

/// The store's record of a grant: the only source of a write's true token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantRecord {
    /// The class.
    pub class: String,
    /// The key.
    pub key: String,
    /// The token.
    pub token: TokenNumber,
    /// The grant id.
    pub grant: String,
    /// To whom, such as `H1`.
    pub holder: String,
}

/// The end of a grant in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseEnd {
    /// The grant id.
    pub grant: String,
    /// What ended it, as far as it is known: `expired`, `revoked`, `released`, or `gone`.
    pub cause: String,
}

/// A confirmed stop of a process and all below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// Who, such as `H1` or `R`.
    pub target: String,
    /// The process id at the top.
    pub pid: u32,
    /// How many tasks there were.
    pub tasks: u32,
    /// How many of them were seen stopped.
    pub confirmed: u32,
    /// When the stop was asked for.
    pub asked: At,
    /// When they were let go on. `None` when they never were.
    pub resumed: Option<At>,
    /// The CPU time of all tasks once stopped, in clock ticks.
    pub cpu_before: u64,
    /// The CPU time of the same tasks just before they were let go on, in clock ticks.
    pub cpu_after: u64,
}

/// Bytes of a request that the path kept back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// The request.
    pub op: Op,
    /// How many of its bytes were let through before.
    pub byte: u64,
    /// When the rest was let go. `None` when it never was.
    pub released: Option<At>,
}

/// A request that the kernel has acknowledged and the resource has not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queued {
    /// The request.
    pub op: Op,
    /// Whose socket it is, such as `R`.
    pub target: String,
    /// How many bytes lay there.
    pub bytes: u64,
}

/// A backend that waits for another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiting {
    /// The operation that waits.
    pub op: Op,
    /// Whose backend it waits for, such as `H1`.
    pub on: String,
    /// The process id of the backend that waits.
    pub backend: u32,
    /// The process id of the backend that it waits for.
    pub blocked_by: u32,
}

/// A process that was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Killed {
    /// Who, such as `H1`.
    pub target: String,
    /// Its process id.
    pub pid: u32,
}

/// What a guarded operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Raises the mark and writes nothing else.
    Raise,
    /// Writes under the guard. Over SQL it is the whole transaction.
    Write,
}

/// A guarded operation, from the holder's side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Its name.
    pub op: Op,
    /// Who sent it, such as `H1`.
    pub holder: String,
    /// What it does.
    pub work: Work,
    /// The class.
    pub class: String,
    /// The key.
    pub key: String,
    /// The grant that it truly belongs to: from the write's own id where it holds one, else from the connection's owner;
    /// never from the token, which may be forged.
    pub grant: Option<String>,
    /// What it presented.
    pub presented: Presented,
    /// The write's id, by which its effect is found again. `None` for a raise.
    pub id: Option<String>,
    /// When its last byte was passed to the resource. `None` when it never was.
    pub sent: Option<At>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The request.
    pub op: Op,
    /// What was answered.
    pub reply: Reply,
}

/// A request without an answer. Its outcome is unknown, never "failed".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unanswered {
    /// The request.
    pub op: Op,
    /// What was seen instead, such as `reset` or `holder killed`.
    pub why: String,
}

/// An answer of the database on the kit's path between it and its client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DbAnswer {
    /// The operation that it belongs to, where that is known.
    pub op: Option<Op>,
    /// The path's number of the connection.
    pub connection: u64,
    /// The error's SQLSTATE; `None` when there was no error.
    pub sqlstate: Option<String>,
    /// The error's DETAIL.
    pub detail: Option<String>,
    /// The command tag of the guarded statement, such as `UPDATE 1`.
    pub tag: Option<String>,
}

/// What a read showed of one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// Who read, such as `H2` or `kit`.
    pub by: String,
    /// The class.
    pub class: String,
    /// The key.
    pub key: String,
    /// When its first byte was sent.
    pub began: At,
    /// The ids of the writes that it showed.
    pub ids: Vec<String>,
    /// Balances that the same snapshot showed, in minor units.
    pub balances: BTreeMap<String, i64>,
}

/// One committed change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// Its place in the commit order, strictly increasing.
    pub order: u64,
    /// The transaction. Only equality means anything: ids are not in commit order.
    pub xid: u64,
    /// What changed.
    pub change: Change,
}

/// What a commit changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// The mark's row was written.
    Admission {
        /// The class.
        class: String,
        /// The key.
        key: String,
        /// The mark.
        token: TokenNumber,
        /// Whose it is.
        grant: Option<String>,
    },
    /// A guarded write took effect.
    Write {
        /// The class.
        class: String,
        /// The key.
        key: String,
        /// The write's id.
        id: String,
        /// The grant that it truly belongs to, as the row tells it.
        grant: Option<String>,
        /// The row's token column, under the column guard.
        token: Option<TokenNumber>,
        /// The job that it does, such as `order-7`.
        job: Option<String>,
        /// What it moved between accounts.
        moves: Vec<Move>,
    },
}

/// One side of a transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The account.
    pub account: String,
    /// What was added to it, in minor units; negative for a debit.
    pub amount: i64,
}

/// What is asked of a guard beside the scenario. Each has one right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// An older token on a key where nothing newer was: must be applied.
    Bystander,
    /// The same key in another class, where nothing newer was: must be applied.
    OtherClass,
    /// The mark's own token and grant once more: must be applied.
    EqualAgain,
    /// A first or larger token that sets the stage for a later probe: must be applied.
    Prepare,
    /// A larger token after a smaller one, wherever text, 32 bits or doubles order them otherwise: must be applied.
    Larger,
    /// A smaller token after a larger one that was rolled back: must be applied.
    AfterRollback,
    /// A smaller token after a larger one: must be refused as stale, with both numbers.
    Smaller,
    /// The mark's own token with another grant: must be refused as a collision.
    Collision,
    /// A token outside every registered range: must be refused as of an unknown epoch.
    OutsideRange,
    /// No token: must be refused as missing.
    MissingToken,
    /// A token without a grant id, where the class needs one: must be refused as missing.
    MissingGrant,
    /// A token that is none, 0 or below: must be refused as below 1.
    BelowOne,
    /// Text that is no token: must be refused as malformed.
    Malformed,
    /// A class that nobody declared: must be refused as unknown.
    UnknownClass,
    /// A larger admission while another connection's admission of the same key is not yet committed: must be blocked.
    HeldToTheEnd,
    /// A larger admission in a snapshot from before the predecessor's last commit: must be refused, or fail with 40001.
    OldSnapshot,
}

/// A probe and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// What was asked.
    pub probe: ProbeKind,
    /// The class.
    pub class: String,
    /// The key.
    pub key: String,
    /// What was presented.
    pub presented: Presented,
    /// The mark that a stale refusal must name. `None` where none is expected.
    pub seen: Option<TokenNumber>,
    /// The id of the write that was tried. `None` when only admission was.
    pub id: Option<String>,
    /// What was answered.
    pub reply: Reply,
    /// PostgreSQL's own answer, where the reply came over HTTP and the path showed it.
    pub sqlstate: Option<String>,
}

/// The state of a mark as it was read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The class.
    pub class: String,
    /// The key.
    pub key: String,
    /// The mark.
    pub token: TokenNumber,
}

/// Everything read back at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Final {
    /// Every id of every key that the resource holds. Under the column guard, each row's last writer.
    pub ids: Vec<String>,
    /// Every account's balance, in minor units.
    pub balances: BTreeMap<String, i64>,
    /// Every mark; under the column guard, each row's token.
    pub marks: Vec<Mark>,
}
