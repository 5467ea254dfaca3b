//! One scenario on the page.

use std::collections::BTreeMap;

use super::align::{Row, aligned};
use super::attempt::Answered;
use super::facts::Facts;
use super::html::Html;
use super::rows::{self, Side};
use super::step::{Head, Step, Tone};
use super::steps::steps;
use super::story::{consequence, story};
use super::words::{Tokens, by_weight, capital, count, demand, rule};
use crate::evidence::{HistoryFile, InvariantBroken, ScenarioEvidence, Verdict};
use crate::history::{Exercise, History, Op};
use crate::judge::Said;
use crate::scenario::ScenarioId;

/// A scenario, ready to be drawn.
pub(super) struct Article<'a> {
    pub(super) scenario: &'a ScenarioEvidence,
    index: usize,
    tokens: Tokens,
    halves: Vec<HalfDrawn<'a>>,
    missing: Vec<&'a str>,
    rows: Vec<Row>,
}

/// One half, ready to be drawn.
struct HalfDrawn<'a> {
    guarded: bool,
    facts: Facts<'a>,
    steps: Vec<Step>,
    broken: &'a [InvariantBroken],
    file: &'a HistoryFile,
}

impl HalfDrawn<'_> {
    fn title(&self, id: ScenarioId) -> &'static str {
        let replaced = |(op, _): &(&Op, _)| self.facts.replaced(op).is_some();
        match (self.guarded, id) {
            (true, _) => "With the guard",
            (false, ScenarioId::S04b) => "Without raising the mark before the read",
            (false, ScenarioId::S25) => "Without the guard and its bounds",
            (false, ScenarioId::S26) => "Without the guard's bounds",
            (false, _) if self.facts.attempts().iter().any(replaced) => {
                "With the successor's token put into the late write"
            }
            (false, _) => "Without the guard",
        }
    }
}

