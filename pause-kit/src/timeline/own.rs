//! Whether a file is a page of ours, and may be drawn over; and whether it is the page of the evidence beside it.

use std::io::{self, Read};
use std::path::Path;

use super::page::FILE;
use crate::review::Bundle;

/// What every page begins with.
pub(super) const BEGIN: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"generator\" content=\"fence timeline\">\n";

/// What every page ends with.
pub(super) const END: &str = "</script>\n</body>\n</html>\n";

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

/// Whether a page, if there is one beside this evidence, is whole and was drawn from the histories that the evidence lists.
/// What stands between is not looked at: the page is a picture, and can be drawn again.
///
/// # Errors
///
/// What reading it fails with.
pub fn is_whole_beside(bundle: &Bundle) -> io::Result<bool> {
    let page = match std::fs::read_to_string(bundle.file().with_file_name(FILE)) {
        Ok(page) => page,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(false),
        Err(error) => return Err(error),
    };
    let whole = page.starts_with(BEGIN) && page.ends_with(END);
    let mut listed = bundle.evidence().files();
    Ok(whole && listed.all(|file| page.contains(&file.sha256)))
}
