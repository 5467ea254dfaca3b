//! The file form: one JSON object a line.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::event::Event;
use super::observed::At;
use super::run::Run;

/// One half of a scenario, in the order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    run: Run,
    events: Vec<(At, Event)>,
}

impl History {
    /// A history of events in any order; they are put in the order of their times, equal times as they come.
    pub fn new(run: Run, mut events: Vec<(At, Event)>) -> History {
        events.sort_by_key(|(at, _)| *at);
        History { run, events }
    }

    /// The header.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The events with their times and the lines of the file that they stand on. The header is line 1.
    pub fn events(&self) -> impl Iterator<Item = (usize, At, &Event)> {
        self.events
            .iter()
            .enumerate()
            .map(|(index, (at, event))| (index + 2, *at, event))
    }

    /// Writes the file: header, events, and a last line that counts all lines.
    ///
    /// # Errors
    ///
    /// What writing to `out` fails with.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        write_line(&mut out, &Line::Run(&self.run))?;
        for (at, event) in &self.events {
            write_line(&mut out, &Timed { at: *at, event })?;
        }
        let lines = self.events.len() + 2;
        write_line(&mut out, &Line::End(End { lines }))?;
        out.flush()
    }

    /// Reads a file and refuses whatever is not wholly understood. Times are taken as they stand, in whatever order: that is
    /// for the judge.
    ///
    /// # Errors
    ///
    /// [`ReadError`], which names the line.
    pub fn read(input: impl BufRead) -> Result<History, ReadError> {
        let mut run = None;
        let mut events = Vec::new();
        let mut ended = false;
        let mut line = 0;
        for text in Lines(input) {
            line += 1;
            let text = text.map_err(|source| ReadError::Io { line, source })?;
            if ended {
                return Err(ReadError::AfterTheEnd { line });
            }
            match (parse(line, &text)?, &run) {
                (Parsed::Run(header), None) => {
                    if header.schema != Run::SCHEMA {
                        return Err(ReadError::Schema {
                            line,
                            schema: header.schema,
                        });
                    }
                    run = Some(*header);
                }
                (Parsed::Run(_), Some(_)) => return Err(ReadError::SecondHeader { line }),
                (_, None) => return Err(ReadError::NoHeader { line }),
                (Parsed::Event(at, event), Some(_)) => events.push((at, *event)),
                (Parsed::End(end), Some(_)) => {
                    if end.lines != line {
                        return Err(ReadError::Count {
                            line,
                            counted: end.lines,
                        });
                    }
                    ended = true;
                }
            }
        }
        match run {
            Some(run) if ended => Ok(History { run, events }),
            _ => Err(ReadError::Cut { line }),
        }
    }
}

/// A file that is no whole history. Nothing can be judged from it: take the file again from where it was made.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read. Look at the source.
    #[error("line {line} cannot be read")]
    Io {
        /// The line.
        line: usize,
        /// What reading failed with.
        source: io::Error,
    },
    /// The line is no event: no JSON, an unknown kind, a field too many or too few. The source says which.
    #[error("line {line} is no event")]
    Malformed {
        /// The line.
        line: usize,
        /// What was wrong with it.
        source: serde_json::Error,
    },
    /// The file is of a form that this version does not know. Judge it with the version that wrote it.
    #[error("line {line} says schema {schema}, which is not known here")]
    Schema {
        /// The line.
        line: usize,
        /// The form that it claims.
        schema: u32,
    },
    /// The first line is not the header. The beginning is missing.
    #[error("line {line} stands before the header")]
    NoHeader {
        /// The line.
        line: usize,
    },
    /// A second header. Two files were joined.
    #[error("line {line} is a second header")]
    SecondHeader {
        /// The line.
        line: usize,
    },
    /// The last line counts other lines than there are. Some were removed or added.
    #[error("line {line} ends the history and counts {counted} lines")]
    Count {
        /// The line.
        line: usize,
        /// What it counts.
        counted: usize,
    },
    /// Something follows the last line.
    #[error("line {line} stands after the end")]
    AfterTheEnd {
        /// The line.
        line: usize,
    },
    /// The file ends before its last line, or within it. It was cut.
    #[error("the history is cut after line {line}")]
    Cut {
        /// The last line that was there.
        line: usize,
    },
}

impl ReadError {
    /// The line at fault, from 1.
    pub fn line(&self) -> usize {
        match self {
            ReadError::Io { line, .. }
            | ReadError::Malformed { line, .. }
            | ReadError::Schema { line, .. }
            | ReadError::NoHeader { line }
            | ReadError::SecondHeader { line }
            | ReadError::Count { line, .. }
            | ReadError::AfterTheEnd { line }
            | ReadError::Cut { line } => *line,
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line<'a> {
    Run(&'a Run),
    End(End),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    lines: usize,
}

#[derive(Serialize)]
struct Timed<'a> {
    at: At,
    #[serde(flatten)]
    event: &'a Event,
}

enum Parsed {
    Run(Box<Run>),
    Event(At, Box<Event>),
    End(End),
}

fn write_line(out: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

fn parse(line: usize, text: &str) -> Result<Parsed, ReadError> {
    parse_object(text).map_err(|source| ReadError::Malformed { line, source })
}

fn parse_object(text: &str) -> Result<Parsed, serde_json::Error> {
    let mut fields: Map<String, Value> = serde_json::from_str(text)?;
    let kind = fields.get("kind").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "run" => {
            fields.remove("kind");
            serde_json::from_value(fields.into()).map(|run| Parsed::Run(Box::new(run)))
        }
        "end" => {
            fields.remove("kind");
            serde_json::from_value(fields.into()).map(Parsed::End)
        }
        _ => {
            let at = serde_json::from_value(fields.remove("at").unwrap_or_default())?;
            let event = serde_json::from_value(fields.into())?;
            Ok(Parsed::Event(at, Box::new(event)))
        }
    }
}

/// Lines that end in a newline; a last one that does not is an error, because it may be half of one.
struct Lines<R>(R);

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<io::Result<String>> {
        let mut text = String::new();
        match self.0.read_line(&mut text) {
            Ok(0) => None,
            Ok(_) if text.ends_with('\n') => {
                text.pop();
                Some(Ok(text))
            }
            Ok(_) => Some(Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the line does not end",
            ))),
            Err(error) => Some(Err(error)),
        }
    }
}
