//! HTTP/1.1 requests and their answers.

mod exchange;
mod message;

pub use exchange::{Answer, Exchange, Request, answered, exchanges};
pub use message::{Headers, Malformed};

#[cfg(test)]
mod tests;
