//! The table at the end: what was run, what was refused and why, and what the same run did without the guard.

use std::fmt::Write;
use std::path::Path;

use pause_kit::evidence::{Evidence, InvariantBroken, RefusalSeen, ScenarioEvidence, Verdict};
use pause_kit::plan::{Halves, Plan};

/// The whole text.
pub(super) fn text(plan: &Plan, evidence: &Evidence, kept: Option<&Path>) -> String {
    let mut out = String::new();
    let width = evidence
        .scenarios
        .iter()
        .map(|one| one.class.as_str().len())
        .max()
        .unwrap_or(5);
    line(
        &mut out,
        &format!(
            "\n{:<8}  {:<width$}  {:<12}  what was done, and what came of it",
            "scenario", "class", "verdict"
        ),
    );
    for scenario in &evidence.scenarios {
        line(
            &mut out,
            &format!(
                "{:<8}  {:<width$}  {:<12}  {}",
                scenario.id,
                scenario.class.as_str(),
                verdict(plan.halves, scenario.verdict),
                scenario.id.summary()
            ),
        );
        for detail in details(plan, scenario) {
            line(&mut out, &format!("{:indent$}{detail}", "", indent = width + 26));
        }
    }
    line(&mut out, &format!("\n{}", last(plan, evidence)));
    line(
        &mut out,
        &format!("seed {}, schedule {}", evidence.seed, evidence.schedule),
    );
    if let Some(folder) = kept {
        line(&mut out, &format!("evidence in {}", folder.display()));
    }
    out
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{}", text.trim_end()).expect("writing to a String does not fail");
}

/// A verdict in the words that fit what was run.
pub(super) fn verdict(halves: Halves, verdict: Verdict) -> &'static str {
    match (halves, verdict) {
        (Halves::DefeatedOnly, Verdict::Violated) => "corrupts",
        (Halves::DefeatedOnly, _) => "stays clean",
        (Halves::Pair, Verdict::Proven) => "proven",
        (Halves::Pair, Verdict::Inconclusive) => "inconclusive",
        (Halves::Pair, Verdict::Violated) => "violated",
    }
}

fn details(plan: &Plan, scenario: &ScenarioEvidence) -> Vec<String> {
    let mut details = Vec::new();
    if let Some(why) = &scenario.why {
        details.push(format!("because: {why}"));
    }
    if let Some(on) = &scenario.on {
        if let Some(refusal) = &on.refusal {
            let outcome = on.outcome.as_deref().unwrap_or("refused");
            details.push(format!("guarded: {outcome}, {}", refused(refusal)));
        }
        for broken in on.violated.iter().flatten() {
            details.push(format!("guarded: broke {}", named(broken)));
        }
    }
    if let Some(defeated) = &scenario.defeated {
        let how = match plan.halves {
            Halves::Pair => "without the guard",
            Halves::DefeatedOnly => "unfenced",
        };
        let broken: Vec<String> = defeated.violated.iter().flatten().map(number).collect();
        let corruption = defeated.corruption.clone();
        match broken.is_empty() {
            true => details.push(format!("{how}: nothing was seen to break")),
            false => details.push(format!(
                "{how}: {}",
                corruption.unwrap_or_else(|| "corrupted".to_owned())
            )),
        }
        if !broken.is_empty() {
            details.push(format!(
                "{:width$}  breaks {}",
                "",
                broken.join(", "),
                width = how.len()
            ));
        }
    }
    details
}

fn refused(refusal: &RefusalSeen) -> String {
    let numbers = match (refusal.presented, refusal.seen) {
        (Some(presented), Some(seen)) => format!("presented {presented}, seen {seen}"),
        _ => "without both numbers".to_owned(),
    };
    let code = refusal.sqlstate.iter().map(|code| format!(", {code}"));
    let status = refusal.status.iter().map(|status| format!(", HTTP {status}"));
    code.chain(status).fold(numbers, |text, part| text + &part)
}

fn named(broken: &InvariantBroken) -> String {
    format!("{}: {}", number(broken), broken.why)
}

fn number(broken: &InvariantBroken) -> String {
    match broken.invariant {
        Some(number) => format!("{number} {}", broken.name),
        None => broken.name.clone(),
    }
}

/// One sentence on the whole.
fn last(plan: &Plan, evidence: &Evidence) -> String {
    let all = evidence.scenarios.len();
    let count = |verdict| {
        evidence
            .scenarios
            .iter()
            .filter(|one| one.verdict == verdict)
            .count()
    };
    match plan.halves {
        Halves::Pair => {
            let proven = count(Verdict::Proven);
            let how = match proven {
                0 => String::new(),
                _ => ": the late write was refused as stale, and the same schedule without the guard went wrong".to_owned(),
            };
            format!(
                "{proven} of {all} scenarios proven{how}. {} violated, {} inconclusive.",
                count(Verdict::Violated),
                count(Verdict::Inconclusive)
            )
        }
        Halves::DefeatedOnly => format!(
            "{} of {all} scenarios corrupt without the guard. Nothing is proven by this: it is what the guard is for.",
            count(Verdict::Violated)
        ),
    }
}
