//! The page of a run, drawn from histories made by hand.

mod answers;
mod later;
mod page;
mod relayed;
mod story;
mod swept;
mod uncommitted;

use std::collections::BTreeMap;

use pause_kit::evidence::{
    DefeatedHalf, Evidence, GuardDigest, GuardedHalf, HistoryFile, InvariantBroken, SCHEMA, ScenarioEvidence,
    Verdict,
};
use pause_kit::history::{Half, History};
use pause_kit::judge::{Judgement, judge};
use pause_kit::timeline::Drawing;

use crate::judge::tape::Tape;

/// A run of these scenarios, each with its halves as they were recorded, judged by the judge.
pub(crate) fn drawing(scenarios: impl IntoIterator<Item = (Verdict, Vec<Tape>)>) -> Drawing {
    let mut histories = BTreeMap::new();
    let mut drawn = Vec::new();
    for (index, (verdict, halves)) in scenarios.into_iter().enumerate() {
        drawn.push(scenario(index, verdict, halves, &mut histories));
    }
    let evidence = Evidence {
        schema: SCHEMA,
        seed: 7,
        schedule: "5".repeat(64),
        started: "2026-01-02T03:04:05Z".to_owned(),
        again: None,
        versions: [("etcd".to_owned(), "3.4.23".to_owned())].into(),
        transport: Default::default(),
        guard: GuardDigest {
            sha256: "9".repeat(64),
        },
        classes: Vec::new(),
        scenarios: drawn,
    };
    Drawing::new(evidence, histories)
}

fn scenario(
    index: usize,
    verdict: Verdict,
    halves: Vec<Tape>,
    histories: &mut BTreeMap<String, History>,
) -> ScenarioEvidence {
    let run = &halves[0].run;
    let mut scenario = ScenarioEvidence {
        id: run.scenario.parse().unwrap(),
        class: "paydb.account".parse().unwrap(),
        verdict,
        why: (verdict == Verdict::Inconclusive).then(|| "the holder was never granted".to_owned()),
        on: None,
        defeated: None,
        stops: Vec::new(),
    };
    for tape in halves {
        let (half, history) = (tape.run.half, tape.history());
        let judgement = judge(&history);
        let file = HistoryFile {
            history: format!("{index}.{half:?}.jsonl"),
            sha256: "0".repeat(64),
        };
        histories.insert(file.history.clone(), history);
        match half {
            Half::Guarded => {
                scenario.on = Some(GuardedHalf {
                    outcome: judgement.outcome(),
                    violated: broken(&judgement),
                    history: file,
                    refusal: None,
                });
            }
            Half::Defeated => {
                scenario.defeated = Some(DefeatedHalf {
                    violated: broken(&judgement),
                    corruption: judgement.corruption,
                    history: file,
                });
            }
        }
    }
    scenario
}

fn broken(judgement: &Judgement) -> Option<Vec<InvariantBroken>> {
    let mut broken: Vec<InvariantBroken> = Vec::new();
    for violation in &judgement.violations {
        if broken
            .iter()
            .all(|known| known.name != violation.invariant.name())
        {
            broken.push(InvariantBroken {
                invariant: violation.invariant.number(),
                name: violation.invariant.name().to_owned(),
                why: violation.why.clone(),
                lines: violation.lines.clone(),
            });
        }
    }
    (!broken.is_empty()).then_some(broken)
}

/// A half whose guard let the late write in.
pub(crate) fn let_in(mut tape: Tape) -> Tape {
    tape.run.half = Half::Guarded;
    tape
}

/// A page's text between two pieces of markup, without the tags in it.
pub(crate) fn between(page: &str, open: &str, close: &str) -> Vec<String> {
    let parts = page
        .split(open)
        .skip(1)
        .filter_map(|rest| rest.split(close).next());
    parts.map(text).collect()
}

/// Markup without its tags.
fn text(markup: &str) -> String {
    let mut text = String::new();
    let mut within = false;
    for letter in markup.chars() {
        match letter {
            '<' => within = true,
            '>' => within = false,
            _ if !within => text.push(letter),
            _ => {}
        }
    }
    let named = [
        ("&#39;", "'"),
        ("&quot;", "\""),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
        ("\u{A0}", " "),
    ];
    named
        .iter()
        .fold(text, |text, (name, letter)| text.replace(name, letter))
}
