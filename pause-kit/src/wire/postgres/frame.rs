//! Cutting the two streams of a connection into messages.

use std::ops::Range;

/// Bytes that are no message of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no PostgreSQL message at byte {offset}: {why}")]
pub struct MalformedPostgres {
    /// The offset at which the message begins.
    pub offset: usize,
    /// What is wrong with it.
    pub why: &'static str,
}

/// A message and where it stands in its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framed<M> {
    /// The message's bytes, tag and length included.
    pub range: Range<usize>,
    /// What it says.
    pub message: M,
}

/// What a client has sent, as far as it has come whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientStream {
    /// The messages in order.
    pub messages: Vec<Framed<ClientMessage>>,
    /// How many bytes at the end are the beginning of a message.
    pub incomplete_bytes: usize,
}

/// What a server has sent, as far as it has come whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerStream {
    /// The messages in order.
    pub messages: Vec<Framed<ServerMessage>>,
    /// Whether the server agreed to encryption, after which nothing can be read.
    pub encrypted: bool,
    /// How many bytes at the end are the beginning of a message.
    pub incomplete_bytes: usize,
}

/// A message from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientMessage {
    /// It asks for encryption by TLS or GSSAPI; the server answers with one byte.
    EncryptionRequest,
    /// It asks to cancel a statement of another connection.
    CancelRequest,
    /// It opens the session.
    Startup {
        /// The protocol's minor version.
        minor: u16,
        /// `user`, `database` and whatever else it asks for, in order.
        parameters: Vec<(String, String)>,
    },
    /// A simple query: one or more statements as text.
    Query(String),
    /// A statement to prepare.
    Parse {
        /// Its name; empty for the unnamed one.
        statement: String,
        /// Its text.
        text: String,
    },
    /// Parameters for a prepared statement.
    Bind {
        /// The portal that this makes; empty for the unnamed one.
        portal: String,
        /// The prepared statement.
        statement: String,
        /// The values.
        parameters: Vec<Parameter>,
    },
    /// Runs a portal.
    Execute {
        /// The portal.
        portal: String,
    },
    /// Asks for a description of a statement or portal.
    Describe,
    /// Closes a statement or portal.
    Close,
    /// Ends a series of extended-protocol messages.
    Sync,
    /// Asks for the answers so far.
    Flush,
    /// Calls a function by number, in the old way.
    FunctionCall,
    /// The end of the session.
    Terminate,
    /// Data, end or failure of a copy.
    Copy,
    /// A password or another answer to an authentication request. Its content is not kept.
    Authentication,
}

/// A parameter's value as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameter {
    /// NULL.
    Null,
    /// In text form.
    Text(String),
    /// In the type's binary form, or bytes that claim to be text and are none.
    Binary(Vec<u8>),
}

impl Parameter {
    /// The value as an integer: decimal text, or the binary form of `smallint`, `integer` or `bigint`.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Null => None,
            Self::Text(text) => text.parse().ok(),
            Self::Binary(bytes) => match bytes.len() {
                2 => Some(i16::from_be_bytes(bytes.as_slice().try_into().ok()?).into()),
                4 => Some(i32::from_be_bytes(bytes.as_slice().try_into().ok()?).into()),
                8 => Some(i64::from_be_bytes(bytes.as_slice().try_into().ok()?)),
                _ => None,
            },
        }
    }

    /// The value as text: the text form, or the binary form of a text type, which is the text itself.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Null => None,
            Self::Text(text) => Some(text),
            Self::Binary(bytes) => std::str::from_utf8(bytes).ok(),
        }
    }
}

/// A message from a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerMessage {
    /// It refuses encryption (`N`); the session goes on in the clear.
    EncryptionRefused,
    /// A request, or the end, of authentication.
    Authentication,
    /// The process number that runs the session, and a secret that is not kept.
    BackendKey {
        /// The backend's process id.
        process: u32,
    },
    /// A statement has been prepared.
    ParseComplete,
    /// Parameters have been bound.
    BindComplete,
    /// A statement or portal has been closed.
    CloseComplete,
    /// A statement is done: its tag, such as `UPDATE 1`.
    CommandComplete(String),
    /// The query text was empty.
    EmptyQuery,
    /// The portal has more rows.
    PortalSuspended,
    /// The statement or the session failed.
    Error(Notice),
    /// A warning or a remark.
    Notice(Notice),
    /// The server awaits the next query.
    Ready(TransactionStatus),
    /// Anything else: rows, descriptions, parameters, notifications, copy data. The message's tag.
    Other(u8),
}

/// The fields of an error or a notice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notice {
    /// `ERROR`, `FATAL` and so on, not translated.
    pub severity: String,
    /// The SQLSTATE.
    pub sqlstate: String,
    /// The primary message.
    pub message: String,
    /// DETAIL, if there is one.
    pub detail: Option<String>,
    /// HINT, if there is one.
    pub hint: Option<String>,
}

