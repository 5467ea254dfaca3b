//! Whether a file is a page of ours, and may be drawn over.

use std::io::{self, Read};
use std::path::Path;

/// What every page begins with.
pub(super) const BEGIN: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"generator\" content=\"fence timeline\">\n";

/// Whether the file is a page that this module has drawn, by how it begins.
///
/// # Errors
///
/// What opening or reading it fails with; [`io::ErrorKind::NotFound`] when there is none.
pub fn is_page(file: &Path) -> io::Result<bool> {
    let file = std::fs::File::open(file)?;
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    let mut begin = Vec::new();
    file.take(BEGIN.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == BEGIN.as_bytes())
}
