//! What was done and what came out, in a few sentences, from the facts of the histories alone.

use super::attempt::Answered;
use super::deeds::{self, Part, of_successors};
use super::describe::altered;
use super::facts::Facts;
use super::step::Head;
use super::words::{Tokens, actor, by_weight, capital, count, rule, times};
use crate::evidence::{InvariantBroken, ScenarioEvidence, Verdict};
use crate::history::{At, Event, Half, Op, Outcome, Reply, Work};
use crate::judge::Said;

/// The sentences of one scenario: what was done, what came out with the guard, and what without it.
pub(super) fn story(
    scenario: &ScenarioEvidence,
    on: Option<&Facts<'_>>,
    defeated: Option<&Facts<'_>>,
    tokens: &Tokens,
) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(facts) = on.or(defeated) {
        if facts.run.half == Half::Defeated {
            sentences.push("This was run without the guard.".to_owned());
        }
        let teller = Teller { facts, tokens };
        let told = teller.swept();
        let told = told
            .unwrap_or_else(|| [teller.disturbed(), teller.attempts()].concat())
            .into_iter();
        let mut parts: Vec<_> = told.map(|(at, sentence)| (at, Part::Told(sentence))).collect();
        parts.extend(of_successors(facts, tokens));
        sentences.extend(deeds::sentences(parts));
        let broken = match facts.run.half {
            Half::Guarded => scenario.on.as_ref().and_then(|half| half.violated.as_ref()),
            Half::Defeated => scenario.defeated.as_ref().and_then(|half| half.violated.as_ref()),
        };
        sentences.extend(teller.went_wrong(broken.map_or(&[], |broken| broken)));
    }
    if let (Some(_), Some(twin)) = (on, defeated) {
        let broken = scenario.defeated.as_ref().and_then(|half| half.violated.as_ref());
        sentences.push(
            Teller { facts: twin, tokens }
                .without_guard(broken.map_or(&[], |broken| broken), scenario.id.left_out()),
        );
    }
    if scenario.verdict == Verdict::Inconclusive {
        let why = scenario.why.as_deref().unwrap_or("no reason is given");
        sentences.push(format!(
            "This shows nothing either way: {}.",
            tokens.in_words(why)
        ));
    }
    sentences
}

/// A sentence, and when what it tells of happened.
pub(super) type Told = (At, String);

pub(super) struct Teller<'a, 'h> {
    pub(super) facts: &'a Facts<'h>,
    pub(super) tokens: &'a Tokens,
}

impl Teller<'_, '_> {
    /// Each late attempt, at the time of its answer.
    fn attempts(&self) -> Vec<Told> {
        let attempts = self.facts.attempts().into_iter();
        // What is to stay unknown is told by what kept its answer, or its COMMIT.
        let attempts =
            attempts.filter(|(op, expected)| *expected != Outcome::Unknown && !self.facts.is_uncommitted(op));
        let attempts: Vec<&Op> = attempts.map(|(op, _)| op).collect();
        let mut told = Vec::new();
        let mut rest = attempts.as_slice();
        while let Some((op, others)) = rest.split_first() {
            let alike = rest.iter().take_while(|other| self.alike(op, other)).count();
            let (together, after) = match alike {
                0 | 1 => (None, others),
                _ => (self.together(&rest[..alike]), &rest[alike..]),
            };
            rest = after;
            let answered = |op: &Op| {
                let answered = self.facts.answer(op).map(|(at, _)| at);
                answered.or_else(|| Some(self.facts.request(op)?.0))
            };
            told.extend(answered(op).and_then(|at| Some((at, together.or_else(|| self.attempt(op))?))));
        }
        told
    }

