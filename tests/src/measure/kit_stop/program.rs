//! The program that counts, in C: shared memory cannot be written without unsafe code.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Failure;

/// Compiles it into the folder.
pub(super) fn compiled(folder: &Path) -> Result<PathBuf, Failure> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/measure/kit_stop/counters.c");
    let program = folder.join("counters");
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-pthread", "-o"]).arg(&program).arg(source);
    match compile.status()? {
        status if status.success() => Ok(program),
        status => Err(format!("cc ended with {status}").into()),
    }
}
