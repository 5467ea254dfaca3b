//! The registers: which classes are fenced and how fresh their proof must be, and which are knowingly not.
//!
//! What is in order is decided here; the files are read, and the histories judged again, by whoever calls.

mod day;
mod order;
mod risk;

pub use day::{Day, Days};
pub use order::{Declared, Demand, Disorder, Proof, ProofOutcome, disorders};
pub use risk::{DuplicateRisk, Risk, RiskError, RiskField, RiskParts, RiskRegister};
