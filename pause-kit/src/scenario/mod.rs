//! What is done to whom, and in which order.

mod acts;
mod clock;
mod exchanges;
mod front;
mod grants;
mod half;
mod held_request;
mod holder;
mod id;
mod idle_transaction;
mod late_send;
mod observe;
mod play;
mod stopped_resource;
mod transactions;
mod trouble;

pub use id::{ScenarioId, UnknownScenario};

pub(crate) use front::send;
pub(crate) use half::{Assignment, Finished, Ground, Half, SLACK, connect, said};
pub(crate) use play::play;
