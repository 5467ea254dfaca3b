//! What a holder's SQL does, as far as its text tells: what it admits, what it writes, and whether it is a query that is
//! known.
//!
//! This reads words, not grammar. A write inside a function of the database's own is not seen, nor is a claim whose parts are
//! computed in the statement.

use crate::wire::postgres::{Parameter, Statement};

/// A call of one of the guard's two functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Call {
    /// Whether it is `fence.raise_mark`.
    pub(super) raises: bool,
    /// Class, key, token and grant id, letter for letter, where the statement gives them as values.
    pub(super) class: Option<String>,
    pub(super) key: Option<String>,
    pub(super) token: Option<String>,
    pub(super) grant: Option<String>,
}

/// A statement's text in words.
#[derive(Clone, Debug)]
pub(super) struct Words {
    words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// A name or a key word, in lower case unless it was quoted.
    Name(String),
    /// The text of a literal or of a parameter.
    Value(String),
    /// A number as it was written.
    Number(String),
    Sign(char),
}

impl Words {
    /// The words of a statement, with its parameters in their places.
    pub(super) fn of(statement: &Statement) -> Words {
        let mut words = Words::read(&statement.text);
        words.put(&statement.parameters);
        words
    }

    /// The words of a text without parameters.
    pub(super) fn read(text: &str) -> Words {
        let mut rest = text;
        let mut words = Vec::new();
        while let Some(first) = rest.chars().next() {
            let (word, length) = next(rest, first);
            words.extend(word);
            rest = &rest[length..];
        }
        while words.last() == Some(&Word::Sign(';')) {
            words.pop();
        }
        Words { words }
    }

    /// Whether it is this query, whatever the white space, the case of its words, and the form of its values.
    pub(super) fn is(&self, query: &Words) -> bool {
        self.words.len() == query.words.len()
            && self
                .words
                .iter()
                .zip(&query.words)
                .all(|(one, other)| one.says(other))
    }

    /// Every call of the guard's functions.
    pub(super) fn calls(&self) -> Vec<Call> {
        let mut calls = Vec::new();
        for (at, window) in self.words.windows(4).enumerate() {
            let [
                Word::Name(schema),
                Word::Sign('.'),
                Word::Name(function),
                Word::Sign('('),
            ] = window
            else {
                continue;
            };
            let raises = match (schema.as_str(), function.as_str()) {
                ("fence", "admit") => false,
                ("fence", "raise_mark") => true,
                _ => continue,
            };
            calls.push(call(raises, &self.words[at + 4..]));
        }
        calls
    }

    /// Whether it inserts into, updates, deletes from or merges into a table of this name, with or without its schema.
    pub(super) fn writes(&self, table: &str) -> bool {
        let name = |at: usize| match self.words.get(at) {
            Some(Word::Name(name)) => Some(name.as_str()),
            _ => None,
        };
        (0..self.words.len()).any(|at| {
            let mut target = match (name(at), name(at + 1)) {
                (Some("insert" | "merge"), Some("into")) | (Some("delete"), Some("from")) => at + 2,
                (Some("update"), _) => at + 1,
                _ => return false,
            };
            if name(target) == Some("only") {
                target += 1;
            }
            if self.words.get(target + 1) == Some(&Word::Sign('.')) {
                target += 2;
            }
            name(target) == Some(table)
        })
    }

