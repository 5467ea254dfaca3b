//! The lock stores and their sessions, on a real etcd and a real PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod advance;
mod clock;
mod conformance;
mod deadline;
mod dying;
mod ending;
mod epoch;
mod exclusion;
mod giving_up;
mod languages;
mod losses;
mod lost_history;
mod postgres;
mod proxy;
mod reaching;
mod requests;
mod running;
mod secure;
mod support;
mod witness;
