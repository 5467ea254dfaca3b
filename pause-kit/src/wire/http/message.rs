//! Cutting a stream of bytes into HTTP/1.1 messages.

use std::ops::Range;

/// The header fields of a message, in the order in which they came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, Vec<u8>)>);

impl Headers {
    /// The raw values of all fields of that name, which is compared without regard to case.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.0
            .iter()
            .filter(move |(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }

    /// The value of the only field of that name, if it is text. None when the field is absent or comes more than once.
    #[must_use]
    pub fn only(&self, name: &str) -> Option<&str> {
        let mut values = self.all(name);
        let value = values.next()?;
        values.next().is_none().then(|| std::str::from_utf8(value).ok())?
    }

    /// All fields: name and raw value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    pub(crate) fn from_fields(fields: Vec<(String, Vec<u8>)>) -> Self {
        Self(fields)
    }

    fn from_parsed(parsed: &[httparse::Header<'_>]) -> Self {
        Self(
            parsed
                .iter()
                .map(|field| (field.name.to_owned(), field.value.to_vec()))
                .collect(),
        )
    }

    fn lists(&self, name: &str, token: &str) -> bool {
        self.all(name).any(|value| {
            value
                .split(|&byte| byte == b',')
                .any(|item| item.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
        })
    }
}

/// Bytes that are no HTTP/1.1 message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no HTTP message at byte {offset}: {why}")]
pub struct Malformed {
    /// The offset at which the message begins.
    pub offset: usize,
    /// What is wrong with it.
    pub why: String,
}

/// One message of a stream, whole or the beginning of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message<H> {
    /// Where it stands in the stream, as far as it has come.
    pub(crate) range: Range<usize>,
    pub(crate) complete: bool,
    /// Absent until all of the head has come.
    pub(crate) head: Option<H>,
    pub(crate) headers: Headers,
    /// The body without its framing, as far as it has come.
    pub(crate) body: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    pub(crate) target: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerHead {
    pub(crate) status: u16,
}

/// What a stream holds: its messages, of which only the last may be incomplete, and what followed that is no message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stream<H> {
    pub(crate) messages: Vec<Message<H>>,
    pub(crate) malformed: Option<Malformed>,
}

/// Cuts what a client sent.
pub(crate) fn requests(bytes: &[u8]) -> Stream<RequestHead> {
    cut(bytes, |bytes| {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let status = request.parse(bytes).map_err(|error| error.to_string())?;
        let httparse::Status::Complete(length) = status else {
            return Ok(None);
        };
        let headers = Headers::from_parsed(request.headers);
        let head = RequestHead {
            method: request.method.unwrap_or_default().to_owned(),
            target: request.path.unwrap_or_default().to_owned(),
        };
        let body = Framing::of(&headers)?.unwrap_or(Framing::Length(0));
        Ok(Some(Head {
            length,
            head,
            headers,
            body,
        }))
    })
}

/// Cuts what a server sent in answer to requests of these methods. `ended` says that nothing more will come, which is what
/// ends a body without a length. Interim answers (1xx) are left out.
pub(crate) fn answers(bytes: &[u8], methods: &[&str], ended: bool) -> Stream<AnswerHead> {
    let mut answered = 0;
    let mut stream = cut(bytes, |bytes| {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut answer = httparse::Response::new(&mut fields);
        let status = answer.parse(bytes).map_err(|error| error.to_string())?;
        let httparse::Status::Complete(length) = status else {
            return Ok(None);
        };
        let status = answer.code.unwrap_or_default();
        let headers = Headers::from_parsed(answer.headers);
        let bodiless =
            status < 200 || status == 204 || status == 304 || methods.get(answered) == Some(&"HEAD");
        let body = if bodiless {
            Framing::Length(0)
        } else {
            Framing::of(&headers)?.unwrap_or(Framing::UntilClose { ended })
        };
        answered += usize::from(status >= 200);
        Ok(Some(Head {
            length,
            head: AnswerHead { status },
            headers,
            body,
        }))
    });
    stream
        .messages
        .retain(|message| message.head.is_none_or(|head| head.status >= 200));
    stream
}

const MAX_FIELDS: usize = 128;

struct Head<H> {
    length: usize,
    head: H,
    headers: Headers,
    body: Framing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    UntilClose { ended: bool },
}

impl Framing {
    fn of(headers: &Headers) -> Result<Option<Self>, String> {
        if headers.lists("transfer-encoding", "chunked") {
            return Ok(Some(Self::Chunked));
        }
        let mut lengths = headers.all("content-length");
        let Some(first) = lengths.next() else {
            return Ok(None);
        };
        if lengths.any(|other| other != first) {
            return Err("several content-length fields".to_owned());
        }
        let text = std::str::from_utf8(first).unwrap_or_default();
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(length) if digits => Ok(Some(Self::Length(length))),
            _ => Err(format!("content-length {text:?}")),
        }
    }
}

