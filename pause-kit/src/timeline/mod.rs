//! Draws a run: one page of HTML that needs nothing but itself.
//!
//! [`Drawing`] takes the evidence of a run with its histories, and [`Drawing::page`] gives the page: what was done in each
//! scenario and what came out, in sentences made from the facts of the histories; the guarded run and its twin side by side
//! on one axis of time; for a broken rule the lines of the history that show it. [`Drawing::of_bundle`] draws a folder of
//! evidence again, and judges it again before that.
//!
//! The same evidence gives the same page, byte for byte.
//!
//! # What this module does not do
//!
//! It judges nothing and compares no tokens: which rule was broken, and by which lines, stands in the evidence. The page is
//! no evidence either, only a picture of it: it names the digests of the files that it was drawn from. All text from a
//! history is text on the page, never markup, and the page forbids every request, so that none can leave it.

mod align;
mod around;
mod attempt;
mod bundle;
mod claims;
mod deeds;
mod describe;
mod disturbed;
mod facts;
mod html;
mod kept;
mod moments;
mod own;
mod page;
mod rows;
mod scenario;
mod step;
mod steps;
mod story;
mod together;
mod words;

pub use bundle::RedrawError;
pub use own::{is_page, is_whole_beside};
pub use page::{Drawing, FILE};
