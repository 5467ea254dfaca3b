//! From frames to messages.

use loona_hpack::Decoder;

use super::frame::{END_HEADERS, END_STREAM, Frame, Kind, PREFACE, frames};
use crate::wire::http::message::{AnswerHead, Headers, Malformed, Message, RequestHead};

/// The messages of one direction, each with the number of its stream, in the order in which they began.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Messages<H> {
    pub(crate) messages: Vec<(u32, Message<H>)>,
    /// The streams that the sender gave up.
    pub(crate) reset: Vec<u32>,
    pub(crate) malformed: Option<Malformed>,
}

/// Cuts what a client sent, preface and all.
pub(crate) fn requests(bytes: &[u8]) -> Messages<RequestHead> {
    cut(bytes, PREFACE.len(), |fields| {
        Ok(Some(RequestHead {
            method: fields.take(":method")?,
            target: fields.take(":path")?,
        }))
    })
}

/// Cuts what a server sent. Interim answers (1xx) are left out.
pub(crate) fn answers(bytes: &[u8]) -> Messages<AnswerHead> {
    cut(bytes, 0, |fields| {
        let status = fields.take(":status")?;
        match status.parse() {
            Ok(status @ 200..=999) => Ok(Some(AnswerHead { status })),
            Ok(100..=199) => Ok(None),
            _ => Err(format!(":status {status:?}")),
        }
    })
}

/// The fields of a header section; the names of those that stand for HTTP/1.1's first line begin with a colon.
struct Fields(Vec<(String, Vec<u8>)>);

impl Fields {
    fn take(&mut self, name: &str) -> Result<String, String> {
        let at = self.0.iter().position(|(field, _)| field == name);
        let at = at.ok_or_else(|| format!("no {name}"))?;
        String::from_utf8(self.0.remove(at).1).map_err(|_| format!("{name} is no text"))
    }

    fn into_headers(mut self) -> Headers {
        self.0.retain(|(name, _)| !name.starts_with(':'));
        Headers::from_fields(self.0)
    }
}

/// Takes a first header section's own fields out of it; nothing comes of an interim one.
type Head<H> = fn(&mut Fields) -> Result<Option<H>, String>;

fn cut<H>(bytes: &[u8], from: usize, head: Head<H>) -> Messages<H> {
    let mut cutter = Cutter {
        head,
        table: Decoder::new(),
        section: None,
        messages: Vec::new(),
        reset: Vec::new(),
    };
    let mut malformed = None;
    for frame in frames(bytes, from) {
        if let Err(why) = cutter.take(&frame) {
            let offset = frame.range.start;
            malformed = Some(Malformed { offset, why });
            break;
        }
    }
    Messages {
        messages: cutter.messages,
        reset: cutter.reset,
        malformed,
    }
}

struct Cutter<H> {
    head: Head<H>,
    /// What earlier header sections have put into the table, in whose terms later ones are written.
    table: Decoder<'static>,
    /// The header section that has begun and goes on.
    section: Option<Section>,
    messages: Vec<(u32, Message<H>)>,
    reset: Vec<u32>,
}

struct Section {
    stream: u32,
    block: Vec<u8>,
    /// Whether it is the end of its message.
    is_last: bool,
}

impl<H> Cutter<H> {
    fn take(&mut self, frame: &Frame<'_>) -> Result<(), String> {
        let goes_on = self.section.as_ref().map(|section| section.stream);
        if goes_on != (frame.kind == Kind::Continuation).then_some(frame.stream) {
            return Err("a header section that is broken off".to_owned());
        }
        match frame.kind {
            Kind::Other => return Ok(()),
            Kind::ResetStream => {
                self.reset.push(frame.stream);
                return Ok(());
            }
            Kind::PushPromise => return Err("an answer to what was not asked".to_owned()),
            Kind::Headers | Kind::Data | Kind::Continuation => {}
        }
        let message = self.message(frame);
        message.range.end = frame.range.end;
        let Some(payload) = frame.payload else {
            return Ok(());
        };
        let content = frame.content(payload)?;
        match (frame.kind, &mut self.section) {
            (Kind::Data, _) => {
                let message = self.message(frame);
                message.body.extend_from_slice(content);
                message.complete = frame.has(END_STREAM);
                return Ok(());
            }
            (_, Some(section)) => section.block.extend_from_slice(content),
            (_, section) => {
                *section = Some(Section {
                    stream: frame.stream,
                    block: content.to_vec(),
                    is_last: frame.has(END_STREAM),
                });
            }
        }
        match frame.has(END_HEADERS) {
            true => self.end_section(),
            false => Ok(()),
        }
    }

    /// The message of a frame's stream, which begins with this frame if there is none.
    fn message(&mut self, frame: &Frame<'_>) -> &mut Message<H> {
        let known = self
            .messages
            .iter()
            .position(|(stream, _)| *stream == frame.stream);
        let at = known.unwrap_or_else(|| {
            let message = Message {
                range: frame.range.clone(),
                complete: false,
                head: None,
                headers: Headers::default(),
                body: Vec::new(),
            };
            self.messages.push((frame.stream, message));
            self.messages.len() - 1
        });
        &mut self.messages[at].1
    }

    fn end_section(&mut self) -> Result<(), String> {
        let Some(Section {
            stream,
            block,
            is_last,
        }) = self.section.take()
        else {
            return Ok(());
        };
        let fields = self.table.decode(&block).map_err(|error| error.to_string())?;
        let fields = fields.into_iter().map(|(name, value)| {
            let name = String::from_utf8(name).map_err(|_| "a field whose name is no text".to_owned())?;
            Ok((name, value))
        });
        let mut fields = Fields(fields.collect::<Result<_, String>>()?);
        let Some(at) = self.messages.iter().position(|(known, _)| *known == stream) else {
            return Ok(());
        };
        let message = &mut self.messages[at].1;
        message.complete = is_last;
        // What comes after a first section are trailers.
        if message.head.is_none() {
            message.head = (self.head)(&mut fields)?;
            message.headers = fields.into_headers();
        }
        if message.head.is_none() {
            self.messages.remove(at);
        }
        Ok(())
    }
}
