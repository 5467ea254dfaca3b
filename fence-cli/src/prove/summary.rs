//! The table at the end: what was run, what was refused and why, and what the same run did without the guard.

use std::path::PathBuf;

use pause_kit::evidence::{Evidence, InvariantBroken, RefusalSeen, ScenarioEvidence, Verdict};
use pause_kit::judge::Invariant;
use pause_kit::plan::{Halves, Plan};
use pause_kit::run::Report;
use pause_kit::target::Transport;
use pause_kit::timeline::Drawing;

use super::wrap;

/// What became of the evidence.
pub(super) enum Kept {
    /// It stands in this folder.
    In(PathBuf),
    /// Nobody asked for it: a part of the scenarios was run, or nothing with its guard.
    NotAsked,
    /// It could not be written; the error says why.
    Failed,
}

/// How far what is said of a scenario stands from the left.
const INDENT: usize = 10;

/// The whole text, in lines of at most `columns`, as far as words allow.
pub(super) fn text(plan: &Plan, report: &Report, kept: &Kept, columns: usize) -> String {
    let (evidence, drawing) = (&report.evidence, report.drawing());
    let width = evidence
        .scenarios
        .iter()
        .map(|one| one.class.as_str().len())
        .max()
        .unwrap_or(5);
    let row = |id: &str, class: &str, verdict: &str| format!("{id:<INDENT$}{class:<width$}  {verdict}\n");
    let mut text = format!("\n{}", row("scenario", "class", "verdict"));
    for scenario in &evidence.scenarios {
        text.push_str(&row(
            scenario.id.as_str(),
            scenario.class.as_str(),
            verdict(plan.halves, scenario),
        ));
        for detail in details(plan, scenario, &drawing) {
            text.push_str(&wrap::wrapped(&detail, INDENT, columns));
        }
    }
    let mut paragraph = |words: &str| text.push_str(&wrap::wrapped(words, 0, columns));
    paragraph("");
    paragraph(&last(plan, evidence));
    if evidence.transport != Transport::default() {
        paragraph(&format!("requests travelled in {}", evidence.transport));
    }
    // What is for copying is not wrapped.
    text.push_str(&format!(
        "seed {}, schedule {}\n",
        evidence.seed, evidence.schedule
    ));
    let mut paragraph = |words: &str| text.push_str(&wrap::wrapped(words, 0, columns));
    match kept {
        Kept::In(folder) => {
            text.push_str(&format!("evidence in {}\n", folder.display()));
            let page = folder.join(pause_kit::timeline::FILE);
            text.push_str(&format!("to look at, in a browser: {}\n", page.display()));
        }
        Kept::NotAsked => paragraph(
            "no evidence was written: a run of a part, or of one half alone, is only kept where --out DIR says",
        ),
        Kept::Failed => paragraph("no evidence was written"),
    }
    text.push_str("how to read this: docs/reading-a-proof.md in the sources of fence\n");
    text
}

/// A verdict in the words that fit what was run.
pub(super) fn verdict(halves: Halves, scenario: &ScenarioEvidence) -> &'static str {
    match (halves, scenario.verdict) {
        (Halves::DefeatedOnly, Verdict::Violated) if only_blocks(scenario) => "blocks",
        (Halves::DefeatedOnly, Verdict::Violated) => "corrupts",
        (Halves::DefeatedOnly, _) => "stays clean",
        (Halves::Pair | Halves::GuardedOnly, Verdict::Held) => "held",
        (Halves::Pair | Halves::GuardedOnly, Verdict::Proven) => "proven",
        (Halves::Pair | Halves::GuardedOnly, Verdict::Inconclusive) => "inconclusive",
        (Halves::Pair | Halves::GuardedOnly, Verdict::Violated) => "violated",
    }
}

/// Whether nothing broke without the guard but the bound of a wait.
fn only_blocks(scenario: &ScenarioEvidence) -> bool {
    let broken = scenario
        .defeated
        .iter()
        .flat_map(|half| half.violated.iter().flatten());
    let mut broken = broken.peekable();
    broken.peek().is_some() && broken.all(|one| one.invariant == Invariant::BoundedBlock.number())
}

