//! What clients say.

use super::frame::{Fields, Framed, MalformedPostgres, tagged, untagged};

/// What a client has sent, as far as it has come whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientStream {
    /// The messages in order.
    pub messages: Vec<Framed<ClientMessage>>,
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

/// Cuts what a client has sent. `encrypted` is the server's word from [`ServerStream::encrypted`](super::ServerStream::encrypted): what follows an accepted
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

/// How many requests for encryption a client has sent before anything else.
pub(super) fn encryption_requests(client_bytes: &[u8]) -> usize {
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
