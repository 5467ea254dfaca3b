//! The judge on histories made by hand.

pub(crate) mod answers;
pub(crate) mod forms;
mod good;
pub(crate) mod later;
mod mutants;
mod probes;
mod random;
pub(crate) mod relayed;
mod several;
pub(crate) mod store;
pub(crate) mod swept;
pub(crate) mod takeovers;
pub(crate) mod tape;
pub(crate) mod uncommitted;
