//! What was said of each request, and what ended each grant.

use super::facts::{Facts, Seen};
use super::said::Said;
use crate::history::{At, Cause, Event, Op};

impl<'h> Facts<'h> {
    /// Those of grants that were recorded after their requests.
    pub(super) fn find_rights(&mut self) {
        for place in 0..self.ops.len() {
            if self.ops[place].token.is_none()
                && let Some(right) = self.right_of(self.ops[place].request)
            {
                let op = &mut self.ops[place];
                (op.token, op.on) = (Some(right.token), Some(right.on));
            }
        }
    }

    /// Joins an event to what it speaks of. False where that is not known so far.
    pub(super) fn join(&mut self, line: usize, at: At, event: &'h Event) -> bool {
        if let Event::LeaseEnd(end) = event {
            let mut open = self.grants.iter_mut().filter(|granted| granted.end.is_none());
            let granted = open.find(|granted| granted.record.grant == end.grant);
            let is_known = granted.is_some();
            if let Some(granted) = granted {
                granted.end = Some((line, at));
                granted.cause = Some(end.cause);
                granted.released = end.cause == Cause::Released;
            }
            return is_known;
        }
        let Some(named) = speaks_of(event) else {
            return true;
        };
        let Some(place) = self.index.op(named) else {
            return false;
        };
        let op = &mut self.ops[place];
        match event {
            Event::Answer(answer) if op.answer.is_none() => {
                let body = &answer.reply;
                op.answer = Some(Seen { line, at, body });
                op.body = answer.body.as_deref();
                op.meaning = op.heard();
            }
            Event::Answer(_) => self.strays.push((line, named)),
            Event::Unanswered(_) => op.given_up = Some((line, at)),
            Event::DbAnswer(body) => {
                op.db.push(Seen { line, at, body });
                op.meaning = op.heard();
            }
            _ => {}
        }
        true
    }

    pub(super) fn speaks_of_any(&self, event: &Event) -> bool {
        match event {
            Event::LeaseEnd(end) => self
                .grants
                .iter()
                .any(|granted| granted.record.grant == end.grant),
            _ => speaks_of(event).is_some_and(|op| self.index.op(op).is_some()),
        }
    }

    /// Joins everything anew now that all requests and grants are known: some events stand before what they speak of. Those
    /// that still speak of nothing that is known are returned.
    pub(super) fn join_again(&mut self) -> Vec<(usize, &'h Event)> {
        self.strays.clear();
        for granted in &mut self.grants {
            (granted.end, granted.cause, granted.released) = (None, None, false);
        }
        for op in &mut self.ops {
            (op.answer, op.body, op.given_up, op.meaning) = (None, None, None, Said::Unknown);
            op.db.clear();
        }
        let mut unknown = Vec::new();
        for (line, at, event) in self.history.events() {
            if !self.join(line, at, event) {
                unknown.push((line, event));
            }
        }
        unknown
    }
}

/// The operation that an event speaks of.
pub(super) fn speaks_of(event: &Event) -> Option<&Op> {
    match event {
        Event::Answer(answer) => Some(&answer.op),
        Event::Unanswered(unanswered) => Some(&unanswered.op),
        Event::DbAnswer(answer) => answer.op.as_ref(),
        Event::Hold(hold) => Some(&hold.op),
        Event::Queued(queued) => Some(&queued.op),
        Event::Waiting(waiting) => Some(&waiting.op),
        Event::Relay(relay) => Some(&relay.op),
        Event::Withheld(answer) => Some(&answer.op),
        Event::Uncommitted(commit) => Some(&commit.op),
        _ => None,
    }
}
