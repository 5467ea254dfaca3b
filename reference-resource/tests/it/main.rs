//! paydb and its workers as processes, on a real PostgreSQL and a real etcd.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says where"
)]

mod account_worker;
mod advisory;
mod bench;
mod defeat;
mod disconnect;
mod fencing;
mod idempotency;
mod jobs;
mod load;
mod lost;
mod requests;
mod settlement_worker;
mod start;
mod usage;
mod watched;