fn cut<H>(bytes: &[u8], mut head: impl FnMut(&[u8]) -> Result<Option<Head<H>>, String>) -> Stream<H> {
    let mut messages = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let rest = &bytes[start..];
        let found = head(rest).and_then(|found| match found {
            None => Ok((
                None,
                Headers::default(),
                Body {
                    taken: rest.len(),
                    complete: false,
                    bytes: Vec::new(),
                },
            )),
            Some(Head {
                length,
                head,
                headers,
                body,
            }) => {
                let mut body = body.take(&rest[length..])?;
                body.taken += length;
                Ok((Some(head), headers, body))
            }
        });
        match found {
            Ok((head, headers, body)) => {
                let range = start..start + body.taken;
                start = range.end;
                messages.push(Message {
                    range,
                    complete: body.complete,
                    head,
                    headers,
                    body: body.bytes,
                });
            }
            Err(why) => {
                return Stream {
                    messages,
                    malformed: Some(Malformed { offset: start, why }),
                };
            }
        }
    }
    Stream {
        messages,
        malformed: None,
    }
}

struct Body {
    /// How many bytes of the stream belong to it so far.
    taken: usize,
    complete: bool,
    bytes: Vec<u8>,
}

impl Framing {
    fn take(self, rest: &[u8]) -> Result<Body, String> {
        match self {
            Self::Length(length) => {
                let taken = length.min(rest.len());
                Ok(Body {
                    taken,
                    complete: taken == length,
                    bytes: rest[..taken].to_vec(),
                })
            }
            Self::UntilClose { ended } => Ok(Body {
                taken: rest.len(),
                complete: ended,
                bytes: rest.to_vec(),
            }),
            Self::Chunked => take_chunks(rest),
        }
    }
}

fn take_chunks(rest: &[u8]) -> Result<Body, String> {
    let mut bytes = Vec::new();
    let mut at = 0;
    loop {
        let incomplete = |bytes| {
            Ok(Body {
                taken: rest.len(),
                complete: false,
                bytes,
            })
        };
        let size = match httparse::parse_chunk_size(&rest[at..]) {
            Ok(httparse::Status::Complete((length, size))) => {
                at += length;
                usize::try_from(size).map_err(|_| format!("a chunk of {size} bytes"))?
            }
            Ok(httparse::Status::Partial) => return incomplete(bytes),
            Err(_) => return Err("a chunk without a size".to_owned()),
        };
        if size == 0 {
            return Ok(match end_of_trailers(&rest[at..]) {
                Some(length) => Body {
                    taken: at + length,
                    complete: true,
                    bytes,
                },
                None => Body {
                    taken: rest.len(),
                    complete: false,
                    bytes,
                },
            });
        }
        bytes.extend_from_slice(&rest[at..at.saturating_add(size).min(rest.len())]);
        let Some(end) = rest[at..].get(size..).and_then(|after| after.get(..2)) else {
            return incomplete(bytes);
        };
        if end != b"\r\n" {
            return Err("a chunk that is longer than its size".to_owned());
        }
        at += size + 2;
    }
}

/// The length of the trailer section with the empty line that ends it, if that has come.
fn end_of_trailers(rest: &[u8]) -> Option<usize> {
    if rest.starts_with(b"\r\n") {
        return Some(2);
    }
    rest.windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map(|at| at + 4)
}
