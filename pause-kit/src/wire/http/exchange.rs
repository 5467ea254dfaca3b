//! Requests and answers of one connection, with their times.

use std::time::Instant;

use super::message::{AnswerHead, Headers, Malformed, Message, RequestHead, answers, requests};
use crate::path::{Connection, Flow};

/// A request and, as far as it has come, its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// What the holder asked.
    pub request: Request,
    /// What the resource answered; absent until the first byte of an answer that is not interim has come.
    pub answer: Option<Answer>,
}

/// A request as the resource gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method; empty until the head is complete.
    pub method: String,
    /// The request target as sent, not decoded; empty until the head is complete.
    pub target: String,
    /// The header fields; empty until the head is complete.
    pub headers: Headers,
    /// The body without its framing, as far as it has come.
    pub body: Vec<u8>,
    /// Whether all of the request has arrived at the path.
    pub complete: bool,
    /// The offset of the request's first byte in its direction of the connection.
    pub offset: usize,
    /// How many bytes of the request have arrived, framing included.
    pub length: usize,
    /// When the request's first byte arrived from the holder.
    pub began: Instant,
    /// When the request's last byte was handed on to the resource; none while the request is incomplete or held.
    pub sent: Option<Instant>,
}

/// An answer as the holder gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status; 0 until the head is complete.
    pub status: u16,
    /// The header fields; empty until the head is complete.
    pub headers: Headers,
    /// The body without its framing, as far as it has come.
    pub body: Vec<u8>,
    /// Whether all of the answer has arrived from the resource.
    pub complete: bool,
    /// When the answer's first byte arrived from the resource.
    pub began: Instant,
    /// When the answer's last byte arrived from the resource; none while it is incomplete.
    pub received: Option<Instant>,
    /// When the answer's last byte was handed on to the holder; none while it is incomplete or held, and when the holder
    /// was gone.
    pub ended: Option<Instant>,
}

impl Answer {
    /// The `type` of an answer that is a problem (RFC 9457), if it is one and complete.
    #[must_use]
    pub fn problem_type(&self) -> Option<String> {
        let media_type = self.headers.only("content-type")?.split(';').next()?.trim();
        if !self.complete || !media_type.eq_ignore_ascii_case("application/problem+json") {
            return None;
        }
        let problem: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        Some(problem.get("type")?.as_str()?.to_owned())
    }
}

/// The exchanges of a connection in order. The last request, and the last answer, may be incomplete.
///
/// # Errors
///
/// [`Malformed`] when either direction holds bytes that are no HTTP/1.1 message.
pub fn exchanges(connection: &Connection) -> Result<Vec<Exchange>, Malformed> {
    let (asked, answered) = (&connection.to_resource, &connection.to_holder);
    let requests = requests(asked.bytes());
    let methods = methods(&requests.messages);
    let answers = answers(answered.bytes(), &methods, answered.close().is_some());
    if let Some(malformed) = requests.malformed.or(answers.malformed) {
        return Err(malformed);
    }
    let mut answers = answers.messages.into_iter();
    Ok(requests
        .messages
        .into_iter()
        .map(|request| Exchange {
            request: Request::from_message(request, asked),
            answer: answers
                .next()
                .map(|answer| Answer::from_message(answer, answered)),
        })
        .collect())
}

/// Whether the resource owes no answer on this connection: every complete request that has arrived is answered whole. An
/// incomplete request is not waited for, since nothing can answer it once its sender has closed.
///
/// For [`CloseRule::Answered`](crate::path::CloseRule::Answered).
#[must_use]
pub fn answered(connection: &Connection) -> bool {
    let requests = requests(connection.to_resource.bytes());
    let methods = methods(&requests.messages);
    let ended = connection.to_holder.close().is_some();
    let answers = answers(connection.to_holder.bytes(), &methods, ended);
    let owed = requests
        .messages
        .iter()
        .filter(|request| request.complete)
        .count();
    let given = answers.messages.iter().filter(|answer| answer.complete).count();
    owed + usize::from(requests.malformed.is_some()) <= given
}

fn methods(requests: &[Message<RequestHead>]) -> Vec<&str> {
    requests
        .iter()
        .filter_map(|request| request.head.as_ref())
        .map(|head| head.method.as_str())
        .collect()
}

impl Request {
    fn from_message(message: Message<RequestHead>, flow: &Flow) -> Self {
        let (method, target) = message
            .head
            .map_or_else(Default::default, |head| (head.method, head.target));
        Self {
            method,
            target,
            headers: message.headers,
            body: message.body,
            complete: message.complete,
            offset: message.range.start,
            length: message.range.len(),
            began: first_arrival(flow, message.range.start),
            sent: message
                .complete
                .then(|| flow.forwarded_at(message.range.end - 1))
                .flatten(),
        }
    }
}

impl Answer {
    fn from_message(message: Message<AnswerHead>, flow: &Flow) -> Self {
        let last = message.complete.then(|| message.range.end - 1);
        Self {
            status: message.head.map_or(0, |head| head.status),
            headers: message.headers,
            body: message.body,
            complete: message.complete,
            began: first_arrival(flow, message.range.start),
            received: last.and_then(|last| flow.received_at(last)),
            ended: last.and_then(|last| flow.forwarded_at(last)),
        }
    }
}

fn first_arrival(flow: &Flow, offset: usize) -> Instant {
    flow.received_at(offset)
        .expect("a message holds bytes that have arrived")
}
