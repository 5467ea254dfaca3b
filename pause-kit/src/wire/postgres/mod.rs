//! PostgreSQL's protocol 3: statements, their parameters, and how the server answered.
//!
//! [`statements`] reads a connection's record. [`client_messages`] and [`server_messages`] cut the two streams without
//! any times, for whoever needs more. Encrypted connections cannot be read; the kit's own PostgreSQL and the clients it is
//! used with do not encrypt on the loopback interface.

mod client;
mod frame;
mod server;
mod statement;

pub use client::{ClientMessage, ClientStream, Parameter, client_messages};
pub use frame::{Framed, MalformedPostgres};
pub use server::{Notice, ServerMessage, ServerStream, TransactionStatus, server_messages};
pub use statement::{Completion, Statement, answered, statements};

#[cfg(test)]
mod tests;
