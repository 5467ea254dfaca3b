//! What is done to whom, and in which order.

mod id;

pub use id::{ScenarioId, UnknownScenario};
