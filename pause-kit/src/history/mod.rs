//! What happened in one half of a scenario, as a stranger needs it to judge again.
//!
//! A history is one JSON object a line: the [`Run`] first, then every [`Event`] in the order of its time, then a line that
//! counts them, so that a cut file is noticed. Times are nanoseconds of one host's monotonic clock since the run began.
//! Tokens are strings, as everywhere. Facts are recorded as they were seen (what stood in the header, what the server
//! answered, what the write-ahead log holds); which of them is a fault is for [`judge`](crate::judge) to say.
//!
//! ```
//! use pause_kit::history::{Answer, At, Event, History, Op, Reply};
//! # use pause_kit::history::{Bounds, Clock, Exercise, GuardForm, Half, Run};
//! # let run = Run {
//! #     schema: Run::SCHEMA, scenario: "S12".into(), class: "paydb.account".into(), key: "acct-1".into(),
//! #     half: Half::Guarded, seed: "7".into(), clock: Clock::Monotonic, guard: GuardForm::Mark,
//! #     exercise: Exercise::Control, bounds: Bounds { deadline_ns: 2_000_000_000, slack_ns: 500_000_000 },
//! #     stale_grant: None, attempts: Vec::new(), deed: "refunded".into(),
//! #     opening: Default::default(),
//! # };
//! let reply = Reply::Http { status: 201, problem: None, stored: false };
//! let history = History::new(run, vec![
//!     (At::from_nanos(5), Event::Answer(Answer { op: Op::new("H1-write"), reply, body: None })),
//! ]);
//!
//! let mut file = Vec::new();
//! history.write(&mut file)?;
//! assert_eq!(History::read(file.as_slice())?, history);
//! // A file that was cut is no history.
//! file.truncate(file.len() - 10);
//! assert!(History::read(file.as_slice()).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What this module does not do
//!
//! It decides nothing and compares no tokens. It does not sign what it writes: whoever can edit the file can lie in it.

mod committed;
mod event;
mod file;
mod observed;
mod probe;
mod read;
mod recorder;
mod relay;
mod run;

pub use committed::{Change, Commit, Move};
pub use event::{
    Answer, Cause, DbAnswer, Event, GrantRecord, Hold, Killed, LeaseEnd, Queued, Request, Restarted, Started,
    Stop, Unanswered, Unheard, Unstopped, Waiting, Work,
};
pub use file::{History, ReadError};
pub use observed::{At, Op, Presented, Reply, TokenNumber};
pub use probe::{Probe, ProbeKind};
pub use read::{Final, Mark, Read};
pub use recorder::Recorder;
pub use relay::{Alteration, Answerer, Relay, Uncommitted, Withheld};
pub use run::{Attempt, Bounds, Clock, Exercise, GuardForm, Half, Outcome, Run};