/// The state of the session's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// None is open.
    Idle,
    /// One is open.
    Open,
    /// One is open and has failed.
    Failed,
}

/// Cuts what a client has sent. `encrypted` is the server's word from [`ServerStream::encrypted`]: what follows an accepted
/// request for encryption is not read.
///
/// # Errors
///
/// [`MalformedPostgres`] at the first bytes that are no message.
pub fn client_messages(bytes: &[u8], encrypted: bool) -> Result<ClientStream, MalformedPostgres> {
    let mut stream = ClientStream::default();
    let mut started = false;
    let mut offset = 0;
    while offset < bytes.len() {
        let rest = &bytes[offset..];
        let found = if started {
            tagged(rest, offset)?
        } else {
            untagged(rest, offset)?
        };
        let Some((tag, body, length)) = found else {
            stream.incomplete_bytes = rest.len();
            break;
        };
        let malformed = |why| MalformedPostgres { offset, why };
        let message = match tag {
            Some(tag) => client_message(tag, body).map_err(malformed)?,
            None => opening(body).map_err(malformed)?,
        };
        started |= matches!(message, ClientMessage::Startup { .. });
        let turns_unreadable = encrypted && message == ClientMessage::EncryptionRequest;
        stream.messages.push(Framed {
            range: offset..offset + length,
            message,
        });
        offset += length;
        if turns_unreadable {
            break;
        }
    }
    Ok(stream)
}

/// Cuts what a server has sent on a connection whose client has sent `client_bytes`, which tell where the server answers a
/// request for encryption by a bare byte.
///
/// # Errors
///
/// [`MalformedPostgres`] at the first bytes that are no message.
pub fn server_messages(bytes: &[u8], client_bytes: &[u8]) -> Result<ServerStream, MalformedPostgres> {
    let mut stream = ServerStream::default();
    let mut offset = 0;
    let mut asked = encryption_requests(client_bytes);
    while offset < bytes.len() {
        let rest = &bytes[offset..];
        match (asked, rest[0]) {
            (1.., b'N') => {
                stream.messages.push(Framed {
                    range: offset..offset + 1,
                    message: ServerMessage::EncryptionRefused,
                });
                asked -= 1;
                offset += 1;
                continue;
            }
            (1.., b'S' | b'G') => {
                stream.encrypted = true;
                break;
            }
            _ => {}
        }
        let Some((tag, body, length)) = tagged(rest, offset)? else {
            stream.incomplete_bytes = rest.len();
            break;
        };
        let message =
            server_message(tag.unwrap_or_default(), body).map_err(|why| MalformedPostgres { offset, why })?;
        stream.messages.push(Framed {
            range: offset..offset + length,
            message,
        });
        offset += length;
    }
    Ok(stream)
}

type Cut<'a> = Option<(Option<u8>, &'a [u8], usize)>;

/// The largest message that is believed; PostgreSQL's own limit is below it.
const MAX_LENGTH: usize = 1 << 30;

fn tagged(rest: &[u8], offset: usize) -> Result<Cut<'_>, MalformedPostgres> {
    let Some(length) = length_at(rest, 1) else {
        return Ok(None);
    };
    if !(4..=MAX_LENGTH).contains(&length) {
        return Err(MalformedPostgres {
            offset,
            why: "a length out of range",
        });
    }
    Ok(rest
        .get(5..length + 1)
        .map(|body| (Some(rest[0]), body, length + 1)))
}

fn untagged(rest: &[u8], offset: usize) -> Result<Cut<'_>, MalformedPostgres> {
    let Some(length) = length_at(rest, 0) else {
        return Ok(None);
    };
    if !(8..=10_000).contains(&length) {
        return Err(MalformedPostgres {
            offset,
            why: "a startup packet's length out of range",
        });
    }
    Ok(rest.get(4..length).map(|body| (None, body, length)))
}

fn length_at(rest: &[u8], at: usize) -> Option<usize> {
    let bytes = rest.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize)
}

fn encryption_requests(client_bytes: &[u8]) -> usize {
    let mut count = 0;
    let mut rest = client_bytes;
    while let Ok(Some((_, body, length))) = untagged(rest, 0) {
        if opening(body) != Ok(ClientMessage::EncryptionRequest) {
            break;
        }
        count += 1;
        rest = &rest[length..];
    }
    count
}