    /// What the late holder did, and what it was told.
    fn attempt(&self, op: &Op) -> Option<String> {
        let (sent, request) = self.facts.request(op)?;
        let holder = &request.holder;
        let token = request.presented.token.as_deref();
        let token = token.map_or("without a token".to_owned(), |token| {
            format!("with token {}", self.tokens.short(token))
        });
        let is_op = |other: &Op| other == op;
        let mut came = None;
        for (_, _, event) in &self.facts.events {
            match event {
                Event::Hold(hold) if is_op(&hold.op) => {
                    came = Some(format!("Then the rest of {holder}'s write arrived, {token}"))
                }
                Event::Withheld(answer) if is_op(&answer.op) => {
                    came = Some(format!("The resource went on with {holder}'s write, {token}"));
                }
                Event::Queued(queued) if is_op(&queued.op) => {
                    came = Some(format!(
                        "{} went on and read {holder}'s write, {token}",
                        actor(&queued.target)
                    ));
                }
                Event::Stop(stop)
                    if stop.target == *holder
                        && came.is_none()
                        && stop.resumed.is_some_and(|resumed| resumed <= sent) =>
                {
                    came = Some(format!("{holder} woke up and sent its write {token}"));
                }
                _ => {}
            }
        }
        if let Some((_, relay)) = self.facts.relay(op) {
            let how = altered(relay.how).map_or_else(|| format!(", {token}"), |how| format!(" {how}"));
            let which = match self.facts.is_repeated(&relay.of) {
                true => "answered write",
                false => "write",
            };
            came = Some(format!("The path sent {holder}'s {which} again{how}"));
        }
        if let Some(asked) = self.facts.deferred(op) {
            came = Some(format!("It came to {}'s write, {token}", asked.holder));
        }
        let came = came.unwrap_or_else(|| match request.work {
            Work::Raise => format!("{holder} went to raise the mark {token}"),
            Work::Write => format!("{holder} sent its write {token}"),
        });
        let came = match self.facts.replaced(op) {
            Some(own) => format!(
                "{came}, which the kit had put in the place of its own, {}, on the way",
                self.tokens.short(&own.to_string())
            ),
            None => came,
        };
        let judge = self.decider(op);
        let answered = Answered::of(self.facts, op, self.tokens);
        let before = self
            .facts
            .mark_before(op)
            .map(|mark| self.tokens.short(&mark.to_string()));
        let in_vain = match self.facts.is_refused_in_vain(op) {
            true => ", and yet it took effect",
            false => "",
        };
        Some(match (self.facts.said(op), answered.head) {
            (Some(Said::Fenced(why)), _) => match self.facts.seen(op) {
                Some(seen) => format!(
                    "{came}; {judge} refused it, because it had seen {}{in_vain}.",
                    self.tokens.short(seen)
                ),
                None if in_vain.is_empty() => format!("{came}; {judge} refused it, as {}.", why.name()),
                None => format!("{came}; {judge}: {}.", answered.words),
            },
            (Some(Said::Stored), _) => {
                format!("{came}; {judge} knew it, gave the answer of the first time, and did nothing more.")
            }
            (Some(Said::Accepted), Head::Arrives) => {
                format!("{came}; {judge} accepted it, and rightly: nobody newer had been in touch.")
            }
            (Some(Said::Accepted), _) => match before {
                Some(mark) if token.ends_with(&format!(" {mark}")) => {
                    format!("{came}; {judge} accepted it: it had seen nothing newer.")
                }
                Some(mark) => format!("{came}; {judge} accepted it, although it had seen {mark}."),
                None => format!("{came}; {judge} accepted it."),
            },
            _ => format!("{came}; it came to this: {}.", answered.words),
        })
    }

    /// What the half's own rules say, where they were broken.
    fn went_wrong(&self, broken: &[InvariantBroken]) -> Vec<String> {
        let Some(first) = by_weight(broken).first().copied() else {
            return Vec::new();
        };
        let more = match broken.len() {
            1 => String::new(),
            all => format!(", and {}", count(all - 1, "more rule")),
        };
        let breaks = format!("That breaks {}{more}.", rule(first.invariant, &first.name));
        let what = match self.twice() {
            Some(twice) => format!("So {twice}."),
            None => format!("{}.", capital(&self.tokens.in_words(&first.why))),
        };
        vec![what, breaks]
    }

