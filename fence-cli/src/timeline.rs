//! `fence timeline`: draws a folder of evidence again.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use pause_kit::review::{Bundle, OpenError};
use pause_kit::timeline::{Drawing, FILE, is_page};

use crate::exit::{Ending, Failure};
use crate::say;

/// What to draw, and where to put the page.
#[derive(Debug, Args)]
pub(crate) struct TimelineArguments {
    /// The folder of the evidence
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Put the page into this file [default: timeline.html in the folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Draws.
pub(crate) fn run(arguments: &TimelineArguments) -> Result<Ending, Failure> {
    let bundle = Bundle::open(&arguments.folder).map_err(|error| Failure::usage(at_its_place(error)))?;
    let drawing = Drawing::of_bundle(&bundle).map_err(Failure::usage)?;
    let file = arguments
        .out
        .clone()
        .unwrap_or_else(|| arguments.folder.join(FILE));
    write(&file, drawing.page().as_bytes()).map_err(Failure::usage)?;
    say::answer(&format!("drawn: {}\n", file.display()))?;
    Ok(Ending::Done)
}

/// A folder that holds no evidence. Name the one that `fence prove` wrote.
#[derive(Debug, thiserror::Error)]
#[error("{place}: there is no evidence to draw")]
struct NothingToDraw {
    place: String,
    source: OpenError,
}

fn at_its_place(source: OpenError) -> NothingToDraw {
    let (file, line) = source.place();
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    NothingToDraw {
        place: format!("{}{line}", file.display()),
        source,
    }
}

/// The page could not be put in its place. Name another file with `--out`.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error("{} is no page that fence has drawn, and is left alone; name another file with --out", .0.display())]
    Foreign(PathBuf),
    #[error("cannot write {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
}

/// Puts the page in its place whole or not at all, and over nothing but an older page.
fn write(file: &Path, page: &[u8]) -> Result<(), WriteError> {
    let failed = |source| WriteError::Io(file.to_owned(), source);
    if !is_free(file).map_err(failed)? {
        return Err(WriteError::Foreign(file.to_owned()));
    }
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut staged = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(failed)?;
    staged.write_all(page).map_err(failed)?;
    staged.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}

fn is_free(file: &Path) -> io::Result<bool> {
    match is_page(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        page => page,
    }
}
