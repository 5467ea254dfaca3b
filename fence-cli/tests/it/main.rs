//! The `fence` command from outside: what it answers to whom, and with which code.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod command;
mod database;
mod doctor;
mod epoch;
mod faults;
mod files;
mod hold;
mod output;
mod pg;
mod risks;
mod selection;
mod tiers;
mod timeline;
mod tls;
mod token;
mod verify;
