//! Pauses real processes past their lease, records what happened and judges it.
//!
//! A guard against stale holders is worth what it does when a holder really is stopped, and goes on too late. This kit starts a
//! resource and its holders with servers of their own, stops one of them at a chosen point until another has taken over, lets it
//! go on, and judges from the wire and from the database's own log whether the late write was refused; then it does the same with
//! the guard defeated. `fence prove` is its command.
//!
//! - [`services`]: PostgreSQL, etcd and the target's processes, private to a run and gone after it
//! - [`stopper`]: a process that is known to stand, and goes on when the guard is dropped
//! - [`away`], [`unstoppable`]: a holder that is another process's child, and has left its group, or whose parent cannot be stopped
//! - [`reaper`]: the process that owns all of these, so that nothing outlives the kit
//! - [`path`], [`gates`]: where bytes and holders are kept
//! - [`wire`], [`commit_order`]: what was said on the path, and what the database committed in which order
//! - [`target`], [`scenario`], [`schedule`]: what is proven, how, and in which order
//! - [`plan`], [`run`], [`store`]: a whole run, and what it asks of the lock store
//! - [`history`], [`judge`], [`evidence`]: what happened, what it breaks, and what is handed to a stranger to judge again
//! - [`linear`]: whether some order of operations explains all their answers, for anything that operations are done to
//! - [`review`]: that stranger: judges a folder of evidence again and believes no word of it that its histories do not bear out
//! - [`timeline`]: the same folder as a page to look at
//!
//! What a run recorded can be judged by anybody, again and again:
//!
//! ```
//! use std::collections::BTreeMap;
//! use pause_kit::history::{
//!     At, Bounds, Clock, Event, Exercise, Final, GuardForm, Half, History, Presented, Probe, ProbeKind, Reply, Run,
//!     TokenNumber,
//! };
//! use pause_kit::judge::{Invariant, Verdict, judge};
//!
//! let history = |on_the_older: Reply| {
//!     let run = Run {
//!         schema: Run::SCHEMA, scenario: "S12".into(), class: "app.batch".into(), key: "batch-1".into(),
//!         half: Half::Guarded, seed: "7".into(), clock: Clock::Monotonic, guard: GuardForm::Column,
//!         exercise: Exercise::Control, bounds: Bounds { deadline_ns: 2_000_000_000, slack_ns: 500_000_000 },
//!         stale_grant: None, attempts: Vec::new(), deed: "settled".into(),
//!         opening: BTreeMap::new(),
//!     };
//!     let probe = |probe, key: &str, seen, reply| Event::Probe(Probe {
//!         probe, class: "app.batch".into(), key: key.into(), seen, id: None, reply, sqlstate: None, detail: None,
//!         presented: Presented { token: Some("33".into()), grant: None },
//!     });
//!     let applied = Reply::Sql { sqlstate: None, detail: None, tag: Some("UPDATE 1".into()) };
//!     let last = Final { ids: Vec::new(), balances: BTreeMap::new(), marks: Vec::new() };
//!     History::new(run, vec![
//!         // Token 33 on a row that nobody newer has written …
//!         (At::from_nanos(1), probe(ProbeKind::Bystander, "batch-2", None, applied)),
//!         // … and on one where 34 has been.
//!         (At::from_nanos(2), probe(ProbeKind::Smaller, "batch-1", Some(TokenNumber::new(34)), on_the_older)),
//!         (At::from_nanos(3), Event::Final(last)),
//!     ])
//! };
//!
//! let refused = Reply::Sql { sqlstate: Some("ZF001".into()), detail: Some("presented 33, seen 34".into()), tag: None };
//! assert_eq!(judge(&history(refused)).verdict, Verdict::Held);
//! let let_in = Reply::Sql { sqlstate: None, detail: None, tag: Some("UPDATE 1".into()) };
//! assert!(judge(&history(let_in)).breaks(Invariant::Order));
//! ```
//!
//! # What this crate does not do
//!
//! It signals only what it has started itself, it never ends anything by name, and it stops processes only on Linux: what
//! it has to know about them stands in `/proc`.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "pause-kit is for Linux only: it confirms by /proc that a process stands, and owns orphans as a subreaper"
);

pub mod away;
pub mod commit_order;
pub mod evidence;
pub mod gates;
pub mod group;
pub mod history;
pub mod judge;
pub mod linear;
pub mod path;
pub mod plan;
mod probes;
mod process;
pub mod reaper;
pub mod review;
pub mod run;
pub mod scenario;
pub mod schedule;
pub mod services;
mod signal;
mod sql_files;
pub mod stopper;
pub mod store;
pub mod target;
pub mod timeline;
pub mod unstoppable;
pub mod wire;