    /// Its values and numbers, in order.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter_map(|word| match word {
            Word::Value(text) | Word::Number(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Puts the parameters where `$1`, `$2` and so on stand.
    fn put(&mut self, parameters: &[Parameter]) {
        for word in &mut self.words {
            let Word::Name(name) = word else { continue };
            let number = name
                .strip_prefix('$')
                .and_then(|number| number.parse::<usize>().ok());
            let parameter = number.and_then(|number| parameters.get(number.checked_sub(1)?));
            if let Some(text) = parameter.and_then(said) {
                *word = Word::Value(text);
            }
        }
    }
}

impl Word {
    /// A number says what a text of the same digits says: drivers send either.
    fn says(&self, other: &Word) -> bool {
        match (self, other) {
            (Word::Value(one) | Word::Number(one), Word::Value(other) | Word::Number(other)) => one == other,
            _ => self == other,
        }
    }
}

fn call(raises: bool, words: &[Word]) -> Call {
    let mut call = Call {
        raises,
        ..Call::default()
    };
    for (position, argument) in arguments(words).into_iter().enumerate() {
        let (name, value) = match argument {
            [Word::Name(name), Word::Sign('='), Word::Sign('>'), value @ ..]
            | [Word::Name(name), Word::Sign(':'), Word::Sign('='), value @ ..] => (name.as_str(), value),
            value => (
                ["class", "key", "token", "grant_id"]
                    .get(position)
                    .copied()
                    .unwrap_or_default(),
                value,
            ),
        };
        // What follows a value is at most a cast.
        let value = match value {
            [Word::Value(text) | Word::Number(text)] => Some(text.clone()),
            [
                Word::Value(text) | Word::Number(text),
                Word::Sign(':'),
                Word::Sign(':'),
                Word::Name(_),
            ] => Some(text.clone()),
            _ => None,
        };
        match name {
            "class" => call.class = value,
            "key" => call.key = value,
            "token" => call.token = value,
            "grant_id" => call.grant = value,
            _ => {}
        }
    }
    call
}

/// The arguments up to the closing parenthesis, cut at the commas between them.
fn arguments(words: &[Word]) -> Vec<&[Word]> {
    let (mut all, mut from, mut depth) = (Vec::new(), 0, 0);
    for (at, word) in words.iter().enumerate() {
        match word {
            Word::Sign('(') => depth += 1,
            Word::Sign(')') if depth == 0 => {
                all.push(&words[from..at]);
                return all;
            }
            Word::Sign(')') => depth -= 1,
            Word::Sign(',') if depth == 0 => {
                all.push(&words[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    all
}

/// What a parameter says as text.
fn said(parameter: &Parameter) -> Option<String> {
    let text = parameter.as_text().map(str::to_owned);
    match parameter {
        // A number's bytes may happen to be text as well; with a zero among them they are none.
        Parameter::Binary(bytes) if matches!(bytes.len(), 2 | 4 | 8) && bytes.contains(&0) => {
            parameter.as_integer().map(|number| number.to_string())
        }
        Parameter::Binary(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => text,
    }
}

/// The word at the beginning of `rest`, which begins with `first`, and how many bytes it takes. White space and comments are
/// none.
fn next(rest: &str, first: char) -> (Option<Word>, usize) {
    let until = |end: &str, from: usize| {
        rest[from..]
            .find(end)
            .map_or(rest.len(), |at| from + at + end.len())
    };
    let while_in = |is: fn(char) -> bool| rest.find(|letter| !is(letter)).unwrap_or(rest.len());
    match first {
        _ if first.is_whitespace() => (None, while_in(char::is_whitespace)),
        '-' if rest.starts_with("--") => (None, until("\n", 2)),
        '/' if rest.starts_with("/*") => (None, until("*/", 2)),
        '\'' => {
            let (text, length) = quoted(rest, '\'');
            (Some(Word::Value(text)), length)
        }
        '"' => {
            let (text, length) = quoted(rest, '"');
            (Some(Word::Name(text)), length)
        }
        '0'..='9' => {
            let length = while_in(|letter| letter.is_ascii_digit() || letter == '.');
            (Some(Word::Number(rest[..length].to_owned())), length)
        }
        '$' if rest.starts_with("$$") => {
            let length = until("$$", 2);
            let text = rest[2..length].trim_end_matches("$$").to_owned();
            (Some(Word::Value(text)), length)
        }
        _ if first.is_alphabetic() || first == '_' || first == '$' => {
            let length = while_in(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$');
            (Some(Word::Name(rest[..length].to_lowercase())), length)
        }
        sign => (Some(Word::Sign(sign)), sign.len_utf8()),
    }
}

/// A text in quotes, of which two in a row stand for one, and how many bytes it takes.
fn quoted(rest: &str, quote: char) -> (String, usize) {
    let mut text = String::new();
    let mut letters = rest.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == quote && letters.next_if(|(_, next)| *next == quote).is_none() {
            return (text, at + quote.len_utf8());
        }
        text.push(letter);
    }
    (text, rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn with(text: &str, parameters: Vec<Parameter>) -> Words {
        let mut words = Words::read(text);
        words.put(&parameters);
        words
    }

    #[test]
    fn a_claim_is_found_as_literals_as_parameters_and_by_name() {
        let claim = |raises| Call {
            raises,
            class: some("app.doc"),
            key: some("it's"),
            token: some("281474976710663"),
            grant: some("b2f1"),
        };
        let literal = "select Fence.admit('app.doc', 'it''s', 281474976710663::bigint, 'b2f1') -- the fence";
        assert_eq!(Words::read(literal).calls(), [claim(false)]);
        let parameters = vec![
            Parameter::Text("app.doc".to_owned()),
            Parameter::Binary(b"it's".to_vec()),
            Parameter::Binary(281_474_976_710_663_i64.to_be_bytes().to_vec()),
            Parameter::Text("b2f1".to_owned()),
        ];
        let bound = with("SELECT fence.raise_mark($1, $2, $3, $4)", parameters);
        assert_eq!(bound.calls(), [claim(true)]);
        let named = "SELECT fence.admit(grant_id => 'b2f1', token := '281474976710663', key => 'it''s', class => 'app.doc')";
        assert_eq!(Words::read(named).calls(), [claim(false)]);
        let computed = Words::read("SELECT fence.admit('app.doc', lower('A'), 7, NULL)").calls();
        assert_eq!(
            (computed[0].key.clone(), computed[0].token.clone()),
            (None, some("7"))
        );
        assert!(
            Words::read("SELECT 'fence.admit(1, 2, 3, 4)' /* fence.admit() */")
                .calls()
                .is_empty()
        );
    }

    #[test]
    fn every_verb_that_writes_the_table_is_seen_and_no_other_table() {
        for text in [
            "INSERT INTO document VALUES ($1)",
            "update only public.document set title = 'x'",
            "DELETE FROM \"document\" WHERE true",
            "MERGE INTO public.document d USING s ON true WHEN MATCHED THEN DELETE",
            "BEGIN; SELECT fence.admit('a', 'b', 1, 'c'); INSERT INTO document VALUES (1); COMMIT",
            "WITH old AS (DELETE FROM document RETURNING 1) SELECT 1 FROM old",
        ] {
            assert!(Words::read(text).writes("document"), "{text}");
        }
        for text in [
            "SELECT * FROM document FOR UPDATE OF document",
            "INSERT INTO documents SELECT * FROM document",
            "INSERT INTO document.log VALUES (1)",
            "SELECT 'INSERT INTO document'",
        ] {
            assert!(!Words::read(text).writes("document"), "{text}");
        }
    }

    #[test]
    fn a_query_is_known_whatever_its_white_space_case_and_form_of_values() {
        let known = Words::read("SELECT id FROM document WHERE slug = 'doc-1'");
        let doc = || vec![Parameter::Text("doc-1".to_owned())];
        assert!(with("select id\n from document where slug = $1;", doc()).is(&known));
        assert!(!with("SELECT id FROM document WHERE slug <> $1", doc()).is(&known));
        assert!(!Words::read("SELECT id FROM document WHERE slug = 'doc-2'").is(&known));
    }
}
