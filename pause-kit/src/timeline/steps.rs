//! From the lines of a history to steps that can be drawn.

use std::collections::BTreeSet;

use super::around::{asked, with_waits};
use super::attempt::{Answered, target};
use super::facts::Facts;
use super::kept::{sent_again, uncommitted, unheard, unstopped, withheld};
use super::moments::{Moment, merged, moments};
use super::step::{Head, Lane, State, Step, Tone};
use super::words::{Tokens, actor, capital, count, length, times};
use crate::history::{At, Event, Op, Read, Request, Work};

/// The steps of one half.
pub(super) fn steps(facts: &Facts<'_>, tokens: &Tokens) -> Vec<Step> {
    let moments = moments(facts);
    let drawing = Drawing {
        facts,
        tokens,
        merged: merged(&moments),
    };
    let mut steps: Vec<Step> = Vec::new();
    for moment in &moments {
        steps.extend(drawing.step(moment));
    }
    if let Some(asked) = asked(facts) {
        let place = steps
            .iter()
            .position(|step| step.at > asked.at)
            .unwrap_or(steps.len());
        steps.insert(place, asked);
    }
    drawing.raise_marks(&mut steps);
    with_waits(steps)
}

struct Drawing<'a, 'h> {
    facts: &'a Facts<'h>,
    tokens: &'a Tokens,
    merged: BTreeSet<&'h Op>,
}

