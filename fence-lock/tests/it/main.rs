//! The lock store and its sessions on a real etcd.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod epoch;
mod exclusion;
mod support;
