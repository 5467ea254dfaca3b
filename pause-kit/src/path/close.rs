//! When a holder's close reaches the resource.

use super::log::Connection;

/// When the end or reset of the connecting side is passed on to the upstream. Bytes that came before it always go first,
/// and a close of the upstream is always passed on at once.
///
/// A server may drop the work of a client that is gone: a late write would then be missing not because it was refused
/// but because nobody waited for it, and the run would prove nothing. So the path keeps the close back.
#[derive(Debug, Clone, Copy)]
pub enum CloseRule {
    /// As soon as the bytes before it have been handed on.
    AtOnce,
    /// Once the function says that the upstream owes no answer any more, or once the upstream has closed its side. The
    /// function sees the connection at every change and is asked only while a close is kept back;
    /// [`wire::http::answered`](crate::wire::http::answered) and [`wire::postgres::answered`](crate::wire::postgres::answered)
    /// are such functions.
    Answered(fn(&Connection) -> bool),
    /// Not before [`Path::let_close`](super::Path::let_close).
    WhenLet,
}

impl CloseRule {
    /// Whether the close of this connection, which has one to pass on, may go.
    pub(crate) fn lets(self, connection: &Connection) -> bool {
        match self {
            Self::AtOnce => true,
            Self::Answered(answered) => connection.to_holder.close.is_some() || answered(connection),
            Self::WhenLet => false,
        }
    }
}
