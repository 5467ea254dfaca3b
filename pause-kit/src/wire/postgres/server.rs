//! What servers say.

use super::client::encryption_requests;
use super::frame::{Fields, Framed, MalformedPostgres, tagged};

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
    /// A row: its first column, where that is there, not NULL, and UTF-8.
    Row(Option<String>),
    /// Anything else: descriptions, parameters, notifications, copy data. The message's tag.
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
        b'D' => ServerMessage::Row(first_column(&mut fields)?),
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

fn first_column(fields: &mut Fields<'_>) -> Result<Option<String>, &'static str> {
    if fields.u16()? == 0 {
        return Ok(None);
    }
    // A length of -1 is NULL.
    let Ok(length) = usize::try_from(fields.u32()?.cast_signed()) else {
        return Ok(None);
    };
    Ok(String::from_utf8(fields.take(length)?.to_vec()).ok())
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
