//! Whether the run counts: invariants 15 and 16.

mod answers;
mod check;
mod clock;
mod control;
mod deferred;
mod held_mark;
mod one;
mod pause;
mod reads;
mod relayed;
mod several;
mod store;

pub(super) use check::exercised;
pub(super) use clock::one_clock;
