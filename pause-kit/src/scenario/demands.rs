//! What each scenario demands of a history that bears its name: its header is written from this, and compared with it when it
//! is judged again.

use super::ScenarioId;
use super::alter::made;
use crate::history::{Attempt, Cause, Exercise, Outcome};

/// What differs from class to class: times, in nanoseconds, and the length of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// The leases' time to live.
    pub(crate) ttl_ns: u64,
    /// After how long the server ends a transaction whose client is idle.
    pub(crate) idle_ns: u64,
    /// How many bytes a write has, where each was swept.
    pub(crate) bytes: u64,
}

impl Times {
    /// Those that a header names; zero where it names none.
    pub(crate) fn named_by(exercise: Exercise) -> Times {
        match exercise {
            Exercise::ShortPause { ttl_ns }
            | Exercise::KeptAlive { ttl_ns }
            | Exercise::StoreStopped { ttl_ns } => Times {
                ttl_ns,
                ..Times::default()
            },
            Exercise::IdleInTransaction { idle_ns } | Exercise::MarkHeld { idle_ns } => Times {
                idle_ns,
                ..Times::default()
            },
            Exercise::Swept { bytes } => Times {
                bytes,
                ..Times::default()
            },
            _ => Times::default(),
        }
    }
}

impl ScenarioId {
    /// What a run of it must have gone through.
    pub(crate) fn exercise(self, times: Times) -> Exercise {
        let Times {
            ttl_ns,
            idle_ns,
            bytes,
        } = times;
        match self {
            ScenarioId::S01 | ScenarioId::S02 | ScenarioId::S15 | ScenarioId::S16 | ScenarioId::S35 => {
                Exercise::Stopped
            }
            ScenarioId::S03 => Exercise::LegalGap,
            ScenarioId::S04 => Exercise::StaleRead,
            ScenarioId::S04b => Exercise::FenceThenRead,
            ScenarioId::S05 => Exercise::Queued,
            ScenarioId::S07 | ScenarioId::S29 => Exercise::Held,
            ScenarioId::S08 => Exercise::Swept { bytes },
            ScenarioId::S09 => Exercise::Replayed,
            ScenarioId::S17 => Exercise::InTurn,
            ScenarioId::S24 => Exercise::Between,
            ScenarioId::S28 => Exercise::LostAnswers,
            ScenarioId::S33 => Exercise::Deferred,
            ScenarioId::S12 => Exercise::KeptAlive { ttl_ns },
            ScenarioId::S18 => Exercise::ShortPause { ttl_ns },
            ScenarioId::S21 => Exercise::Restarted,
            ScenarioId::S25 => Exercise::MarkHeld { idle_ns },
            ScenarioId::S25b => Exercise::BackendStopped,
            ScenarioId::S26 => Exercise::IdleInTransaction { idle_ns },
            ScenarioId::S34 => Exercise::ResourceRestarted,
            ScenarioId::S37 => Exercise::Repeated,
            ScenarioId::S53 => Exercise::CommitFailed,
            ScenarioId::S75 => Exercise::StoreStopped { ttl_ns },
            ScenarioId::S82 => Exercise::StoreGone,
            ScenarioId::S39 | ScenarioId::S67 | ScenarioId::S69 => Exercise::Altered {
                how: self.alteration(),
            },
            ScenarioId::S47 | ScenarioId::S48 => Exercise::Closed {
                how: self.alteration(),
            },
        }
    }

    /// The attempts that it is about, in their order, with the outcome that each must have.
    pub(crate) fn attempts(self, times: Times) -> Vec<Attempt> {
        match self {
            ScenarioId::S08 => (1..=times.bytes)
                .map(|number| Attempt::new(format!("H1-write-{number}"), Outcome::Refused))
                .collect(),
            ScenarioId::S03 => vec![
                Attempt::new("H1-write-1", Outcome::Legal),
                Attempt::new("H1-write-2", Outcome::Refused),
                Attempt::new("H2-write-1", Outcome::Legal),
            ],
            ScenarioId::S17 => ["H1-write-1", "H2-write-1", "H2-write-2", "H1-write-2"]
                .map(|op| Attempt::new(op, Outcome::Refused))
                .into(),
            ScenarioId::S35 => ["H1-write-1", "H1-write-2"]
                .map(|op| Attempt::new(op, Outcome::Refused))
                .into(),
            ScenarioId::S09 => vec![
                Attempt::new("H1-write-3", Outcome::Legal),
                Attempt::new("H1-write-4", Outcome::Refused),
            ],
            ScenarioId::S28 => ["H1-write-1", "H1-write-2"]
                .map(|op| Attempt::new(op, Outcome::Unknown))
                .into(),
            ScenarioId::S33 => vec![Attempt::new("W-write-1", Outcome::Refused)],
            ScenarioId::S37 => ["H1-write-2", "H1-write-3"]
                .map(|op| Attempt::new(op, Outcome::Legal))
                .into(),
            ScenarioId::S39 => vec![Attempt::new("H1-write-2", Outcome::Conflict)],
            ScenarioId::S67 | ScenarioId::S69 => self.closed().collect(),
            ScenarioId::S47 | ScenarioId::S48 => {
                let itself = Attempt::new("H1-write-1", Outcome::Legal);
                self.closed().chain([itself]).collect()
            }
            ScenarioId::S16 => Vec::new(),
            ScenarioId::S12 | ScenarioId::S18 => vec![Attempt::new("H1-write-1", Outcome::Legal)],
            ScenarioId::S25 | ScenarioId::S26 => vec![Attempt::new("H1-write-2", Outcome::Blocked)],
            ScenarioId::S25b => vec![Attempt::new("H2-raise-1", Outcome::Blocked)],
            ScenarioId::S53 => vec![Attempt::new("H1-write-1", Outcome::NotCommitted)],
            ScenarioId::S82 => vec![
                Attempt::new("H1-write-1", Outcome::Refused),
                Attempt::new("H2-write-2", Outcome::Legal),
            ],
            _ => vec![Attempt::new("H1-write-1", Outcome::Refused)],
        }
    }

    /// What the path makes of the first write, which must not get further than the door.
    fn closed(self) -> impl Iterator<Item = Attempt> {
        let all = 2..2 + made(self.alteration());
        all.map(|number| Attempt::new(format!("H1-write-{number}"), Outcome::Closed))
    }

    /// What ends the lease of whoever goes stale. `None` where nobody does.
    pub(crate) fn ends_leases_by(self) -> Option<Cause> {
        match self {
            control if control.is_control() => None,
            ScenarioId::S01 | ScenarioId::S75 => Some(Cause::Expired),
            _ => Some(Cause::Revoked),
        }
    }
}
