//! Lines that fit a terminal.

use std::io::IsTerminal;

/// What is taken where nothing says how wide it is.
const USUAL: usize = 80;

/// How many columns standard output has.
pub(super) fn columns() -> usize {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return USUAL;
    }
    match rustix::termios::tcgetwinsize(&out) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col).max(40),
        _ => USUAL,
    }
}

/// The text in lines of at most `columns`, all `indent` from the left, and two more from the second line of a paragraph on. A
/// word that is longer has a line of its own.
pub(super) fn wrapped(text: &str, indent: usize, columns: usize) -> String {
    let mut out = String::new();
    for paragraph in text.split('\n') {
        let mut line = " ".repeat(indent);
        let mut empty = true;
        for word in paragraph.split_whitespace() {
            if !empty && line.chars().count() + 1 + word.chars().count() > columns {
                out.push_str(&line);
                out.push('\n');
                line = " ".repeat(indent + 2);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The text with ids of 32 hexadecimal digits, such as grants', cut at 8: enough to tell them apart in one table.
pub(super) fn short_ids(text: &str) -> String {
    let is_digit = |letter: char| matches!(letter, '0'..='9' | 'a'..='f');
    let mut short = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_digit) {
        let (before, run) = rest.split_at(start);
        let end = run.find(|letter| !is_digit(letter)).unwrap_or(run.len());
        let (run, after) = run.split_at(end);
        short.push_str(before);
        short.push_str(if run.len() == 32 { &run[..8] } else { run });
        rest = after;
    }
    short + rest
}

#[cfg(test)]
mod tests {
    use super::{short_ids, wrapped};

    #[test]
    fn words_that_do_not_fit_go_on_in_the_next_line_under_the_indent() {
        assert_eq!(
            wrapped("one two three four", 2, 10),
            "  one two\n    three\n    four\n"
        );
        assert_eq!(wrapped("one twelve-letters", 0, 8), "one\n  twelve-letters\n");
        assert_eq!(wrapped("first\nsecond", 1, 80), " first\n second\n");
        assert_eq!(wrapped("", 0, 80), "\n");
    }

    #[test]
    fn ids_are_cut_and_tokens_and_words_are_not() {
        assert_eq!(
            short_ids("by H2 (grant f7d76e9293424194a3e542ed0b23bb92, token 281474976710661), faded"),
            "by H2 (grant f7d76e92, token 281474976710661), faded"
        );
    }
}
