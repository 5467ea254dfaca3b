//! What is done to whom, and in which order.

mod acts;
mod alter;
mod answers;
mod arrival;
mod clock;
mod demands;
mod ending;
mod exchanges;
mod fresher;
mod from_disk;
mod front;
mod grants;
mod half;
mod held_request;
mod holder;
mod id;
mod idle_transaction;
mod late_send;
mod later;
mod legal_gap;
mod observe;
mod part;
mod play;
mod relay;
mod relayed;
mod replicas;
mod short_pause;
mod sql_text;
mod stale_read;
mod stopped_resource;
mod sweep;
mod tag;
mod transactions;
mod trouble;
mod two_stopped;
mod writer;

pub use id::{ScenarioId, UnknownScenario};
pub use tag::{Tag, UnknownTag};

pub(crate) use demands::Times;
pub(crate) use front::send;
pub(crate) use grants::Granted;
pub(crate) use half::{Assignment, Finished, Ground, Half, SLACK, connect, filled, said};
pub(crate) use play::play;