impl<'h> Drawing<'_, 'h> {
    fn step(&self, moment: &Moment<'h>) -> Option<Step> {
        let (at, line) = (moment.at, moment.line);
        let new = |sign: String, text: String| Step::new(at, line, sign, text);
        Some(match moment.event {
            Event::Grant(grant) => {
                let token = self.tokens.short(&grant.token.to_string());
                let holder = Lane::of(&grant.holder);
                new(
                    format!("grant {}", grant.holder),
                    format!("The lock store grants {} the lock: token {token}", grant.holder),
                )
                .arrow(Lane::Store, holder.clone(), Head::Arrives)
                .state(Lane::Store, State::Lease(grant.holder.clone()))
                .state(holder, State::Runs)
            }
            Event::LeaseEnd(end) => {
                let holder = self.facts.holder_of(&end.grant).unwrap_or("a holder");
                let how = match end.cause.as_str() {
                    "expired" => "runs out",
                    "revoked" => "is revoked",
                    "released" => "is given back",
                    _ => "ends",
                };
                new(format!("lease {holder}"), format!("{holder}'s lease {how}"))
                    .dot(Lane::Store)
                    .state(Lane::Store, State::Idle)
            }
            Event::Stop(stop) if moment.over => {
                let held = length(at.since(stop.asked));
                let lane = Lane::of(&stop.target);
                new(
                    format!("resume {}", stop.target),
                    format!("{} goes on, after {held}", actor(&stop.target)),
                )
                .dot(lane.clone())
                .state(lane, State::Runs)
                .end()
                .tone(Tone::Disturbed)
            }
            Event::Stop(stop) => {
                let lane = Lane::of(&stop.target);
                new(
                    format!("stop {}", stop.target),
                    format!("{} is stopped", actor(&stop.target)),
                )
                .dot(lane.clone())
                .state(lane, State::Stopped)
                .tone(Tone::Disturbed)
            }
            Event::Hold(hold) => {
                let request = self.facts.request(&hold.op).map(|(_, request)| request);
                let what = request.map_or_else(|| hold.op.to_string(), |request| self.what(request));
                if moment.over {
                    new(
                        format!("release {}", hold.op),
                        format!(
                            "The path lets the rest of {what} go, after {}",
                            length(at.since(self.begin(line)))
                        ),
                    )
                    .end()
                    .arrow(Lane::Path, Lane::of("R"), Head::Arrives)
                    .state(Lane::Path, State::Idle)
                    .tone(Tone::Disturbed)
                } else {
                    let from = request.map_or(Lane::Path, |request| Lane::of(&request.holder));
                    let bytes = count(usize::try_from(hold.byte).unwrap_or(usize::MAX), "byte");
                    let text = format!("The path lets {bytes} of {what} through and holds the rest");
                    new(format!("hold {}", hold.op), text)
                        .arrow(from, Lane::Path, Head::Kept)
                        .state(Lane::Path, State::Holds)
                        .tone(Tone::Disturbed)
                }
            }
            Event::Withheld(answer) => {
                let request = self.facts.request(&answer.op).map(|(_, request)| request);
                let what = request.map_or_else(|| answer.op.to_string(), |request| self.what(request));
                withheld(moment, answer, &what)
            }
            Event::Uncommitted(commit) => {
                let request = self.facts.request(&commit.op).map(|(_, request)| request);
                let what = request.map_or_else(|| commit.op.to_string(), |request| self.what(request));
                uncommitted(moment, commit, &what)
            }
            Event::Unheard(one) => unheard(moment, one),
            Event::Unstopped(one) => unstopped(moment, one),
            Event::Queued(queued) => {
                let what = self
                    .facts
                    .request(&queued.op)
                    .map(|(_, request)| self.what(request));
                let what = what.unwrap_or_else(|| queued.op.to_string());
                let text = format!(
                    "{} lies unread in the {}'s socket",
                    capital(&what),
                    Lane::of(&queued.target).title()
                );
                new(format!("queued {}", queued.op), text).dot(Lane::of(&queued.target))
            }
            Event::Waiting(waiting) => {
                let what = self
                    .facts
                    .request(&waiting.op)
                    .map(|(_, request)| self.what(request));
                let what = what.unwrap_or_else(|| waiting.op.to_string());
                new(
                    format!("waiting {}", waiting.op),
                    format!("{} waits for {}'s open transaction", capital(&what), waiting.on),
                )
                .dot(Lane::Mark)
            }
            Event::Killed(killed) => {
                let lane = Lane::of(&killed.target);
                new(
                    format!("killed {}", killed.target),
                    format!("{} is killed", actor(&killed.target)),
                )
                .dot(lane.clone())
                .state(lane, State::Gone)
                .tone(Tone::Disturbed)
            }
            Event::Restarted(again) => {
                let lane = Lane::of(&again.target);
                new(
                    format!("restarted {}", again.target),
                    format!("{} is started again", actor(&again.target)),
                )
                .dot(lane.clone())
                .state(lane, State::Runs)
                .tone(Tone::Disturbed)
            }
            Event::Started(started) => {
                let lane = Lane::of(&started.target);
                new(
                    format!("started {}", started.target),
                    format!("{} is started", actor(&started.target)),
                )
                .dot(lane.clone())
                .state(lane, State::Runs)
                .tone(Tone::Disturbed)
            }
            Event::Request(request) => return self.request(moment, request),
            Event::Answer(answer) if !self.merged.contains(&answer.op) => {
                return self.answered(moment, &answer.op);
            }
            Event::Unanswered(lost) if !self.merged.contains(&lost.op) => {
                return self.answered(moment, &lost.op);
            }
            Event::DbAnswer(answer) => {
                let op = answer.op.as_ref().filter(|op| !self.merged.contains(op))?;
                let (_, request) = self.facts.request(op)?;
                if answer.sqlstate.is_some() || self.facts.has_front() || !self.is_first_word(op, line) {
                    return None;
                }
                let tag = answer.tag.as_deref().unwrap_or("done");
                let text = format!(
                    "PostgreSQL answers {}: {tag}, not committed yet",
                    self.what(request)
                );
                new(format!("answer {op}"), text).arrow(Lane::Mark, Lane::of(&request.holder), Head::Arrives)
            }
            Event::Probe(probe) => {
                let holder = self.facts.holder_of(probe.presented.grant.as_deref()?)?;
                let token = self.tokens.short(probe.presented.token.as_deref()?);
                let text = format!("An admission of {holder}, with token {token}, is rolled back");
                new(format!("rolled back {holder}"), text).dot(Lane::Mark)
            }
            Event::Read(read) => self.read(moment, read),
            Event::Final(_) => {
                let kept = self.facts.kept();
                let text = format!("At the end the resource holds {}", whose(&kept));
                new("final".to_owned(), text).dot(Lane::Mark).tone(Tone::Aside)
            }
            _ => return None,
        })
    }

    fn request(&self, moment: &Moment<'h>, request: &Request) -> Option<Step> {
        let held = self
            .facts
            .events
            .iter()
            .any(|(_, _, event)| matches!(event, Event::Hold(hold) if hold.op == request.op));
        if held {
            return None;
        }
        let token = request
            .presented
            .token
            .as_deref()
            .map_or("no token".to_owned(), |token| {
                format!("token {}", self.tokens.short(token))
            });
        let late = if self.facts.is_late(&request.op) {
            "late "
        } else {
            ""
        };
        let text = match request.work {
            Work::Raise => format!("{} raises the mark with {token}", request.holder),
            Work::Write => match self.facts.deferred(&request.op) {
                Some(asked) => format!("The worker makes {}'s {late}write with {token}", asked.holder),
                None => format!("{} sends its {late}write with {token}", request.holder),
            },
        };
        let text = match self.facts.replaced(&request.op) {
            Some(own) => format!(
                "{text}, put in the place of its own, {}, on the way",
                self.tokens.short(&own.to_string())
            ),
            None => text,
        };
        let (text, from, line) = match self.facts.relay(&request.op) {
            Some((line, relay)) => {
                let what = format!("{}'s {late}write", request.holder);
                (sent_again(&what, relay.how, &token), Lane::Path, Some(line))
            }
            None => (text, Lane::of(&request.holder), None),
        };
        let mut step = Step::new(moment.at, moment.line, format!("send {}", request.op), text);
        step.lines.extend(line);
        if !self.merged.contains(&request.op) {
            let to = target(self.facts);
            return Some(step.arrow(from, to, Head::Arrives));
        }
        Some(self.outcome(step, from, &request.op))
    }

    fn answered(&self, moment: &Moment<'h>, op: &Op) -> Option<Step> {
        let (_, request) = self.facts.request(op)?;
        let text = format!("{} is answered", capital(&self.what(request)));
        let step = Step::new(moment.at, moment.line, format!("answered {op}"), text);
        let from = match self.facts.has_front() {
            true => Lane::of("R"),
            false => Lane::of(&request.holder),
        };
        Some(self.outcome(step, from, op))
    }

    /// What came out of an operation, on the step that shows it.
    fn outcome(&self, mut step: Step, from: Lane, op: &Op) -> Step {
        let answered = Answered::of(self.facts, op, self.tokens);
        let lines = self.facts.events.iter().filter(|(_, _, event)| match event {
            Event::DbAnswer(answer) => answer.op.as_ref() == Some(op),
            Event::Answer(answer) => answer.op == *op,
            Event::Unanswered(lost) => lost.op == *op,
            Event::Commit(commit) => self.facts.is_commit_of(commit, op),
            _ => false,
        });
        step.lines.extend(lines.map(|(line, ..)| *line));
        step.lines.sort_unstable();
        step.lines.dedup();
        if let Some((at, _)) = self.facts.answer(op) {
            step.until = at;
        }
        step.tone = answered.tone;
        step.arrow(from, Lane::Mark, answered.head).result(answered.words)
    }

    fn read(&self, moment: &Moment<'h>, read: &Read) -> Step {
        let writers: Vec<&str> = read.ids.iter().filter_map(|id| self.facts.writer(id)).collect();
        let sees = whose(&writers);
        let sign = format!("read {}", read.by);
        if read.by == "kit" {
            return Step::new(
                moment.at,
                moment.line,
                sign,
                format!("The kit reads back: {sees}"),
            )
            .dot(Lane::Mark)
            .tone(Tone::Aside);
        }
        Step::new(moment.at, moment.line, sign, format!("{} reads: {sees}", read.by))
            .arrow(Lane::of(&read.by), target(self.facts), Head::Arrives)
            .tone(Tone::Aside)
    }

    /// Puts the mark's rises on the steps after which it stands elsewhere.
    fn raise_marks(&self, steps: &mut [Step]) {
        let (mut last, mut rises) = (None, 0);
        for step in steps {
            let op = step.lines.iter().find_map(|line| {
                match self.facts.events.iter().find(|(other, ..)| other == line) {
                    Some((_, _, Event::Answer(answer))) => Some(&answer.op),
                    Some((_, _, Event::Unanswered(lost))) => Some(&lost.op),
                    _ => None,
                }
            });
            let Some(mark) = op.and_then(|op| self.facts.mark_after(op)) else {
                continue;
            };
            if last != Some(mark) {
                (last, rises) = (Some(mark), rises + 1);
                let token = self.tokens.short(&mark.to_string());
                if let Some(result) = &mut step.result {
                    result.push_str(&format!("; the mark is now {token}"));
                }
                step.states.push((Lane::Mark, State::Mark(rises, token)));
            }
        }
    }

    /// `H1's late write`.
    fn what(&self, request: &'h Request) -> String {
        let late = if self.facts.is_late(&request.op) {
            "late "
        } else {
            ""
        };
        match request.work {
            Work::Raise => format!("{}'s raise of the mark", request.holder),
            Work::Write => format!("{}'s {late}write", self.facts.author(request)),
        }
    }

    fn begin(&self, line: usize) -> At {
        let found = self.facts.events.iter().find(|(other, ..)| *other == line);
        found.map_or(At::from_nanos(0), |(_, at, _)| *at)
    }

    /// Whether this is the first line on which PostgreSQL answers the operation.
    fn is_first_word(&self, op: &Op, line: usize) -> bool {
        let mut words = self.facts.events.iter().filter(|(_, _, event)| match event {
            Event::DbAnswer(answer) => answer.op.as_ref() == Some(op),
            _ => false,
        });
        words.next().is_some_and(|(first, ..)| *first == line)
    }
}

/// `H1's write and H2's write`.
fn whose(writers: &[&str]) -> String {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for writer in writers {
        match counted.iter_mut().find(|(known, _)| known == writer) {
            Some((_, number)) => *number += 1,
            None => counted.push((writer, 1)),
        }
    }
    let each: Vec<String> = counted
        .iter()
        .map(|(writer, number)| match number {
            1 => format!("{writer}'s write"),
            _ => format!("{writer}'s write {}", times(*number)),
        })
        .collect();
    match each.is_empty() {
        true => "no write yet".to_owned(),
        false => each.join(" and "),
    }
}
