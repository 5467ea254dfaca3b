//! Faults in a file of TOML, with the line on which each stands.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::check::{Fault, Step};
use super::forms;
use crate::regular;

/// Nothing can be done from this file. Correct the line, or name another `fence.toml` with `--config`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// There is none.
    #[error(
        "there is no fence.toml in {} or above it; write one, or name it with --config FILE",
        from.display()
    )]
    NotFound {
        /// Where the search began.
        from: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A line of it is wrong.
    #[error("{}:{line}: {message}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and the right form.
        message: String,
    },
}

impl ConfigError {
    /// The file at fault, and the line in it where there is one.
    pub(crate) fn place(&self) -> (&Path, Option<usize>) {
        match self {
            ConfigError::NotFound { from } => (from, None),
            ConfigError::Read { file, .. } => (file, None),
            ConfigError::Line { file, line, .. } => (file, Some(*line)),
        }
    }
}

/// The text of a regular file.
pub(crate) fn text_of(file: &Path) -> Result<String, ConfigError> {
    let bytes = regular::read(file).map_err(|source| ConfigError::Read {
        file: file.to_owned(),
        source,
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let (good, bad) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let good = String::from_utf8_lossy(good);
        let column = good.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let byte = bad.first().copied().unwrap_or_default();
        ConfigError::Line {
            file: file.to_owned(),
            line: good.matches('\n').count() + 1,
            message: format!("the byte 0x{byte:02x} in column {column} is no UTF-8; save the file as UTF-8"),
        }
    })
}

/// A file's text, to find lines in.
pub(crate) struct Lines<'a> {
    file: &'a Path,
    text: &'a str,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(file: &'a Path, text: &'a str) -> Lines<'a> {
        Lines { file, text }
    }

    /// A fault that the parser found.
    pub(crate) fn parse_error(&self, error: &toml::de::Error) -> ConfigError {
        let span = error.span().unwrap_or(0..0);
        let message = forms::told(self.text, &span, error.message());
        self.at(span, message)
    }

    /// A fault in what was parsed.
    pub(super) fn fault(&self, fault: Fault) -> ConfigError {
        self.at(self.span(&fault.at), fault.message)
    }

    /// The line on which the value stands, or the nearest thing around it that was written down.
    pub(super) fn line_of(&self, path: &[Step]) -> usize {
        self.line(&self.span(path))
    }

    /// A fault in the bytes of this span.
    pub(crate) fn at(&self, span: Range<usize>, message: String) -> ConfigError {
        ConfigError::Line {
            file: self.file.to_owned(),
            line: self.line(&span),
            message,
        }
    }

    /// The line on which a span begins, from 1.
    pub(crate) fn line(&self, span: &Range<usize>) -> usize {
        self.text[..span.start.min(self.text.len())].matches('\n').count() + 1
    }

    /// Where the value stands, or the nearest thing around it that was written down.
    fn span(&self, path: &[Step]) -> Range<usize> {
        let Ok(table) = DeTable::parse(self.text) else {
            return 0..0;
        };
        let mut span = table.span();
        let mut here = DeValue::Table(table.into_inner());
        for step in path {
            let next = match (&here, step) {
                (DeValue::Table(table), Step::Key(key)) => table
                    .iter()
                    .find(|(name, _)| name.get_ref() == key)
                    .map(|(name, value)| match value.get_ref() {
                        // A table's own span is its header or its braces; the key is where the eye looks.
                        DeValue::Table(_) => (name.span(), value.get_ref().clone()),
                        _ => (value.span(), value.get_ref().clone()),
                    }),
                (DeValue::Array(array), Step::Index(index)) => array
                    .get(*index)
                    .map(|value| (value.span(), value.get_ref().clone())),
                _ => None,
            };
            let Some((found, value)) = next else { break };
            span = found;
            here = value;
        }
        span
    }
}
