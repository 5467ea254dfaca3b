//! Words for the person who started the command. Nobody may be reading them: that is never a reason to panic.

use std::io::{self, Write};

use crate::exit::Failure;

/// Standard output is closed or full. Give it somewhere to go.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output")]
struct OutputError(#[source] io::Error);

/// Writes what the command was asked for to standard output.
///
/// # Errors
///
/// [`Failure::Usage`] when not all of it could be written: then the command has not done what it was asked.
pub(crate) fn answer(text: &str) -> Result<(), Failure> {
    written(text).map_err(|error| Failure::usage(OutputError(error)))
}

/// Writes to standard output what is also told otherwise: by files, or by the exit code.
pub(crate) fn show(text: &str) {
    // Whoever has closed standard output does not want it.
    let _ = written(text);
}

/// Writes a line to standard error.
pub(crate) fn remark(line: &str) {
    // There is nowhere left to say that it could not be said.
    let _ = writeln!(io::stderr(), "{line}");
}

fn written(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