    /// What the twin shows.
    fn without_guard(&self, broken: &[InvariantBroken], left_out: &str) -> String {
        let attempts = self.facts.attempts();
        let head = |op: &Op| Answered::of(self.facts, op, self.tokens).head;
        let through: Vec<&Op> = attempts.iter().map(|(op, _)| *op).collect();
        let through: Vec<&Op> = through
            .into_iter()
            .filter(|op| self.facts.said(op) == Some(Said::Accepted) && head(op) == Head::Through)
            .collect();
        let how = match through.iter().any(|op| self.facts.replaced(op).is_some()) {
            true => "With its successor's token put into it on the way".to_owned(),
            false => format!("Without {left_out}"),
        };
        let Some(first) = by_weight(broken).first().copied() else {
            return format!("{how} the same schedule broke nothing.");
        };
        let twice = self.twice();
        let so = twice
            .as_ref()
            .map_or_else(String::new, |twice| format!(": {twice}"));
        let same = match (through.len(), attempts.len()) {
            (0, _) => None,
            (1, 1) => Some("the same write".to_owned()),
            (1, _) => Some("the write that was refused".to_owned()),
            (all, _) => Some(format!("the same {}", count(all, "write"))),
        };
        match (same, self.facts.old_read(broken), twice) {
            (Some(same), ..) => format!("{how} {same} went through{so}."),
            (None, Some(old), _) => format!(
                "{how}, {missed}'s write came after {}'s read and was accepted, and rightly; {} then wrote from that read{so}.",
                old.holder,
                old.holder,
                missed = old.missed
            ),
            (None, None, Some(twice)) => format!("{how} {twice}."),
            (None, None, None) => format!("{how}, {}.", self.tokens.in_words(&first.why)),
        }
    }

    /// `order-7 was refunded twice`.
    fn twice(&self) -> Option<String> {
        let jobs = self.facts.jobs();
        let (job, ids) = jobs.iter().find(|(_, ids)| ids.len() > 1)?;
        Some(format!("{job} was {} {}", self.facts.run.deed, times(ids.len())))
    }

    /// Whether a holder had been answered inside a transaction that was still open.
    pub(super) fn is_open(&self, holder: &str, at: At) -> bool {
        self.facts.requests().any(|(sent, request)| {
            let ended = self.facts.answer(&request.op).map(|(ended, _)| ended);
            let answered = self.facts.events.iter().any(|(_, when, event)| match event {
                Event::DbAnswer(answer) => *when < at && answer.op.as_ref() == Some(&request.op),
                _ => false,
            });
            request.holder == holder && sent < at && answered && ended.is_none_or(|ended| ended > at)
        })
    }

    pub(super) fn decider(&self, op: &Op) -> &'static str {
        match self.facts.answer(op) {
            Some((_, Some(Reply::Sql { .. }))) => "PostgreSQL",
            _ => "the resource",
        }
    }
}

/// What a half came to for the guarded thing, in a few words.
pub(super) fn consequence(facts: &Facts<'_>, broken: &[InvariantBroken], tokens: &Tokens) -> String {
    let jobs = facts.jobs();
    if let Some((job, ids)) = jobs.iter().max_by_key(|(_, ids)| ids.len()) {
        let done = match (jobs.len(), ids.len()) {
            (2.., 1) => format!("each of {} jobs was {} once", jobs.len(), facts.run.deed),
            _ => format!("{job} was {} {}", facts.run.deed, times(ids.len())),
        };
        return match by_weight(broken).first() {
            Some(first) if ids.len() == 1 => {
                format!("{done}, but {} was broken", rule(first.invariant, &first.name))
            }
            _ => done,
        };
    }
    match (by_weight(broken).first(), facts.kept().as_slice()) {
        (Some(first), _) => tokens.in_words(&first.why),
        (None, []) => "nothing was written".to_owned(),
        (None, kept) => format!(
            "{} was {} by {}",
            facts.run.key,
            facts.run.deed,
            kept.join(" and ")
        ),
    }
}