fn details(plan: &Plan, scenario: &ScenarioEvidence, drawing: &Drawing) -> Vec<String> {
    let mut details = vec![scenario.id.summary().to_owned()];
    if let (Some(on), Verdict::Violated) = (&scenario.on, scenario.verdict) {
        details.push(drawing.story(scenario));
        let broken: Vec<String> = on.violated.iter().flatten().map(rule).collect();
        details.push(format!("broken with the guard in force: {}", broken.join(", ")));
        if on.violated.iter().flatten().any(lets_late_writes_in) {
            details.push(LET_IN.to_owned());
        }
        return details.iter().map(|detail| wrap::short_ids(detail)).collect();
    }
    if let Some(why) = &scenario.why {
        details.push(format!("because: {why}"));
    }
    if let Some(on) = &scenario.on {
        match (&on.outcome, &on.refusal) {
            (outcome, Some(refusal)) => {
                let outcome = outcome.as_deref().unwrap_or("refused");
                details.push(format!("guarded: {outcome}, {}", refused(refusal)));
            }
            (Some(outcome), None) => details.push(format!("guarded: {outcome}")),
            (None, None) => {}
        }
    }
    if let Some(defeated) = &scenario.defeated {
        let how = match plan.halves {
            Halves::DefeatedOnly if scenario.id.defeats_the_guard() => "unfenced".to_owned(),
            _ => format!("without {}", scenario.id.left_out()),
        };
        let broken: Vec<String> = defeated.violated.iter().flatten().map(rule).collect();
        let seen = defeated.corruption.as_deref().unwrap_or("it went wrong");
        match broken.is_empty() {
            true => details.push(format!("{how}: nothing was seen to break")),
            false => details.push(format!("{how}: {seen}, against {}", broken.join(", "))),
        }
    }
    details.iter().map(|detail| wrap::short_ids(detail)).collect()
}

/// What to look at when a late write was let in with the guard in force.
const LET_IN: &str = "look whether every write calls fence.admit first, with the request's own token, in the transaction that writes; \
                      then at fence.admit itself, in guard_sql";

fn lets_late_writes_in(broken: &InvariantBroken) -> bool {
    use Invariant::{DelayedPacket, Order, RealTimeRefusal};
    [Order, RealTimeRefusal, DelayedPacket]
        .iter()
        .any(|one| one.number() == broken.invariant)
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

/// `rule 2 (real-time refusal)`.
fn rule(broken: &InvariantBroken) -> String {
    match broken.invariant {
        Some(number) => format!("rule {number} ({})", broken.name),
        None => broken.name.clone(),
    }
}

/// `1 scenario`, `2 scenarios`.
pub(super) fn scenarios(count: usize) -> String {
    match count {
        1 => "1 scenario".to_owned(),
        _ => format!("{count} scenarios"),
    }
}

/// What a proven scenario has shown.
const REFUSED: &str = "the late write was refused, and the same schedule without the guard went wrong";

/// The scenarios in whose twins the guard is in force, in words.
fn guarded_twins(evidence: &Evidence) -> String {
    let twins = evidence
        .scenarios
        .iter()
        .filter(|one| !one.id.defeats_the_guard());
    let twins = twins.map(|one| {
        let (id, left_out) = (one.id, one.id.left_out());
        format!(" {id} was run with the guard, and without {left_out}.")
    });
    twins.collect()
}

/// How many controls held, in words. They count apart: a control proves nothing.
fn controls(evidence: &Evidence) -> String {
    let controls = || evidence.scenarios.iter().filter(|one| one.id.is_control());
    let held = controls().filter(|one| one.verdict == Verdict::Held).count();
    match controls().count() {
        0 => String::new(),
        1 if held == 1 => " 1 control held.".to_owned(),
        all => format!(" {held} of {all} controls held."),
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
    let count_of_pairs = |verdict| {
        let pairs = evidence.scenarios.iter().filter(|one| !one.id.is_control());
        pairs.filter(|one| one.verdict == verdict).count()
    };
    match plan.halves {
        Halves::Pair => {
            let proven = count(Verdict::Proven);
            let all = all
                - evidence
                    .scenarios
                    .iter()
                    .filter(|one| one.id.is_control())
                    .count();
            let how = match proven {
                0 => String::new(),
                _ if proven < all => format!(": in {proven} {REFUSED}"),
                _ => format!(": {REFUSED}"),
            };
            if all == 0 {
                return format!("No scenario was run that proves anything.{}", controls(evidence));
            }
            format!(
                "{proven} of {} proven{how}.{} {} violated, {} inconclusive.",
                scenarios(all),
                controls(evidence),
                count_of_pairs(Verdict::Violated),
                count_of_pairs(Verdict::Inconclusive)
            )
        }
        Halves::GuardedOnly => format!(
            "{} of {} held with the guard in force, {} violated, {} inconclusive. Nothing is proven by this: it looks for false \
             alarms.",
            count(Verdict::Held),
            scenarios(all),
            count(Verdict::Violated),
            count(Verdict::Inconclusive)
        ),
        Halves::DefeatedOnly => format!(
            "{} of {} without the guard went wrong.{} Nothing is proven by this: it is what the guard is for.",
            count(Verdict::Violated),
            scenarios(all),
            guarded_twins(evidence)
        ),
    }
}
