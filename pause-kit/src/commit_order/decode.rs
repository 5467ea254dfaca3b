//! The text form of PostgreSQL's `test_decoding` plugin.

use std::collections::BTreeMap;

/// One committed change of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its place among all changes that were read, from 1, in the order of commits and, within a transaction, of the log.
    pub order: u64,
    /// The transaction's place among those that were read, from 1, in the order of commits.
    pub commit: u64,
    /// The log position of the transaction's commit, as PostgreSQL prints it.
    pub commit_lsn: String,
    /// The transaction's id. It says which changes belong together, and nothing about order.
    pub xid: u32,
    /// The table: `schema.table`, with neither of them quoted.
    pub relation: String,
    /// What happened to the row.
    pub operation: Operation,
    /// The row's columns after the change; for a delete, those of its replica identity before it. NULL is none. A large
    /// value that an update left as it was is not logged, and its column is absent.
    pub columns: BTreeMap<String, Option<String>>,
    /// The replica identity before an update that changed it.
    pub old_key: BTreeMap<String, Option<String>>,
}

/// What happened to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It was inserted.
    Insert,
    /// It was updated.
    Update,
    /// It was deleted.
    Delete,
    /// Its table was emptied; the columns are empty.
    Truncate,
}

/// A line that is none of the plugin's. The server's plugin prints what this reader does not know: report it with the line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the decoding plugin's line {line:?} has no {expected} at byte {at}")]
pub struct DecodeError {
    /// The line.
    pub line: String,
    /// Where reading it failed.
    pub at: usize,
    /// What was expected there.
    pub expected: &'static str,
}

/// One line of the plugin's output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Begin {
        xid: u32,
    },
    Commit,
    /// A message that a session put into the log; it changes nothing.
    Message,
    Change(RowChange),
}

type Columns = BTreeMap<String, Option<String>>;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RowChange {
    /// One, but for a truncate of several tables.
    pub(crate) relations: Vec<String>,
    pub(crate) operation: Operation,
    pub(crate) columns: Columns,
    pub(crate) old_key: Columns,
}

/// Reads one line.
pub(crate) fn decode(text: &str) -> Result<Line, DecodeError> {
    let mut line = Cursor { text, at: 0 };
    if line.eat("BEGIN ") {
        return Ok(Line::Begin { xid: line.number()? });
    }
    if line.eat("COMMIT") {
        return Ok(Line::Commit);
    }
    if line.eat("message: ") {
        return Ok(Line::Message);
    }
    line.expect("table ", "kind of line")?;
    let mut relations = vec![line.relation()?];
    while line.eat(", ") {
        relations.push(line.relation()?);
    }
    line.expect(": ", "colon")?;
    let operation = line.operation()?;
    let mut change = RowChange {
        relations,
        operation,
        columns: Columns::new(),
        old_key: Columns::new(),
    };
    if operation == Operation::Truncate || line.eat(" (no-tuple-data)") {
        return Ok(Line::Change(change));
    }
    if line.eat(" old-key:") {
        change.old_key = line.columns()?;
        line.expect(" new-tuple:", "new tuple")?;
    }
    change.columns = line.columns()?;
    line.end()?;
    Ok(Line::Change(change))
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect(&mut self, word: &str, expected: &'static str) -> Result<(), DecodeError> {
        if self.eat(word) {
            Ok(())
        } else {
            Err(self.lacks(expected))
        }
    }

    fn lacks(&self, expected: &'static str) -> DecodeError {
        DecodeError {
            line: self.text.to_owned(),
            at: self.at,
            expected,
        }
    }

    fn end(&self) -> Result<(), DecodeError> {
        if self.rest().is_empty() {
            Ok(())
        } else {
            Err(self.lacks("end"))
        }
    }

    /// Takes the bytes as long as they satisfy the test.
    fn while_byte(&mut self, test: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().position(|byte| !test(byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn number(&mut self) -> Result<u32, DecodeError> {
        let digits = self.while_byte(|byte| byte.is_ascii_digit());
        digits.parse().map_err(|_| self.lacks("number"))
    }

    fn relation(&mut self) -> Result<String, DecodeError> {
        let schema = self.identifier(b".:,")?;
        self.expect(".", "dot in the table's name")?;
        let table = self.identifier(b":,")?;
        Ok(format!("{schema}.{table}"))
    }

    /// A name: quoted as SQL quotes it, or plain up to one of the bytes that end it.
    fn identifier(&mut self, ends: &[u8]) -> Result<String, DecodeError> {
        if self.rest().starts_with('"') {
            return self.quoted('"');
        }
        let name = self.while_byte(|byte| !ends.contains(&byte));
        if name.is_empty() {
            Err(self.lacks("name"))
        } else {
            Ok(name.to_owned())
        }
    }

    /// Text between quotes, in which the quote itself stands doubled.
    fn quoted(&mut self, quote: char) -> Result<String, DecodeError> {
        let mut text = String::new();
        self.at += quote.len_utf8();
        loop {
            let Some(end) = self.rest().find(quote) else {
                return Err(self.lacks("closing quote"));
            };
            text.push_str(&self.rest()[..end]);
            self.at += end + quote.len_utf8();
            if !self.rest().starts_with(quote) {
                return Ok(text);
            }
            text.push(quote);
            self.at += quote.len_utf8();
        }
    }

    fn operation(&mut self) -> Result<Operation, DecodeError> {
        let words = [
            ("INSERT:", Operation::Insert),
            ("UPDATE:", Operation::Update),
            ("DELETE:", Operation::Delete),
            ("TRUNCATE:", Operation::Truncate),
        ];
        let found = words.into_iter().find(|(word, _)| self.eat(word));
        found
            .map(|(_, operation)| operation)
            .ok_or_else(|| self.lacks("operation"))
    }

    /// Columns, each with a space before it, up to the end or the next part of the line.
    fn columns(&mut self) -> Result<Columns, DecodeError> {
        let mut columns = Columns::new();
        while !self.rest().is_empty() && !self.rest().starts_with(" new-tuple:") {
            self.expect(" ", "space before a column")?;
            let name = self.identifier(b"[")?;
            self.column_type()?;
            self.expect(":", "colon before a value")?;
            if !self.eat("unchanged-toast-datum") {
                columns.insert(name, self.value()?);
            }
        }
        Ok(columns)
    }

    /// A type in brackets; it may contain brackets itself, and quoted names with any character.
    fn column_type(&mut self) -> Result<(), DecodeError> {
        let mut depth = 0_usize;
        loop {
            match self.rest().bytes().next() {
                Some(b'[') => depth += 1,
                Some(b']') => depth -= 1,
                Some(b'"') => {
                    self.quoted('"')?;
                    continue;
                }
                Some(_) if depth > 0 => {
                    self.while_byte(|byte| !matches!(byte, b'[' | b']' | b'"'));
                    continue;
                }
                _ => return Err(self.lacks("column type")),
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn value(&mut self) -> Result<Option<String>, DecodeError> {
        // Bit strings are B'..', everything that is neither a number nor a boolean is quoted.
        if self.rest().starts_with("B'") {
            self.at += 1;
        }
        if self.rest().starts_with('\'') {
            return self.quoted('\'').map(Some);
        }
        match self.while_byte(|byte| byte != b' ') {
            "" => Err(self.lacks("value")),
            "null" => Ok(None),
            plain => Ok(Some(plain.to_owned())),
        }
    }
}
