//! Files that end: a pipe, a device or a folder under a file's name is refused and not waited for.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// What a regular file holds.
///
/// # Errors
///
/// When it is not there or cannot be read, and when it is something else: the error says what. Of these,
/// [`io::ErrorKind::NotFound`] alone means that nothing has this name.
pub(crate) fn read(file: &Path) -> io::Result<Vec<u8>> {
    let kind = match fs::metadata(file) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(file).is_ok() => {
            return Err(io::Error::other("it is a symbolic link to nothing"));
        }
        Err(error) => return Err(error),
    };
    match kind.is_file() {
        true => fs::read(file),
        false => Err(io::Error::other(format!(
            "it is {}, not a regular file",
            named(kind)
        ))),
    }
}

fn named(kind: FileType) -> &'static str {
    match kind {
        _ if kind.is_dir() => "a folder",
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    }
}
