//! Statements with their parameters, answers and times.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use super::client::{ClientMessage, Parameter, client_messages};
use super::frame::{Framed, MalformedPostgres};
use super::server::{Notice, ServerMessage, TransactionStatus, server_messages};
use crate::path::Connection;

/// A statement that a client asked to run: a simple query, which may hold several, or the execution of a portal. A statement
/// that failed when it was prepared or bound is listed too, since its execution was then skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Its text; empty when it was prepared before the record began.
    pub text: String,
    /// Its parameters; none for a simple query.
    pub parameters: Vec<Parameter>,
    /// When the first byte of the message that runs it arrived from the client.
    pub began: Instant,
    /// When the last byte of that message was handed on to the server; none while it is held.
    pub sent: Option<Instant>,
    /// The first column of each row that has come, as [`ServerMessage::Row`] has it.
    pub rows: Vec<Option<String>>,
    /// How the server completed it, one for each statement of a simple query; an error is the last one. Empty while
    /// the server has not answered, or when it skipped the statement after an earlier error.
    pub completions: Vec<Completion>,
    /// When the last byte of the last completion arrived from the server.
    pub completed: Option<Instant>,
    /// The transaction's state in the first readiness that followed, and when its last byte arrived from the server.
    pub ready: Option<(TransactionStatus, Instant)>,
}

/// How the server completed a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    /// It ran; the command tag. COMMIT of a failed transaction is completed as `ROLLBACK`.
    Done(String),
    /// It was empty.
    Empty,
    /// It has more rows than were asked for.
    Suspended,
    /// It failed.
    Failed(Notice),
}

impl Statement {
    /// The error that it ended in, if it did.
    #[must_use]
    pub fn error(&self) -> Option<&Notice> {
        match self.completions.last() {
            Some(Completion::Failed(notice)) => Some(notice),
            _ => None,
        }
    }

    /// The tag of its last completion, if that was a success.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        match self.completions.last() {
            Some(Completion::Done(tag)) => Some(tag),
            _ => None,
        }
    }
}

/// The statements of a connection in the order in which they were sent.
///
/// An error that answers no statement, such as the end of a session that idled too long in its transaction, is not here;
/// [`server_messages`] has it.
///
/// # Errors
///
/// [`MalformedPostgres`] when either direction holds bytes that are no message of the protocol.
pub fn statements(connection: &Connection) -> Result<Vec<Statement>, MalformedPostgres> {
    pair(connection).map(|pairing| pairing.statements)
}

/// Whether the server owes nothing on this connection: it has reported readiness after every query and every Sync that has
/// arrived, or it waits for copy data, which its client can no longer send once it has closed. What cannot be read is
/// not waited for.
///
/// For [`CloseRule::Answered`](crate::path::CloseRule::Answered).
#[must_use]
pub fn answered(connection: &Connection) -> bool {
    pair(connection).map_or(true, |pairing| {
        pairing.copying_in || !pairing.owed.iter().any(Owed::ends_in_readiness)
    })
}

fn pair(connection: &Connection) -> Result<Pairing, MalformedPostgres> {
    let (asked, answered) = (&connection.to_resource, &connection.to_holder);
    let server = server_messages(answered.bytes(), asked.bytes())?;
    let client = client_messages(asked.bytes(), server.encrypted)?;
    let mut pairing = Pairing::default();
    let mut asking = client.messages.into_iter().map(|Framed { range, message }| {
        let began = asked
            .received_at(range.start)
            .expect("a message holds bytes that have arrived");
        (message, began, asked.forwarded_at(range.end - 1))
    });
    let mut next = asking.next();
    for Framed { range, message } in server.messages {
        let at = answered
            .received_at(range.end - 1)
            .expect("a message holds bytes that have arrived");
        // What had not been handed on yet cannot have been answered.
        while let Some((message, began, sent)) =
            next.take_if(|(_, _, sent)| sent.is_some_and(|sent| sent <= at))
        {
            pairing.client(message, began, sent);
            next = asking.next();
        }
        pairing.server(message, at);
    }
    for (message, began, sent) in next.into_iter().chain(asking) {
        pairing.client(message, began, sent);
    }
    Ok(pairing)
}

/// Pairs what the client asked with what the server answered, in order.
#[derive(Default)]
struct Pairing {
    statements: Vec<Statement>,
    prepared: HashMap<String, String>,
    portals: HashMap<String, (String, Vec<Parameter>)>,
    owed: VecDeque<Owed>,
    /// Statements that wait for the next readiness.
    unready: Vec<usize>,
    /// Whether the server has asked for copy data and not said that the copy is over.
    copying_in: bool,
}

