//! Which scenarios are run, as an expression: `tag(revoke) and not id(S17)`.

use std::str::FromStr;

use pause_kit::scenario::{ScenarioId, Tag};

/// An expression of `--select`, with the text that it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    text: String,
    root: Term,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Id(ScenarioId),
    Tag(Tag),
    Not(Box<Term>),
    All(Vec<Term>),
    Any(Vec<Term>),
}

/// The text is no expression: write one of the form that the message shows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at {place} of \"{text}\"; write such as 'tag(revoke) and not (id(S17) or id(S34))'")]
pub(super) struct SelectionFault {
    what: String,
    place: String,
    text: String,
}

impl Selection {
    /// Whether this scenario is one of those meant.
    pub(super) fn means(&self, scenario: ScenarioId) -> bool {
        self.root.means(scenario)
    }

    /// The expression as it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl Term {
    fn means(&self, scenario: ScenarioId) -> bool {
        match self {
            Term::Id(id) => *id == scenario,
            Term::Tag(tag) => tag.is_on(scenario),
            Term::Not(term) => !term.means(scenario),
            Term::All(terms) => terms.iter().all(|term| term.means(scenario)),
            Term::Any(terms) => terms.iter().any(|term| term.means(scenario)),
        }
    }
}

impl FromStr for Selection {
    type Err = SelectionFault;

    fn from_str(text: &str) -> Result<Selection, SelectionFault> {
        let mut reader = Reader::over(text);
        let root = reader.any().and_then(|root| match reader.peek() {
            None => Ok(root),
            Some(word) => Err(format!("\"{word}\" follows what is whole")),
        });
        let place = match reader.words.get(reader.next) {
            Some((at, _)) => format!("character {}", at + 1),
            None => "the end".to_owned(),
        };
        let text = text.to_owned();
        match root {
            Ok(root) => Ok(Selection { text, root }),
            Err(what) => Err(SelectionFault { what, place, text }),
        }
    }
}

/// Reads an expression word by word. On an error it stands at the word that is at fault.
struct Reader<'t> {
    /// Each with the place of its first byte.
    words: Vec<(usize, &'t str)>,
    next: usize,
}

impl<'t> Reader<'t> {
    fn over(text: &'t str) -> Reader<'t> {
        let mut words = Vec::new();
        let mut from = None;
        for (at, letter) in text.char_indices().chain([(text.len(), ' ')]) {
            if letter.is_whitespace() || matches!(letter, '(' | ')') {
                words.extend(from.take().map(|from| (from, &text[from..at])));
                if !letter.is_whitespace() {
                    words.push((at, &text[at..=at]));
                }
            } else {
                from.get_or_insert(at);
            }
        }
        Reader { words, next: 0 }
    }

    fn peek(&self) -> Option<&'t str> {
        self.words.get(self.next).map(|(_, word)| *word)
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.next += usize::from(found);
        found
    }

    fn needs(&mut self, word: &str) -> Result<(), String> {
        match self.takes(word) {
            true => Ok(()),
            false => Err(format!("\"{word}\" is missing")),
        }
    }

    fn any(&mut self) -> Result<Term, String> {
        let mut terms = vec![self.all()?];
        while self.takes("or") {
            terms.push(self.all()?);
        }
        Ok(Term::Any(terms))
    }

    fn all(&mut self) -> Result<Term, String> {
        let mut terms = vec![self.one()?];
        while self.takes("and") {
            terms.push(self.one()?);
        }
        Ok(Term::All(terms))
    }

    fn one(&mut self) -> Result<Term, String> {
        if self.takes("not") {
            return Ok(Term::Not(Box::new(self.one()?)));
        }
        if self.takes("(") {
            let inner = self.any()?;
            return self.needs(")").map(|()| inner);
        }
        let is_tag = match self.peek() {
            Some("tag") => true,
            Some("id") => false,
            Some(word) => return Err(format!("\"{word}\" is none of not, id(…), tag(…) and (…)")),
            None => return Err("an id(…) or tag(…) is missing".to_owned()),
        };
        self.next += 1;
        self.needs("(")?;
        let word = self.peek().unwrap_or_default();
        let term = match is_tag {
            true => Term::Tag(word.parse().map_err(|fault| format!("{fault}"))?),
            false => Term::Id(word.parse().map_err(|fault| format!("{fault}"))?),
        };
        self.next += 1;
        self.needs(")").map(|()| term)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(text: &str, id: &str) -> bool {
        text.parse::<Selection>().unwrap().means(id.parse().unwrap())
    }

    #[test]
    fn not_binds_before_and_which_binds_before_or() {
        assert!(means("id(S01) or id(S02) and not id(S02)", "S01"));
        assert!(!means("(id(S01) or id(S02)) and not id(S01)", "S01"));
        assert!(means("not id(S01) and id(S02)", "S02"));
        assert!(means("not not(id(s04B))", "S04b"));
        assert!(!means("tag(control) or tag(front)", "S02") && means("tag(control) or tag(front)", "S18"));
        assert!(means("tag(ttl) and tag(pair)", "S01") && !means("tag(ttl) and tag(pair)", "S18"));
    }

    #[test]
    fn what_is_no_expression_is_named_with_its_place() {
        for (text, what, place) in [
            ("", "an id(…) or tag(…) is missing", "the end"),
            ("id(S01) and", "an id(…) or tag(…) is missing", "the end"),
            ("id(S01) id(S02)", "\"id\" follows what is whole", "character 9"),
            ("id(S01", "\")\" is missing", "the end"),
            ("(id(S01)", "\")\" is missing", "the end"),
            ("id S01", "\"(\" is missing", "character 4"),
            (
                "S01",
                "\"S01\" is none of not, id(…), tag(…) and (…)",
                "character 1",
            ),
            (
                "not tag(late)",
                "no tag is called \"late\"; there are ",
                "character 9",
            ),
            ("id(S99)", "no scenario is called \"S99\"", "character 4"),
        ] {
            let fault = text.parse::<Selection>().unwrap_err();
            assert!(fault.what.starts_with(what), "{text}: {fault}");
            assert_eq!(fault.place, place, "{text}: {fault}");
        }
    }
}
