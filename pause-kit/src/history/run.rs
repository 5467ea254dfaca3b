//! The header of a history: what was run, and what it must show to count.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::observed::Op;
use super::relay::Alteration;
use crate::target::Guard;

/// The first line: everything that is known about the run from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The form of the file; [`Run::SCHEMA`].
    pub schema: u32,
    /// The scenario, such as `S02`.
    pub scenario: String,
    /// The class under proof.
    pub class: String,
    /// The contested key.
    pub key: String,
    /// Whether the guard was in force.
    pub half: Half,
    /// The seed, as it is printed.
    pub seed: String,
    /// The clock that all times come from.
    pub clock: Clock,
    /// The guard's form.
    pub guard: GuardForm,
    /// What the run must have gone through to count (invariant 15).
    pub exercise: Exercise,
    /// How long the successor may be kept waiting (invariant 13).
    pub bounds: Bounds,
    /// The grant that is stale once its successor has touched the resource. `None` in a control.
    pub stale_grant: Option<String>,
    /// The attempts that the scenario is about, in the order in which they are made. An attempt's grant is that of its
    /// request. Empty when there was none.
    pub attempts: Vec<Attempt>,
    /// What is done to a job, as a past participle: `refunded`. Used in plain words only.
    pub deed: String,
    /// Every account's balance before the first operation, in minor units. Empty for a resource without balances.
    pub opening: BTreeMap<String, i64>,
}

impl Run {
    /// The form of history files that this version writes and reads.
    pub const SCHEMA: u32 = 2;
}

/// A write whose answer the scenario is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The operation.
    pub op: Op,
    /// Its outcome that the scenario expects of a guarded resource.
    pub expected: Outcome,
}

impl Attempt {
    /// An attempt of this name.
    pub fn new(op: impl Into<String>, expected: Outcome) -> Attempt {
        Attempt {
            op: Op::new(op),
            expected,
        }
    }
}

/// Which half of the pair this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Half {
    /// The guard was in force.
    Guarded,
    /// The same resource, with its guard made to admit everything.
    Defeated,
}

/// Where the times come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// CLOCK_MONOTONIC of the one host that ran everything.
    Monotonic,
}

/// The guard's form, which decides what reads and commits can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardForm {
    /// A mark a key; admissions are committed as changes of their own. Reads show all ids that the key ever accepted.
    Mark,
    /// A token column on the guarded row; each write bears its token. Reads show the last writer's id only.
    Column,
}

impl From<Guard> for GuardForm {
    fn from(guard: Guard) -> GuardForm {
        match guard {
            Guard::Mark => GuardForm::Mark,
            Guard::Column => GuardForm::Column,
        }
    }
}

