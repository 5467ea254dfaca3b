//! Whether one order of all operations, each between its beginning and its end, explains every answer.
//!
//! Wing and Gong's search with Lowe's memory of what was tried, in the form in which it is quick: what was tried is remembered
//! by 128 bits of the set of operations and the state, a history in which no order is soon found is cut wherever nothing is in
//! flight, and what leaves the state as it is, and fits, is taken at once. Two sets that share their 128 bits could hide an order; so a history that is
//! called unexplained was looked at again with the sets themselves.
//!
//! ```
//! use pause_kit::history::At;
//! use pause_kit::linear::{Answer, Model, Operation, check};
//!
//! /// A register that holds one number.
//! struct Number;
//!
//! enum Op { Write(u8), Read(u8) }
//!
//! impl Model for Number {
//!     type Op = Op;
//!     type State = u8;
//!     fn first(&self) -> u8 { 0 }
//!     fn after(&self, state: u8, op: &Op) -> Option<u8> {
//!         match op {
//!             Op::Write(number) => Some(*number),
//!             Op::Read(number) => (*number == state).then_some(state),
//!         }
//!     }
//! }
//!
//! let between = |began, ended, op| Operation {
//!     began: At::from_nanos(began), ended: Some(At::from_nanos(ended)), optional: false, op,
//! };
//! // The read overlaps the write, and may see what was there before it …
//! let overlapping = [between(1, 4, Op::Write(7)), between(3, 6, Op::Read(0))];
//! assert_eq!(check(&Number, &overlapping), Answer::Explained);
//! // … but not once the write has ended.
//! let stale = [between(1, 4, Op::Write(7)), between(5, 6, Op::Read(0))];
//! assert_eq!(check(&Number, &stale), Answer::Unexplained);
//! ```
//!
//! # What this module does not do
//!
//! It knows nothing of tokens, keys or files: [`judge`](crate::judge) does, and judges one key at a time.

mod left;
mod memory;
mod model;
mod parts;
mod search;
mod subject;
mod turns;

pub use model::{Model, Operation, check};

pub(crate) use memory::bits_of;
pub(crate) use parts::explain;
pub(crate) use subject::{Span, Subject};

/// What the search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Answer {
    /// Some order explains every answer.
    Explained,
    /// No order does.
    Unexplained,
    /// There are too many orders to try within the bounds on memory and work. Nothing is known.
    Unknown,
}
