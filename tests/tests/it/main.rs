//! The repository's own rules, and what only holds end to end.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod architecture;
mod audit;
mod decisions;
mod http_languages;
mod languages;
mod lost_connection;
mod outsider;
mod postgresql;
mod prove;
mod readme;
mod register;
mod release;
mod source;
mod targets;
mod testing;
mod tidy;
mod workflow;
