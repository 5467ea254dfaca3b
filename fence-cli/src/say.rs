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

/// Writes lines to standard error.
pub(crate) fn remark(lines: &str) {
    let lines: Vec<String> = lines.split('\n').map(plain).collect();
    // There is nowhere left to say that it could not be said.
    let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
}

/// A line that a terminal shows as it is: what would steer it, or turn the order of what is read, stands escaped.
pub(crate) fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    for character in line.chars() {
        let turns = matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match turns || character.is_control() {
            true => plain.extend(character.escape_default()),
            false => plain.push(character),
        }
    }
    plain
}

fn written(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_would_steer_a_terminal_or_turn_its_text_is_escaped() {
        assert_eq!(plain("a\u{1b}[31mb"), "a\\u{1b}[31mb");
        assert_eq!(plain("a\u{9b}31mb\u{7f}"), "a\\u{9b}31mb\\u{7f}");
        assert_eq!(
            plain("a\u{202e}b\u{2066}c\u{2069}"),
            "a\\u{202e}b\\u{2066}c\\u{2069}"
        );
        assert_eq!(plain("a\r\nb"), "a\\r\\nb");
        let whole = "Zwölf \u{1f600} שלום \\ \"x\"";
        assert_eq!(plain(whole), whole);
    }
}
