//! `fence.toml`: what is declared, and by which commands it is proven.

mod check;
mod forms;
mod lines;
mod manifest;
mod scenarios;
mod targets;

pub(crate) use check::Step;
pub(crate) use lines::{ConfigError, Lines, text_of};
pub(crate) use manifest::{Class, Manifest};
