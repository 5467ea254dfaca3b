//! The order in which a database's changes were committed, from its write-ahead log.
//!
//! [`CommitOrder`] reads a logical decoding slot, whose order is that of the commits themselves. It does not ask the guard,
//! and it uses neither timestamps nor transaction ids, which a paused transaction takes out of order.

mod decode;
mod reader;

pub use decode::{Change, DecodeError, Operation};
pub use reader::{CommitOrder, CommitOrderError};

#[cfg(test)]
mod tests;
