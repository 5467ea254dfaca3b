//! The guards, against a real PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admission;
mod column;
mod support;