fn opening(body: &[u8]) -> Result<ClientMessage, &'static str> {
    let mut fields = Fields(body);
    match fields.u32()? {
        80_877_103 | 80_877_104 => Ok(ClientMessage::EncryptionRequest),
        80_877_102 => Ok(ClientMessage::CancelRequest),
        version if version >> 16 == 3 => {
            let minor = (version & 0xffff) as u16;
            let mut parameters = Vec::new();
            loop {
                let name = fields.text()?;
                if name.is_empty() {
                    return Ok(ClientMessage::Startup { minor, parameters });
                }
                parameters.push((name, fields.text()?));
            }
        }
        _ => Err("a startup packet of an unknown version"),
    }
}

fn client_message(tag: u8, body: &[u8]) -> Result<ClientMessage, &'static str> {
    let mut fields = Fields(body);
    Ok(match tag {
        b'Q' => ClientMessage::Query(fields.text()?),
        b'P' => ClientMessage::Parse {
            statement: fields.text()?,
            text: fields.text()?,
        },
        b'B' => bind(&mut fields)?,
        b'E' => ClientMessage::Execute {
            portal: fields.text()?,
        },
        b'D' => ClientMessage::Describe,
        b'C' => ClientMessage::Close,
        b'S' => ClientMessage::Sync,
        b'H' => ClientMessage::Flush,
        b'F' => ClientMessage::FunctionCall,
        b'X' => ClientMessage::Terminate,
        b'd' | b'c' | b'f' => ClientMessage::Copy,
        b'p' => ClientMessage::Authentication,
        _ => return Err("a client message of an unknown kind"),
    })
}

fn bind(fields: &mut Fields<'_>) -> Result<ClientMessage, &'static str> {
    let portal = fields.text()?;
    let statement = fields.text()?;
    let formats = (0..fields.u16()?)
        .map(|_| fields.u16())
        .collect::<Result<Vec<_>, _>>()?;
    let mut parameters = Vec::new();
    for at in 0..usize::from(fields.u16()?) {
        let length = fields.u32()?;
        if length == u32::MAX {
            parameters.push(Parameter::Null);
            continue;
        }
        let value = fields.take(length as usize)?;
        // No format code at all means text, one stands for every parameter.
        let format = if formats.len() == 1 {
            formats.first()
        } else {
            formats.get(at)
        };
        parameters.push(match (format, std::str::from_utf8(value)) {
            (None | Some(0), Ok(text)) => Parameter::Text(text.to_owned()),
            _ => Parameter::Binary(value.to_vec()),
        });
    }
    Ok(ClientMessage::Bind {
        portal,
        statement,
        parameters,
    })
}

fn server_message(tag: u8, body: &[u8]) -> Result<ServerMessage, &'static str> {
    let mut fields = Fields(body);
    Ok(match tag {
        b'R' => ServerMessage::Authentication,
        b'K' => ServerMessage::BackendKey {
            process: fields.u32()?,
        },
        b'1' => ServerMessage::ParseComplete,
        b'2' => ServerMessage::BindComplete,
        b'3' => ServerMessage::CloseComplete,
        b'C' => ServerMessage::CommandComplete(fields.text()?),
        b'I' => ServerMessage::EmptyQuery,
        b's' => ServerMessage::PortalSuspended,
        b'E' => ServerMessage::Error(notice(&mut fields)?),
        b'N' => ServerMessage::Notice(notice(&mut fields)?),
        b'Z' => ServerMessage::Ready(match fields.take(1)? {
            b"I" => TransactionStatus::Idle,
            b"T" => TransactionStatus::Open,
            b"E" => TransactionStatus::Failed,
            _ => return Err("an unknown transaction status"),
        }),
        tag if tag.is_ascii_alphanumeric() => ServerMessage::Other(tag),
        _ => return Err("a server message of an unknown kind"),
    })
}

fn notice(fields: &mut Fields<'_>) -> Result<Notice, &'static str> {
    let mut notice = Notice::default();
    loop {
        let kind = fields.take(1)?[0];
        if kind == 0 {
            return Ok(notice);
        }
        let value = fields.text()?;
        match kind {
            // V is the severity that is never translated; it follows S.
            b'S' | b'V' => notice.severity = value,
            b'C' => notice.sqlstate = value,
            b'M' => notice.message = value,
            b'D' => notice.detail = Some(value),
            b'H' => notice.hint = Some(value),
            _ => {}
        }
    }
}

/// The rest of a message's body.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or("a field that is longer than its message")?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, &'static str> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        self.take(4)
            .map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A string that ends in a zero byte. The kit's servers and clients speak UTF-8; what is none is shown as far as it goes.
    fn text(&mut self) -> Result<String, &'static str> {
        let end = self
            .0
            .iter()
            .position(|&byte| byte == 0)
            .ok_or("a string without an end")?;
        let text = String::from_utf8_lossy(&self.0[..end]).into_owned();
        self.0 = &self.0[end + 1..];
        Ok(text)
    }
}
