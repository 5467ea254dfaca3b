//! Reading the protocols that a path has carried.
//!
//! Both readers take a connection's record as it stands, so they can be asked at any time: what has come only in part is
//! reported as incomplete. Requests are read as the resource gets them, with replacements applied; answers likewise as they
//! are handed on to the holder.

pub mod http;
pub mod postgres;
