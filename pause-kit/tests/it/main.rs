//! The kit against real processes, PostgreSQL and etcd.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails where something is not as it must be"
)]

mod commit_order;
mod freezer;
mod gates;
mod history;
mod judge;
mod nginx;
mod path;
mod path_properties;
mod path_times;
mod reaper;
mod services;
mod stopper;
mod table;
mod timeline;
mod wait;
mod wire_postgres;
