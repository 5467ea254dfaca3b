//! What came out of an operation.

use super::describe::reply;
use super::facts::Facts;
use super::step::{Head, Lane, Tone};
use super::words::Tokens;
use crate::history::{Op, Outcome, Reply};
use crate::judge::Said;

/// The outcome of one operation, in words and as it is drawn.
pub(super) struct Answered {
    /// What was answered, in a few words.
    pub(super) words: String,
    /// How it is to be read.
    pub(super) tone: Tone,
    /// Where its arrow ends.
    pub(super) head: Head,
}

impl Answered {
    pub(super) fn of(facts: &Facts<'_>, op: &Op, tokens: &Tokens) -> Answered {
        let expected = facts
            .attempts()
            .into_iter()
            .find(|(late, _)| *late == op)
            .map(|(_, expected)| expected);
        let said = facts.said(op);
        let wire = facts.answer(op).and_then(|(_, answer)| answer).map(short);
        let code = wire.map(|wire| format!(" ({wire})")).unwrap_or_default();
        let words = match said {
            Some(Said::Accepted) => "accepted".to_owned(),
            Some(Said::Deferred) => "accepted for later".to_owned(),
            Some(Said::Stored) => "given its stored answer".to_owned(),
            Some(Said::Fenced(_) | Said::Declined) if facts.is_refused_in_vain(op) => {
                "refused, and yet it took effect".to_owned()
            }
            Some(Said::Fenced(why)) => match facts.seen(op) {
                Some(seen) => format!("refused as {}: the mark is {}", why.name(), tokens.short(seen)),
                None => format!("refused as {}", why.name()),
            },
            Some(Said::Declined) => "declined by the resource".to_owned(),
            Some(Said::Blocked) => "blocked: an older transaction is in the way".to_owned(),
            Some(Said::Failed) => "not done".to_owned(),
            Some(Said::Unknown) | None => "no clear answer".to_owned(),
        };
        let accepted = matches!(said, Some(Said::Accepted));
        let refused = matches!(said, Some(Said::Fenced(_)));
        let (tone, head) = match (expected, accepted, refused) {
            (Some(_), true, _) if facts.is_rightful(op) => (Tone::Right, Head::Arrives),
            (Some(_), true, _) => (Tone::Wrong, Head::Through),
            (Some(Outcome::Legal), ..) if matches!(said, Some(Said::Stored)) => (Tone::Right, Head::Arrives),
            (Some(Outcome::Unknown), ..) if matches!(said, Some(Said::Unknown) | None) => {
                (Tone::Right, Head::Kept)
            }
            (Some(Outcome::NotCommitted), ..) if matches!(said, Some(Said::Unknown | Said::Failed)) => {
                (Tone::Right, Head::Kept)
            }
            (Some(Outcome::Blocked), ..) if matches!(said, Some(Said::Blocked)) => (Tone::Right, Head::Kept),
            _ if facts.is_refused_in_vain(op) => (Tone::Wrong, Head::Through),
            (Some(Outcome::Legal), _, true) => (Tone::Wrong, Head::Wall),
            (Some(_), _, true) => (Tone::Right, Head::Wall),
            (None, _, true) => (Tone::Disturbed, Head::Wall),
            (None, true, _) => (Tone::Plain, Head::Arrives),
            (None, ..) if said == Some(Said::Deferred) => (Tone::Plain, Head::Arrives),
            _ => (Tone::Disturbed, Head::Kept),
        };
        Answered {
            words: format!("{words}{code}"),
            tone,
            head,
        }
    }
}

/// Where a holder's requests go first.
pub(super) fn target(facts: &Facts<'_>) -> Lane {
    match facts.has_front() {
        true => Lane::of("R"),
        false => Lane::Mark,
    }
}

/// `HTTP 412`, or a SQLSTATE or command tag.
fn short(answer: &Reply) -> String {
    match answer {
        Reply::Http { status, .. } => format!("HTTP {status}"),
        Reply::Sql {
            sqlstate: Some(state),
            ..
        } => state.clone(),
        Reply::Sql { tag: Some(tag), .. } => tag.clone(),
        Reply::Sql { .. } => reply(answer),
    }
}
