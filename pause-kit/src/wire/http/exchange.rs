//! Requests and answers of one connection, with their times.

use std::time::Instant;

use super::http2;
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

/// The exchanges of a connection in order. The last request, and the last answer, may be incomplete; in HTTP/2, where several
/// are under way at a time, any may be.
///
/// # Errors
///
/// [`Malformed`] when either direction holds bytes that are no message of the HTTP that the holder speaks.
pub fn exchanges(connection: &Connection) -> Result<Vec<Exchange>, Malformed> {
    let (asked, answered) = (&connection.to_resource, &connection.to_holder);
    let paired = Paired::of(connection);
    if let Some(malformed) = paired.malformed {
        return Err(malformed);
    }
    let pairs = paired.pairs.into_iter();
    Ok(pairs
        .map(|(request, answer)| Exchange {
            request: Request::from_message(request, asked),
            answer: answer.map(|answer| Answer::from_message(answer, answered)),
        })
        .collect())
}

/// Whether the resource owes no answer on this connection: every complete request that has arrived is answered whole, or, in
/// HTTP/2, given up by either side. An incomplete request is not waited for, since nothing can answer it once its sender has
/// closed.
///
/// For [`CloseRule::Answered`](crate::path::CloseRule::Answered).
#[must_use]
pub fn answered(connection: &Connection) -> bool {
    !Paired::of(connection).is_owed
}

/// Every request of a connection with its answer.
struct Paired {
    pairs: Vec<(Message<RequestHead>, Option<Message<AnswerHead>>)>,
    /// Whether an answer is still owed.
    is_owed: bool,
    malformed: Option<Malformed>,
}

impl Paired {
    fn of(connection: &Connection) -> Paired {
        match http2::is_spoken(connection.to_resource.bytes()) {
            true => Paired::by_stream(connection),
            false => Paired::in_turn(connection),
        }
    }

    /// HTTP/1.1: answers come in the order of the requests.
    fn in_turn(connection: &Connection) -> Paired {
        let answered = &connection.to_holder;
        let requests = requests(connection.to_resource.bytes());
        let methods = methods(&requests.messages);
        let answers = answers(answered.bytes(), &methods, answered.close().is_some());
        let asked = requests.messages.iter().filter(|request| request.complete);
        let given = answers.messages.iter().filter(|answer| answer.complete);
        let is_owed = asked.count() + usize::from(requests.malformed.is_some()) > given.count();
        let mut answers_in_turn = answers.messages.into_iter();
        let pairs = requests.messages.into_iter();
        Paired {
            pairs: pairs.map(|request| (request, answers_in_turn.next())).collect(),
            is_owed,
            malformed: requests.malformed.or(answers.malformed),
        }
    }

    /// HTTP/2: request and answer are of one stream. What is malformed is answered by a close.
    fn by_stream(connection: &Connection) -> Paired {
        let requests = http2::requests(connection.to_resource.bytes());
        let mut answers = http2::answers(connection.to_holder.bytes());
        let mut is_owed = requests.malformed.is_some();
        let pairs = requests.messages.into_iter().map(|(stream, request)| {
            let at = answers.messages.iter().position(|(own, _)| *own == stream);
            let answer = at.map(|at| answers.messages.swap_remove(at).1);
            let is_answered = answer.as_ref().is_some_and(|answer| answer.complete);
            let given_up = requests.reset.contains(&stream) || answers.reset.contains(&stream);
            is_owed |= request.complete && !is_answered && !given_up;
            (request, answer)
        });
        Paired {
            pairs: pairs.collect(),
            is_owed,
            malformed: requests.malformed.or(answers.malformed),
        }
    }
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
