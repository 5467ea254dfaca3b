//! The rows of one half: lanes with what goes on in them, and each step in words.

use std::collections::{BTreeMap, BTreeSet};

use super::describe::describe;
use super::facts::Facts;
use super::html::Html;
use super::step::{Head, Lane, State, Step, Tone};
use super::words::{clock, follows};
use crate::evidence::InvariantBroken;

/// The lanes that the steps touch, from left to right.
pub(super) fn lanes<'s>(steps: impl Iterator<Item = &'s Step>) -> Vec<Lane> {
    let lanes: BTreeSet<&Lane> = steps.flat_map(Step::lanes).collect();
    lanes.into_iter().cloned().collect()
}

/// One half.
pub(super) struct Side<'a> {
    pub(super) title: &'static str,
    pub(super) file: &'a str,
    /// What the ids of its steps begin with.
    pub(super) prefix: &'a str,
    pub(super) lanes: &'a [Lane],
    pub(super) facts: &'a Facts<'a>,
    pub(super) broken: &'a [InvariantBroken],
}

impl Side<'_> {
    /// Draws the steps by the rows that both halves share; nothing where the other half has a step alone.
    pub(super) fn draw(&self, html: &mut Html, rows: &[Option<&Step>]) {
        html.raw("<section class=\"half\">\n<h3>")
            .raw(self.title)
            .raw(" <small>")
            .text(self.file)
            .raw("</small></h3>\n");
        html.raw("<div class=\"heads lanes")
            .text(self.lanes.len())
            .raw("\" aria-hidden=\"true\">");
        for lane in self.lanes {
            html.raw(if *lane == Lane::Mark {
                "<span class=\"mark\">"
            } else {
                "<span>"
            });
            html.element("<span>", lane.title(), "</span></span>");
        }
        html.raw("</div>\n<ol class=\"steps n")
            .text(rows.len())
            .raw("\">\n");
        let mut states: BTreeMap<&Lane, State> = BTreeMap::new();
        let last = rows.iter().rposition(Option::is_some).unwrap_or_default();
        for (index, row) in rows.iter().enumerate() {
            match row {
                Some(step) => self.row(html, step, &mut states, index == last),
                None => {
                    html.raw("<li class=\"none\" aria-hidden=\"true\"><span class=\"time\"></span>");
                    self.rails(html, &states, &states, None);
                    html.raw("</li>\n");
                }
            }
        }
        html.raw("</ol>\n</section>\n");
    }

    fn row<'s>(
        &'s self,
        html: &mut Html,
        step: &'s Step,
        states: &mut BTreeMap<&'s Lane, State>,
        last: bool,
    ) {
        let before = states.clone();
        for (lane, state) in &step.states {
            states.insert(lane, state.clone());
        }
        if last {
            states.clear();
        }
        // What follows from another broken rule would mark every step; alone it is all that there is to be shown.
        let alone = self.broken.iter().all(follows);
        let rules: Vec<&InvariantBroken> = self
            .broken
            .iter()
            .filter(|broken| {
                (alone || !follows(broken)) && broken.lines.iter().any(|line| step.lines.contains(line))
            })
            .collect();
        html.raw("<li class=\"").raw(tone(step.tone));
        html.raw(if rules.is_empty() { "" } else { " shows" });
        if step.tone != Tone::Wait {
            html.raw("\" id=\"").text(self.prefix).raw("-").text(&step.id);
        }
        html.raw("\"><span class=\"time\">");
        html.text(if step.tone == Tone::Wait {
            String::new()
        } else {
            clock(step.at)
        })
        .raw("</span>");
        self.rails(html, &before, states, Some(step));
        if step.tone == Tone::Wait {
            html.raw("<p>").words(&step.text).raw("</p></li>\n");
            return;
        }
        html.raw("<details><summary><span class=\"what\">")
            .words(&step.text)
            .raw("</span>");
        if let Some(result) = &step.result {
            html.raw(" <span class=\"result\">").words(result).raw("</span>");
        }
        if !rules.is_empty() {
            html.raw(" <span class=\"breaks\">")
                .text(shows(&rules))
                .raw("</span>");
        }
        html.raw("</summary>\n");
        lines(html, self.facts, &step.lines, None);
        html.raw("</details></li>\n");
    }

    /// The lanes beside a step: what went on above it, what goes on from it on, and its arrow or dot.
    fn rails(
        &self,
        html: &mut Html,
        before: &BTreeMap<&Lane, State>,
        after: &BTreeMap<&Lane, State>,
        step: Option<&Step>,
    ) {
        html.raw("<span class=\"rails lanes")
            .text(self.lanes.len())
            .raw("\" aria-hidden=\"true\">");
        for lane in self.lanes {
            let (up, down) = (before.get(lane), after.get(lane));
            html.raw(if *lane == Lane::Mark {
                "<span class=\"lane mark\">"
            } else {
                "<span class=\"lane\">"
            });
            state(html, "<i class=\"up ", up, false);
            state(html, "<i class=\"down ", down, up != down);
            html.raw("</span>");
        }
        if let Some(step) = step {
            if let Some((from, to, head)) = &step.arrow {
                self.arrow(html, from, to, *head);
            } else if let Some(lane) = &step.dot {
                html.raw("<b class=\"dot f")
                    .text(self.place(lane))
                    .raw(if *lane == Lane::Mark { " m" } else { "" })
                    .raw("\"></b>");
            }
        }
        html.raw("</span>");
    }

    fn arrow(&self, html: &mut Html, from: &Lane, to: &Lane, head: Head) {
        let (start, end) = (self.place(from), self.place(to));
        html.raw(if start <= end {
            "<b class=\"arrow right "
        } else {
            "<b class=\"arrow left "
        });
        html.raw(match head {
            Head::Arrives => "arrives",
            Head::Kept => "kept",
            Head::Wall => "wall",
            Head::Through => "through",
        });
        // The mark's lane is met at its edge, the others in their middle.
        html.raw(if *from == Lane::Mark { " g" } else { " f" })
            .text(start);
        html.raw(if *to == Lane::Mark { " x" } else { " t" })
            .text(end)
            .raw("\"></b>");
    }

    fn place(&self, lane: &Lane) -> usize {
        self.lanes
            .iter()
            .position(|known| known == lane)
            .unwrap_or_default()
    }
}

