//! The long checks behind `./dev measure NAME`. End to end tests and the repository's rules live in `tests/it`.

pub mod measure;
