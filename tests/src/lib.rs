//! End-to-end tests and the rules of the repository live in `tests/`; this library is empty.