/// How a run shows that it went through what the scenario is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "snake_case", deny_unknown_fields)]
pub enum Exercise {
    /// The stale holder was stopped; its lease ended, and its successor was granted and wrote, all inside the stop; it
    /// made its attempt after it was resumed.
    Stopped,
    /// The resource was stopped; inside the stop the stale attempt lay unread in its socket, the lease ended, the
    /// successor was granted and had its mark raised elsewhere, and the successor's write lay unread in that socket too.
    Queued,
    /// The path held the stale attempt; the lease ended, and the successor was granted and wrote, while it did.
    Held,
    /// The stale holder was stopped idle in its transaction, after its guarded statement was answered; the lease ended and
    /// the successor was granted and seen waiting on its backend inside the stop, which outlasted all bounds; it made its
    /// attempt after it was resumed.
    IdleInTransaction {
        /// After how many nanoseconds the server ends a transaction whose client is idle.
        idle_ns: u64,
    },
    /// The stale holder was killed with its write on disk; its lease ended, and its successor was granted, raised the mark
    /// and wrote; then a second process of it did nothing but present that write.
    Restarted,
    /// The stale holder was stopped as above; after its successor's write and before its own attempt the resource was killed
    /// and started again.
    ResourceRestarted,
    /// The stale holder was stopped between its read and its write; inside the stop its lease ended, and its successor was
    /// granted, raised the mark and wrote; it made its attempt after it was resumed and read nothing more.
    StaleRead,
    /// The stale holder was stopped before its send; inside the stop its lease ended, and its successor was granted and
    /// read, having raised the mark before in the guarded half and not in its twin; the stale holder made its attempt, and
    /// then the successor wrote.
    FenceThenRead,
    /// Three attempts, each after a confirmed stop: with a successor that was granted and not in touch; with that
    /// successor's mark raised; and of that successor, whose lease had ended, after an admission of a third holder was
    /// rolled back.
    LegalGap,
    /// Two holders, stopped one after the other past their leases, and a third that wrote. They went on in one order, were
    /// stopped again, and went on in the other; each attempt was answered before the next.
    InTurn,
    /// One write of the stale holder had been answered, and another was held whole on the path and lost; in between its lease
    /// ended, and its successor was granted, raised the mark and wrote. Then the path sent both again, byte for byte.
    Replayed,
    /// The path held the stale holder's write whole and lost it; meanwhile the lease ended, and the successor was granted,
    /// raised the mark and wrote. Then the path sent that write with its claim changed, or, where the changed one could not
    /// reach a defeated guard, as it was.
    Altered {
        /// What was changed.
        how: Alteration,
    },
    /// The path held as many writes of the stale holder as one has bytes, each after another number of its bytes; the lease
    /// ended, and the successor was granted, raised the mark and wrote, while it held them all.
    Swept {
        /// How many bytes a write has.
        bytes: u64,
    },
    /// The stale attempt had arrived, and the database had answered the resource on its behalf, when that answer was held and
    /// the resource stopped; inside the stop the lease ended, and the successor was granted, raised and wrote elsewhere.
    Between,
    /// The resource had accepted the stale holder's write for later, with 202; then its lease ended, and its successor was granted, raised the mark and wrote. Only then a worker of the resource was started, and the
    /// attempt is what that made of the write.
    Deferred,
    /// A control: two writes were committed and neither was answered: the database's answer to one was held with the resource
    /// stopped, the resource's answer to the other with the holder stopped. The next holder read both and wrote nothing.
    LostAnswers,
    /// The stale holder's write was made in a transaction whose COMMIT was held, with the resource stopped; inside the stop the
    /// lease ended, and the successor was granted and seen waiting for that transaction. Guarded, the server ended it, and a
    /// later holder raised and wrote, all inside the stop; it never landed, and the path sent the write again. In the twin the
    /// stop outlasted the successor's bound.
    MarkHeld {
        /// After how many nanoseconds the server ends a transaction whose client is idle.
        idle_ns: u64,
    },
    /// The lock store was stopped for longer than the time to live, with a keepalive of the stale holder's unread in its socket.
    /// Then the lease ended, the successor was granted, raised and wrote, and the stale holder made its attempt.
    StoreStopped {
        /// That time, in nanoseconds.
        ttl_ns: u64,
    },
    /// A control: a write was made in a transaction whose COMMIT was held, with its backend stopped; inside the stop a later
    /// holder was granted and seen waiting for that transaction, and answered.
    BackendStopped,
    /// A control: a write was made in a holder's transaction; a statement failed in it, of which the holder heard nothing, before
    /// the COMMIT. Afterwards a write was committed.
    CommitFailed,
    /// A control: once the second holder had raised and written the lock store was killed; then the first one made its attempt,
    /// and the second one wrote again.
    StoreGone,
    /// A control: a write that had been answered was sent again by the path, byte for byte, under the same live grant.
    Repeated,
    /// A control: the path held a live holder's write whole, sent it in every form of this alteration, and then let it go on.
    Closed {
        /// What was changed.
        how: Alteration,
    },
    /// A control: the holder was stopped for less than its time to live, and its lease did not end.
    ShortPause {
        /// That time, in nanoseconds.
        ttl_ns: u64,
    },
    /// A control: the holder's writing thread alone was held, for longer than its time to live, while what renews went on; its
    /// lease did not end.
    KeptAlive {
        /// That time, in nanoseconds.
        ttl_ns: u64,
    },
    /// A control: nothing to take over.
    Control,
}

/// How long the successor may be kept waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The guard's one deadline for all keys of an operation, in nanoseconds.
    pub deadline_ns: u64,
    /// What is allowed on top for the machine, in nanoseconds.
    pub slack_ns: u64,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Refused as stale.
    #[serde(rename = "REF")]
    Refused,
    /// Accepted, and rightly.
    #[serde(rename = "LEG")]
    Legal,
    /// The successor was blocked for a bounded time and then applied; the stale attempt was refused.
    #[serde(rename = "BLK")]
    Blocked,
    /// Unknown, resolved by reading back.
    #[serde(rename = "UNK")]
    Unknown,
    /// Refused, failing closed.
    #[serde(rename = "CLO")]
    Closed,
    /// Not committed, and not said to be.
    #[serde(rename = "NOT")]
    NotCommitted,
    /// Conflict: equal token, other grant.
    #[serde(rename = "CON")]
    Conflict,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Outcome::Refused => "REF",
            Outcome::Legal => "LEG",
            Outcome::Blocked => "BLK",
            Outcome::Unknown => "UNK",
            Outcome::Closed => "CLO",
            Outcome::NotCommitted => "NOT",
            Outcome::Conflict => "CON",
        })
    }
}
