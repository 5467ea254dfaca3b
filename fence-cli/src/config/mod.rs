//! `fence.toml`: what is declared, and by which commands it is proven.

mod check;
mod forms;
mod lines;
mod manifest;
mod scenarios;
mod targets;
mod tiers;

pub(crate) use check::{Step, joined};
pub(crate) use lines::{ConfigError, Lines, text_of};
pub(crate) use manifest::{Class, Manifest};
pub(crate) use tiers::{Tier, endpoint};
