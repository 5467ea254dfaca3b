//! A copy of the project that is proven once, and everything that may go wrong with its registers and its evidence.

mod faults;
mod project;
mod proofs;

pub use faults::{Fault, faults};
pub use project::{Checked, Failure, Project, TODAY};
