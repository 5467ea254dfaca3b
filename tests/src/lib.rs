//! The long checks behind `./dev measure NAME`, and what they share with the tests. End to end tests and the repository's rules
//! live in `tests/it`.

pub mod examples;
pub mod measure;
pub mod outsider;
pub mod registers;
pub mod release;