/// An answer that the server owes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owed {
    /// Any number of completions, then readiness.
    Query(usize),
    /// Parse, Bind or Close: its own completion.
    Step,
    /// A completion.
    Execute(usize),
    /// Readiness.
    Sync,
}

impl Owed {
    fn ends_in_readiness(&self) -> bool {
        matches!(self, Self::Query(_) | Self::Sync)
    }
}

impl Pairing {
    fn client(&mut self, message: ClientMessage, began: Instant, sent: Option<Instant>) {
        match message {
            ClientMessage::Query(text) => {
                let at = self.ask(text, Vec::new(), began, sent);
                self.owed.push_back(Owed::Query(at));
            }
            ClientMessage::Parse { statement, text } => {
                self.prepared.insert(statement, text);
                self.owed.push_back(Owed::Step);
            }
            ClientMessage::Bind {
                portal,
                statement,
                parameters,
            } => {
                let text = self.prepared.get(&statement).cloned().unwrap_or_default();
                self.portals.insert(portal, (text, parameters));
                self.owed.push_back(Owed::Step);
            }
            ClientMessage::Execute { portal } => {
                let (text, parameters) = self.portals.get(&portal).cloned().unwrap_or_default();
                let at = self.ask(text, parameters, began, sent);
                self.owed.push_back(Owed::Execute(at));
            }
            ClientMessage::Close => self.owed.push_back(Owed::Step),
            ClientMessage::Sync | ClientMessage::FunctionCall => self.owed.push_back(Owed::Sync),
            _ => {}
        }
    }

    fn ask(
        &mut self,
        text: String,
        parameters: Vec<Parameter>,
        began: Instant,
        sent: Option<Instant>,
    ) -> usize {
        self.statements.push(Statement {
            text,
            parameters,
            began,
            sent,
            rows: Vec::new(),
            completions: Vec::new(),
            completed: None,
            ready: None,
        });
        self.statements.len() - 1
    }

    fn server(&mut self, message: ServerMessage, at: Instant) {
        // G asks for copy data; whatever the server says next ends that.
        self.copying_in = message == ServerMessage::Other(b'G');
        match message {
            ServerMessage::ParseComplete | ServerMessage::BindComplete | ServerMessage::CloseComplete => {
                self.owed.pop_front_if(|owed| *owed == Owed::Step);
            }
            ServerMessage::CommandComplete(tag) => self.complete(Completion::Done(tag), at),
            ServerMessage::Row(first) => {
                if let Some(&(Owed::Query(statement) | Owed::Execute(statement))) = self.owed.front() {
                    self.statements[statement].rows.push(first);
                }
            }
            ServerMessage::EmptyQuery => self.complete(Completion::Empty, at),
            ServerMessage::PortalSuspended => self.complete(Completion::Suspended, at),
            ServerMessage::Error(notice) => self.fail(notice, at),
            ServerMessage::Ready(status) => self.ready(status, at),
            _ => {}
        }
    }

    fn complete(&mut self, completion: Completion, at: Instant) {
        let statement = match self.owed.front() {
            Some(&Owed::Query(statement)) => statement,
            Some(&Owed::Execute(statement)) => {
                self.owed.pop_front();
                self.unready.push(statement);
                statement
            }
            _ => return,
        };
        self.statements[statement].completions.push(completion);
        self.statements[statement].completed = Some(at);
    }

    /// An error ends a simple query, or skips everything up to the next Sync.
    fn fail(&mut self, notice: Notice, at: Instant) {
        // A step that failed is charged to the statement that it was preparing.
        let failed = self.owed.iter().find_map(|owed| match owed {
            Owed::Query(statement) | Owed::Execute(statement) => Some(Some(*statement)),
            Owed::Sync => Some(None),
            Owed::Step => None,
        });
        if let Some(Some(statement)) = failed {
            self.statements[statement]
                .completions
                .push(Completion::Failed(notice));
            self.statements[statement].completed = Some(at);
        }
        while let Some(owed @ (Owed::Step | Owed::Execute(_))) = self.owed.front().copied() {
            if let Owed::Execute(statement) = owed {
                self.unready.push(statement);
            }
            self.owed.pop_front();
        }
    }

    fn ready(&mut self, status: TransactionStatus, at: Instant) {
        match self.owed.front() {
            Some(&Owed::Query(statement)) => self.unready.push(statement),
            Some(Owed::Sync) => {}
            // The readiness that ends the session's opening is owed to nobody.
            _ => return,
        }
        self.owed.pop_front();
        for statement in self.unready.drain(..) {
            self.statements[statement].ready = Some((status, at));
        }
    }
}
