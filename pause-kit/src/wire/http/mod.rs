//! Requests and their answers, in HTTP/1.1 and in HTTP/2 that is spoken from the first byte on.

mod begins;
mod exchange;
mod http2;
mod message;
mod resend;

pub use begins::{body_begins, request_begins};
pub use exchange::{Answer, Exchange, Request, answered, exchanges};
pub use message::{Headers, Malformed};
pub(crate) use resend::{alone, with_field};

#[cfg(test)]
mod tests;
