//! Attempts that are told together: those that the path made alike, and those of a sweep.

use super::describe::altered;
use super::story::{Teller, Told};
use super::words::{count, length, times};
use crate::history::{Alteration, At, Event, Exercise, Op, Request};
use crate::judge::Said;

impl Teller<'_, '_> {
    /// Whether two attempts are told together: the path made both in the same way, and both were refused.
    pub(super) fn alike(&self, one: &Op, other: &Op) -> bool {
        let how = |op| self.facts.relay(op).map(|(_, relay)| (&relay.of, relay.how));
        let refused = |op| matches!(self.facts.said(op), Some(Said::Fenced(_)));
        how(one).is_some_and(|(_, how)| how != Alteration::Nothing)
            && how(one) == how(other)
            && refused(one)
            && refused(other)
    }

    pub(super) fn together(&self, ops: &[&Op]) -> Option<String> {
        let (_, request) = self.facts.request(ops.first()?)?;
        let (_, relay) = self.facts.relay(ops.first()?)?;
        let how = altered(relay.how)?;
        let mut reasons: Vec<&str> = Vec::new();
        for op in ops {
            if let Some(Said::Fenced(why)) = self.facts.said(op)
                && !reasons.contains(&why.name())
            {
                reasons.push(why.name());
            }
        }
        Some(format!(
            "The path sent {}'s write again {} {how}; {} refused it each time, as {}.",
            request.holder,
            times(ops.len()),
            self.decider(ops.first()?),
            reasons.join(" or ")
        ))
    }

    /// The late writes of a sweep; nothing where there was none.
    pub(super) fn swept(&self) -> Option<Vec<Told>> {
        let Exercise::Swept { bytes } = self.facts.run.exercise else {
            return None;
        };
        let holds = || {
            self.facts.events.iter().filter_map(|(_, at, event)| match event {
                Event::Hold(hold) => Some((*at, hold)),
                _ => None,
            })
        };
        let from = holds().map(|(at, _)| at).max()?;
        let to = holds().filter_map(|(_, hold)| hold.released).min()?;
        let attempts: Vec<&Op> = self.facts.attempts().into_iter().map(|(op, _)| op).collect();
        let (_, request) = self.facts.request(attempts.first()?)?;
        let sent = format!(
            "{} sent {}; of each another number of bytes was let through, from none to {} of {bytes}, and all the rest was held \
             on its way for {}.",
            request.holder,
            count(holds().count(), "write"),
            bytes.saturating_sub(1),
            length(to.since(from))
        );
        Some(vec![
            (from, sent),
            (self.last_answer(&attempts)?, self.came_of_all(&attempts, request)),
        ])
    }

    fn last_answer(&self, attempts: &[&Op]) -> Option<At> {
        let answers = attempts.iter().filter_map(|op| self.facts.answer(op));
        answers.map(|(at, _)| at).max()
    }

    fn came_of_all(&self, attempts: &[&Op], request: &Request) -> String {
        let stale = |op: &&&Op| matches!(self.facts.said(op), Some(Said::Fenced(_)));
        let refused = attempts.iter().filter(stale).count();
        let through = attempts
            .iter()
            .filter(|op| self.facts.said(op) == Some(Said::Accepted))
            .count();
        let seen = attempts.iter().find_map(|op| self.facts.seen(op));
        let because = seen.map_or_else(String::new, |seen| {
            format!(", because it had seen {}", self.tokens.short(seen))
        });
        let judge = attempts.first().map_or("the resource", |op| self.decider(op));
        let token = request.presented.token.as_deref().unwrap_or_default();
        let came = format!(
            "Then the rest of each arrived, with token {}",
            self.tokens.short(token)
        );
        let of = attempts.len();
        match (refused, through) {
            (_, 0) => format!("{came}; {judge} refused {refused} of {of}{because}."),
            (0, _) => format!("{came}; {judge} accepted {through} of {of}."),
            _ => format!("{came}; {judge} refused {refused} of {of}{because}, and accepted {through}."),
        }
    }
}
