//! Which lock store a command is for, by its arguments and `fence.toml`, and the connection to it.

mod arguments;
mod open;
mod place;

pub(crate) use arguments::{StoreArguments, TierArguments};
