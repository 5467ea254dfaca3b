//! Broken variants of the rest of the installed SQL, beside `fence.admit` itself: each file under `tests/mutants/sql` is applied
//! after the guard's own.

use super::mutants::{PAYDB, all, killed};
use super::{Failure, Figure};

pub(crate) fn pg_mutants() -> Result<Figure, Failure> {
    killed(&all("tests/mutants/sql", "sql")?, &PAYDB, 20)
}
