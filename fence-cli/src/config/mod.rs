//! `fence.toml`: what is declared, and by which commands it is proven.

mod check;
mod lines;
mod manifest;

pub(crate) use manifest::Manifest;
