//! The lock store and its sessions on a real etcd.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clock;
mod conformance;
mod deadline;
mod ending;
mod epoch;
mod exclusion;
mod giving_up;
mod languages;
mod lost_history;
mod proxy;
mod support;