/// Lines of the history in full, each with a link to its step where there is one.
pub(super) fn lines(html: &mut Html, facts: &Facts<'_>, lines: &[usize], steps: Option<(&str, &[Step])>) {
    if lines.is_empty() {
        return;
    }
    html.raw("<ul class=\"lines\">\n");
    for line in lines {
        let Some((_, at, event)) = facts.events.iter().find(|(number, ..)| number == line) else {
            html.raw("<li>line ").text(line).raw("</li>\n");
            continue;
        };
        html.raw("<li>");
        let step = steps.and_then(|(prefix, steps)| {
            let step = steps.iter().find(|step| step.lines.contains(line))?;
            Some(format!("{prefix}-{}", step.id))
        });
        match step {
            Some(id) => html
                .raw("<a href=\"#")
                .text(id)
                .raw("\">line ")
                .text(line)
                .raw("</a>"),
            None => html.raw("<b>line ").text(line).raw("</b>"),
        };
        html.raw(" <span class=\"at\">")
            .text(clock(*at))
            .raw("</span> ")
            .text(describe(event))
            .raw("</li>\n");
    }
    html.raw("</ul>\n");
}

fn state(html: &mut Html, open: &'static str, state: Option<&State>, new: bool) {
    html.raw(open);
    let label = match state {
        None | Some(State::Idle) => {
            html.raw("idle\">");
            None
        }
        Some(State::Runs) => {
            html.raw("runs\">");
            None
        }
        Some(State::Stopped) => {
            html.raw("stopped\">");
            None
        }
        Some(State::Gone) => {
            html.raw("gone\">");
            None
        }
        Some(State::Holds) => {
            html.raw("holds\">");
            None
        }
        Some(State::Lease(holder)) => {
            html.raw(if holder == "H1" {
                "lease first\">"
            } else {
                "lease next\">"
            });
            Some(holder.as_str())
        }
        Some(State::Mark(rises, token)) => {
            html.raw("mark m").text((*rises).min(3)).raw("\">");
            Some(token.trim_start_matches('…'))
        }
    };
    if let Some(label) = label.filter(|label| new && label.chars().count() <= 4) {
        html.text(label);
    }
    html.raw("</i>");
}

/// `shows broken rules 1, 2 and lost update`.
fn shows(rules: &[&InvariantBroken]) -> String {
    let numbers: Vec<String> = rules
        .iter()
        .filter_map(|one| Some(one.invariant?.to_string()))
        .collect();
    let numbered = match numbers.as_slice() {
        [] => None,
        [one] => Some(format!("broken rule {one}")),
        more => Some(format!("broken rules {}", more.join(", "))),
    };
    let names = rules
        .iter()
        .filter(|one| one.invariant.is_none())
        .map(|one| one.name.clone());
    let parts: Vec<String> = numbered.into_iter().chain(names).collect();
    format!("shows {}", parts.join(" and "))
}

fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Aside => "aside",
        Tone::Wait => "wait",
        Tone::Disturbed => "disturbed",
        Tone::Right => "right",
        Tone::Wrong => "wrong",
    }
}
