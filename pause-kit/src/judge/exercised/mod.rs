//! Whether the run counts: invariants 15 and 16.

mod answers;
mod check;
mod clock;
mod control;
mod deferred;
mod one;
mod pause;
mod reads;
mod relayed;
mod several;

pub(super) use check::exercised;
pub(super) use clock::one_clock;