impl<'a> Article<'a> {
    pub(super) fn of(
        scenario: &'a ScenarioEvidence,
        histories: &'a BTreeMap<String, History>,
        index: usize,
    ) -> Article<'a> {
        let on = scenario
            .on
            .as_ref()
            .map(|half| (true, &half.history, half.violated.as_deref()));
        let defeated = scenario
            .defeated
            .as_ref()
            .map(|half| (false, &half.history, half.violated.as_deref()));
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for (guarded, file, broken) in on.into_iter().chain(defeated) {
            match histories.get(&file.history) {
                Some(history) => found.push((guarded, file, broken.unwrap_or_default(), Facts::of(history))),
                None => missing.push(file.history.as_str()),
            }
        }
        let tokens = Tokens::of(&found.iter().map(|(.., facts)| facts).collect::<Vec<_>>());
        let drawn = found.into_iter().map(|(guarded, file, broken, facts)| HalfDrawn {
            guarded,
            steps: steps(&facts, &tokens),
            facts,
            broken,
            file,
        });
        let halves: Vec<HalfDrawn<'_>> = drawn.collect();
        let rows = match halves.as_slice() {
            [one] => aligned(&one.steps, &[]),
            [one, other] => aligned(&one.steps, &other.steps),
            _ => Vec::new(),
        };
        Article {
            scenario,
            index,
            tokens,
            halves,
            missing,
            rows,
        }
    }

    pub(super) fn anchor(&self) -> String {
        format!("s{}", self.index + 1)
    }

    /// How many rows its lists of steps have.
    pub(super) fn spans(&self) -> Option<usize> {
        (!self.rows.is_empty()).then_some(self.rows.len())
    }

    /// What was done and what came out.
    pub(super) fn story(&self) -> String {
        let half = |guarded: bool| {
            self.halves
                .iter()
                .find(|half| half.guarded == guarded)
                .map(|half| &half.facts)
        };
        story(self.scenario, half(true), half(false), &self.tokens).join(" ")
    }

    pub(super) fn draw(&self, html: &mut Html) {
        let (class, word) = verdict(self.scenario);
        let id = self.anchor();
        html.raw("<article class=\"")
            .text(class)
            .raw("\" id=\"")
            .text(&id)
            .raw("\" aria-labelledby=\"")
            .text(&id)
            .raw("-title\" tabindex=\"-1\">\n");
        html.raw("<h2 id=\"")
            .text(&id)
            .raw("-title\"><span class=\"verdict\">")
            .text(word)
            .raw("</span> ");
        html.text(self.scenario.id)
            .raw(": ")
            .text(self.scenario.id.summary());
        html.raw(" <small>").text(&self.scenario.class);
        if let Some(half) = self.halves.first() {
            html.raw(", key ").text(&half.facts.run.key);
        }
        html.raw("</small></h2>\n<p class=\"story\">");
        html.words(&self.story()).raw("</p>\n");
        for name in &self.missing {
            html.raw("<p class=\"gap\">Not drawn, because its history cannot be read: ")
                .text(name)
                .raw("</p>\n");
        }
        html.raw("<div class=\"meets halves")
            .text(self.halves.len())
            .raw("\">\n");
        for half in &self.halves {
            self.meeting(html, half);
        }
        html.raw("</div>\n");
        for half in self
            .halves
            .iter()
            .filter(|half| half.guarded || self.halves.len() == 1)
        {
            self.broken(html, half);
        }
        self.timeline(html);
        for half in self
            .halves
            .iter()
            .filter(|half| !half.guarded && self.halves.len() > 1 && !half.broken.is_empty())
        {
            html.raw("<details class=\"more\"><summary>What broke without the guard: ");
            html.text(names(&by_weight(half.broken))).raw("</summary>\n");
            for broken in by_weight(half.broken) {
                self.one_broken(html, half, broken);
            }
            html.raw("</details>\n");
        }
        html.raw("</article>\n");
    }

    /// The picture above the timeline: the late write and the mark, at one glance.
    fn meeting(&self, html: &mut Html, half: &HalfDrawn<'_>) {
        html.raw("<section class=\"meet\">\n<h3>")
            .raw(half.title(self.scenario.id))
            .raw("</h3>\n");
        let attempts = half.facts.attempts();
        let made = |op: &Op| half.facts.request(op).is_some();
        let any = attempts.iter().any(|(op, _)| made(op));
        let swept = matches!(half.facts.run.exercise, Exercise::Swept { .. });
        let shown = attempts.iter().filter(|(op, _)| made(op) || !any);
        // The last of a sweep stands for all.
        let (from, last) = (attempts.len().saturating_sub(1), attempts.len());
        for (op, _) in shown.take(last).skip(if swept { from } else { 0 }) {
            self.shot(html, half, op, None);
        }
        // Where no attempt is wrong, a write from an old read may be.
        let wrong = |op: &Op| Answered::of(&half.facts, op, &self.tokens).head == Head::Through;
        if let Some(old) = half.facts.old_read(half.broken)
            && !attempts.iter().any(|(op, _)| wrong(op))
        {
            self.shot(html, half, old.op, Some(old.missed));
        }
        let wrong = !half.broken.is_empty();
        html.raw(if wrong {
            "<p class=\"came wrong\">"
        } else {
            "<p class=\"came right\">"
        });
        html.words(&consequence(&half.facts, half.broken, &self.tokens))
            .raw(".</p>\n</section>\n");
    }

    /// A write and the mark that it met; `missed` is whose write it should have read and did not.
    fn shot(&self, html: &mut Html, half: &HalfDrawn<'_>, op: &Op, missed: Option<&str>) {
        let Some((_, request)) = half.facts.request(op) else {
            html.raw("<p class=\"none\">No late write was sent here.</p>\n");
            return;
        };
        let mut answered = Answered::of(&half.facts, op, &self.tokens);
        if let Some(missed) = missed {
            answered.head = Head::Through;
            answered.words = format!("it rests on a read that misses {missed}'s write");
        }
        let seen = half.facts.seen(op).map(|seen| self.tokens.short(seen));
        let before = || {
            half.facts
                .mark_before(op)
                .map(|mark| self.tokens.short(&mark.to_string()))
        };
        let mark = seen.or_else(before).unwrap_or_else(|| "none yet".to_owned());
        html.raw(match answered.head {
            Head::Wall => "<div class=\"shot stopped-at-wall\">",
            Head::Through => "<div class=\"shot went-through\">",
            Head::Arrives => "<div class=\"shot passed\">",
            Head::Kept => "<div class=\"shot unclear\">",
        });
        html.raw("<span class=\"who\">")
            .text(half.facts.author(request))
            .raw("&#8217;s ")
            .raw(if half.facts.is_late(op) {
                "late write"
            } else {
                "write"
            })
            .raw("<b>token ");
        html.text(
            request
                .presented
                .token
                .as_deref()
                .map_or("none".to_owned(), |token| self.tokens.short(token)),
        );
        html.raw("</b>");
        if let Some(own) = half.facts.replaced(op) {
            html.raw("<small>for its own, ")
                .text(self.tokens.short(&own.to_string()))
                .raw("</small>");
        }
        html.raw("</span><span class=\"flight\" aria-hidden=\"true\"></span><span class=\"brick\">mark<b>")
            .text(mark)
            .raw("</b></span><span class=\"end\"><b>");
        html.text(match answered.head {
            Head::Wall if answered.tone == Tone::Wrong => "refused, wrongly",
            Head::Wall => "refused",
            Head::Through if missed.is_some() => "an old read",
            Head::Through if half.facts.is_refused_in_vain(op) => "took effect",
            Head::Through => "let in",
            Head::Arrives if half.facts.said(op) == Some(Said::Stored) => "known already",
            Head::Arrives => "accepted, rightly",
            Head::Kept if half.facts.said(op).is_none() => "not known",
            Head::Kept => "not done",
        });
        html.raw("</b><small>")
            .words(&answered.words)
            .raw("</small></span></div>\n");
    }

    fn timeline(&self, html: &mut Html) {
        if self.halves.is_empty() {
            return;
        }
        let open = self.scenario.verdict != Verdict::Proven || self.index == 0;
        html.raw(if open {
            "<details class=\"run\" open>"
        } else {
            "<details class=\"run\">"
        });
        html.raw("<summary>Step by step: ")
            .text(count(self.rows.len(), "row"))
            .raw("</summary>\n");
        html.raw("<div class=\"pair halves")
            .text(self.halves.len())
            .raw("\">\n");
        let lanes = rows::lanes(self.halves.iter().flat_map(|half| &half.steps));
        for half in &self.halves {
            let place = |row: &Row| {
                if half.guarded || self.halves.len() == 1 {
                    row.0
                } else {
                    row.1
                }
            };
            let order: Vec<Option<&Step>> = self
                .rows
                .iter()
                .map(|row| place(row).map(|index| &half.steps[index]))
                .collect();
            let prefix = self.prefix(half);
            Side {
                title: half.title(self.scenario.id),
                file: &half.file.history,
                prefix: &prefix,
                lanes: &lanes,
                facts: &half.facts,
                broken: half.broken,
            }
            .draw(html, &order);
        }
        html.raw("</div>\n</details>\n");
    }

    /// The broken rules of one half: the most telling one, then the others on demand.
    fn broken(&self, html: &mut Html, half: &HalfDrawn<'_>) {
        let broken = by_weight(half.broken);
        let Some((first, others)) = broken.split_first() else {
            return;
        };
        self.one_broken(html, half, first);
        if others.is_empty() {
            return;
        }
        html.raw("<details class=\"more\"><summary>Also broken: ")
            .text(names(others))
            .raw("</summary>\n");
        for other in others {
            self.one_broken(html, half, other);
        }
        html.raw("</details>\n");
    }

    /// One broken rule, with the lines that show it.
    fn one_broken(&self, html: &mut Html, half: &HalfDrawn<'_>, broken: &InvariantBroken) {
        html.raw("<section class=\"broken\">\n<h3>Broken: ")
            .text(rule(broken.invariant, &broken.name))
            .raw("</h3>\n<p class=\"demand\">");
        html.text(demand(broken.invariant, &broken.name)).raw("</p>\n<p>");
        html.words(&capital(&self.tokens.in_words(&broken.why)))
            .raw(".</p>\n");
        rows::lines(
            html,
            &half.facts,
            &broken.lines,
            Some((&self.prefix(half), &half.steps)),
        );
        html.raw("<p class=\"file\">Lines of ")
            .text(&half.file.history)
            .raw("</p>\n</section>\n");
    }

    fn prefix(&self, half: &HalfDrawn<'_>) -> String {
        format!("{}-{}", self.anchor(), if half.guarded { "on" } else { "off" })
    }
}

/// The class and the word of a verdict, as far as the guard was there at all.
pub(super) fn verdict(scenario: &ScenarioEvidence) -> (&'static str, &'static str) {
    match (scenario.verdict, scenario.on.is_some()) {
        (Verdict::Held, _) => ("proven", "held"),
        (Verdict::Proven, _) => ("proven", "proven"),
        (Verdict::Inconclusive, true) => ("inconclusive", "inconclusive"),
        (Verdict::Inconclusive, false) => ("inconclusive", "stayed clean"),
        (Verdict::Violated, true) => ("violated", "violated"),
        (Verdict::Violated, false) => ("violated", "went wrong"),
    }
}

fn names(broken: &[&InvariantBroken]) -> String {
    let names: Vec<String> = broken.iter().map(|one| rule(one.invariant, &one.name)).collect();
    names.join(", ")
}
