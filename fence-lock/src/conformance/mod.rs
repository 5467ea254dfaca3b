//! What every lock store must do, as a suite that any store can be held against.
//!
//! A store takes part through a [`Bench`]: it makes a [`Place`] for each case, reaches it as several processes would, and
//! leads a client over a [`Wire`] that can hold, lose and cut. [`run`] plays every case and returns a [`Report`]; a store
//! conforms when [`Report::conforms`] says so. No case is left out: what a store cannot do is asserted too.
//!
//! ```
//! # #[tokio::main]
//! # async fn main() {
//! use fence_lock::conformance::{MemoryBench, run_one};
//!
//! let outcome = run_one(&MemoryBench::new(), "release-own-only").await;
//! assert!(outcome.expect("the suite has this case").is_ok());
//! assert!(run_one(&MemoryBench::new(), "no-such-case").await.is_none());
//! # }
//! ```
//!
//! # What this module does not do
//!
//! It measures no speed, restores no backup and stops no process. It plays in real time: a TTL of 2 s takes 2 s.

mod bench;
mod case;
mod cases;
mod client;
mod memory;
mod order;

pub use bench::{Bench, BenchError, Place, Wire};
pub use case::{Case, Failure, Report, cases, run, run_one};
pub use memory::{MemoryBench, MemoryStore};
