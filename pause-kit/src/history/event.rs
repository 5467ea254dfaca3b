//! The kinds of events, and what is done to processes, bytes and requests.

use serde::{Deserialize, Serialize};

use super::committed::Commit;
use super::observed::{At, Op, Presented, Reply, TokenNumber};
use super::probe::Probe;
use super::read::{Final, Read};
use super::relay::{Relay, Uncommitted, Withheld};
use crate::stopper::StoppedBy;

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
    /// A process was to be stopped, and was not seen stopped; at the time when the kit gave up. It ran on.
    Unstopped(Unstopped),
    /// The path kept bytes back; at the time when the first of them reached it.
    Hold(Hold),
    /// The path kept an answer back; at the time when its first byte reached it.
    Withheld(Withheld),
    /// The path kept back the COMMIT of a request's transaction; at the time when its first byte reached it.
    Uncommitted(Uncommitted),
    /// A keepalive lay unread in the lock store's socket; at the time when that was seen.
    Unheard(Unheard),
    /// A request lay unread in the resource's socket; at the time when that was seen.
    Queued(Queued),
    /// A backend was seen waiting for another one; at the time when that was seen.
    Waiting(Waiting),
    /// A process was killed; at the time when it was reaped.
    Killed(Killed),
    /// A process was started again with what it had put on disk; at the time when it was started.
    Restarted(Restarted),
    /// A process was started that had not run before; at a time just before.
    Started(Started),
    /// The path sends a request by itself; at a time just before.
    Relay(Relay),
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
    /// What ended it, as far as it is known.
    pub cause: Cause,
}

/// What ended a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It was not renewed in time.
    Expired,
    /// The kit took it away.
    Revoked,
    /// Its holder gave it back.
    Released,
    /// It is not known: it was not there any more.
    Gone,
}

impl Cause {
    /// The word for it, as it stands in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Expired => "expired",
            Cause::Revoked => "revoked",
            Cause::Released => "released",
            Cause::Gone => "gone",
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
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
    /// The CPU time of all tasks once stopped, in nanoseconds.
    pub cpu_before: u64,
    /// The CPU time of the same tasks just before they were let go on, in nanoseconds.
    pub cpu_after: u64,
    /// By which means they were stopped. Where the file says nothing, by signals.
    #[serde(default, skip_serializing_if = "StoppedBy::is_signal")]
    pub by: StoppedBy,
}

/// A stop that was tried in vain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unstopped {
    /// Who, such as `H1`.
    pub target: String,
    /// The process that did not stop.
    pub pid: u32,
    /// Its task.
    pub tid: u32,
    /// The state in which that task stayed, as its letter in `/proc`.
    pub state: char,
}

/// Bytes of a request that the path kept back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// The request.
    pub op: Op,
    /// How many of its bytes were let through before.
    pub byte: u64,
    /// How many bytes it has in all, where each was swept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
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

/// A keepalive that the kernel has acknowledged and the lock store has not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unheard {
    /// Whose, such as `H1`.
    pub holder: String,
    /// Whose socket it is, such as `L`.
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

/// The second process of one that was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restarted {
    /// Who, such as `H1`.
    pub target: String,
    /// The new process's id.
    pub pid: u32,
}

/// A worker of the resource, which was started only now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// Who, `W`.
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
    /// The beginning of the SHA-256 of an HTTP answer's body, in hexadecimal, by which two answers are told to be the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
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
