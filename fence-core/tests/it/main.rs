//! What fence-core promises, as laws, tables and vectors.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admission;
mod deadline;
mod key;
mod name;
mod register;
mod token;
