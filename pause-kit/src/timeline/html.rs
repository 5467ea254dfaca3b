//! Writes HTML in which no text from outside can become markup.

use std::fmt::Display;

/// A page in the making. Markup comes from this program's own literals alone; everything else goes through
/// [`text`](Html::text).
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Markup, letter for letter: what stands in this program.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Html {
        self.0.push_str(markup);
        self
    }

    /// Text, or the value of a quoted attribute, with everything escaped that means something in either. Characters that
    /// are not shown, or that turn the direction of others, become U+FFFD.
    pub(super) fn text(&mut self, text: impl Display) -> &mut Html {
        for one in text.to_string().chars() {
            match one {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}' => {
                    self.0.push('\u{FFFD}');
                }
                _ if one.is_control() => self.0.push('\u{FFFD}'),
                _ => self.0.push(one),
            }
        }
        self
    }

    /// The same for a sentence, with each short word that holds a digit kept on one line: tokens, jobs, times.
    pub(super) fn words(&mut self, sentence: &str) -> &mut Html {
        for (index, word) in sentence.split(' ').enumerate() {
            self.raw(if index == 0 { "" } else { " " });
            let is_whole = word.chars().count() <= 20 && word.bytes().any(|byte| byte.is_ascii_digit());
            match is_whole {
                true => self.element("<span class=\"n\">", word, "</span>"),
                false => self.text(word),
            };
        }
        self
    }

    /// An element's text between its tags.
    pub(super) fn element(
        &mut self,
        open: &'static str,
        text: impl Display,
        close: &'static str,
    ) -> &mut Html {
        self.raw(open).text(text).raw(close)
    }

    /// Another page's markup.
    pub(super) fn append(&mut self, other: Html) -> &mut Html {
        self.0.push_str(&other.0);
        self
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Html;

    #[test]
    fn no_text_becomes_markup_or_leaves_its_attribute_or_turns_what_follows() {
        let mut html = Html::default();
        html.raw("<p title=\"")
            .text("\" onclick='x'")
            .raw("\">")
            .text("<script>&\u{202E}\u{7}")
            .raw("</p>");
        assert_eq!(
            html.into_string(),
            "<p title=\"&quot; onclick=&#39;x&#39;\">&lt;script&gt;&amp;\u{FFFD}\u{FFFD}</p>"
        );
    }
}
