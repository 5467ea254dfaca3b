//! Pauses real processes past their lease, records what happened and judges it.

pub mod evidence;
pub mod history;
pub mod scenario;
pub mod schedule;
pub mod target;
