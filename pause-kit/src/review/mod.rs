//! Judges a folder of evidence again.
//!
//! Every history that `evidence.json` lists is read whole, its SHA-256 compared, and judged; what `evidence.json` says of it
//! must be what the judge says now. Whatever does not agree is a [`Doubt`], with the file and the line to look at.
//!
//! # What this module does not do
//!
//! It does not know what a class must show, how old evidence may be, or which guard is installed: the caller does. Nothing
//! in a folder is signed: someone who writes a history that never happened, and its digest, is believed.

mod bundle;
mod doubt;
mod header;
mod lines;
mod scenario;

pub use bundle::{Bundle, ClassReview, OpenError};
pub use doubt::{Doubt, DoubtKind};
