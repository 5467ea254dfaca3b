//! Pauses real processes past their lease, records what happened and judges it.
//!
//! - [`services`]: PostgreSQL, etcd and the target's processes, private to a run and gone after it
//! - [`stopper`]: a process that is known to stand, and goes on when the guard is dropped
//! - [`reaper`]: the process that owns all of these, so that nothing outlives the kit
//! - [`path`], [`gates`]: where bytes and holders are kept
//! - [`wire`], [`commit_order`]: what was said on the path, and what the database committed in which order
//! - [`target`], [`scenario`], [`schedule`]: what is proven, how, and in which order
//! - [`history`], [`judge`], [`evidence`]: what happened, what it breaks, and what is handed to a stranger to judge again
//!
//! # What this crate does not do
//!
//! It signals only what it has started itself, it never ends anything by name, and it stops processes only on Linux: what
//! it has to know about them stands in `/proc`.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "pause-kit is for Linux only: it confirms by /proc that a process stands, and owns orphans as a subreaper"
);

pub mod commit_order;
pub mod evidence;
pub mod gates;
pub mod history;
pub mod judge;
pub mod path;
pub mod plan;
mod probes;
mod process;
pub mod reaper;
pub mod run;
pub mod scenario;
pub mod schedule;
pub mod services;
mod signal;
mod sql_files;
pub mod stopper;
pub mod store;
pub mod target;
pub mod wire;
