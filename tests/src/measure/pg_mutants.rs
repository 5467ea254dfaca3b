//! Broken variants of the rest of the installed SQL, beside `fence.admit` itself: each file under `tests/mutants/sql` is applied
//! after the guard's own, and its first line names the invariant that a guarded half must find broken.

use super::mutants::kill_all;
use super::{Failure, Figure};

pub(crate) fn pg_mutants() -> Result<Figure, Failure> {
    // Every guarded half asks the guard the same questions, so that the quickest scenario is enough.
    kill_all("tests/mutants/sql", 20, &["--scenario", "S02", "--only-guarded"])
}
