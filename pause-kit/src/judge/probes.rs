//! The probes: questions beside the scenario, each with one right answer.

use super::facts::{Facts, Seen};
use super::said::{Fence, Said, is_cut_short, of_probe};
use super::verdict::{Invariant, Violation};
use crate::history::{Half, Probe, ProbeKind, Reply};

/// What a probe must get.
enum Right {
    Applied,
    Refused(Fence),
    Blocked,
    RefusedOr40001,
}

/// The violations that the probes show, and why they show nothing where they do not.
pub(super) fn check(facts: &Facts<'_>) -> (Vec<Violation>, Vec<String>) {
    let (mut found, mut doubts) = (Vec::new(), Vec::new());
    for probe in &facts.probes {
        match judge(probe) {
            Ok(()) => {}
            Err(Fault::Broken(invariant, why)) => found.push(Violation::new(invariant, why, &[probe.line])),
            Err(Fault::Doubt(why)) => doubts.push(why),
        }
    }
    (found, doubts)
}

/// Probes that every guarded half must carry and that are not there.
pub(super) fn missing(facts: &Facts<'_>) -> Vec<ProbeKind> {
    let needed = match facts.run.half {
        Half::Defeated => &[],
        Half::Guarded => ProbeKind::always_asked(facts.run.guard),
    };
    let carried = |kind: &&ProbeKind| facts.probes.iter().any(|probe| probe.body.probe == **kind);
    needed.iter().filter(|kind| !carried(kind)).copied().collect()
}

enum Fault {
    Broken(Invariant, String),
    Doubt(String),
}

fn judge(probe: &Seen<'_, Probe>) -> Result<(), Fault> {
    let body = probe.body;
    let (right, if_accepted, what) = expected(body.probe);
    let said = of_probe(body);
    let broken =
        |invariant, why: String| Err(Fault::Broken(invariant, format!("{what} on {} {why}", body.key)));
    let code = sqlstate(body);
    // Probes that must be refused are put to the database at READ COMMITTED, where nothing fails to serialize: 40001 is then
    // the guard's own word, and it invites the retry that a refusal must not get.
    let retry =
        matches!((&right, &body.reply), (Right::Refused(_), Reply::Sql { .. })) && code == Some("40001");
    let cut_short = !retry && code.is_some_and(is_cut_short);
    match (right, said) {
        (Right::Applied, Said::Blocked) if matches!(body.probe, ProbeKind::Unheld | ProbeKind::Observed) => {
            broken(
                if_accepted,
                "was kept waiting for the holder of another".to_owned(),
            )
        }
        // Whoever waits for the other gets this from the server, or meets the guard's bound.
        (Right::Applied, Said::Blocked | Said::Failed)
            if body.probe == ProbeKind::Crossed && matches!(code, Some("40P01" | "55P03")) =>
        {
            broken(if_accepted, "and the other one waited for each other".to_owned())
        }
        (Right::Applied, Said::Declined | Said::Failed)
            if matches!(
                body.probe,
                ProbeKind::Bounds | ProbeKind::Durable | ProbeKind::WrittenDown
            ) && !cut_short =>
        {
            broken(if_accepted, "was not as it must be".to_owned())
        }
        (Right::Applied, Said::Accepted) | (Right::Blocked, Said::Blocked) => Ok(()),
        (Right::Applied, Said::Fenced(fence)) => broken(
            Invariant::NoSpuriousRefusal,
            format!("was refused ({})", fence.name()),
        ),
        // Another definite answer than the fence's own is a refusal all the same.
        (Right::Applied, Said::Declined | Said::Failed) if !cut_short => {
            broken(Invariant::NoSpuriousRefusal, "was not applied".to_owned())
        }
        // The resource hid behind a 500, but the path shows that the database had refused.
        (Right::Applied, Said::Unknown) if code.is_some() && !cut_short => broken(
            Invariant::NoSpuriousRefusal,
            format!("was refused with {}", code.unwrap_or_default()),
        ),
        (Right::Refused(_) | Right::Blocked | Right::RefusedOr40001, Said::Accepted | Said::Stored) => {
            broken(if_accepted, "was accepted".to_owned())
        }
        // The kit itself cuts a question short, and only when the bound has long passed.
        (_, Said::Failed) if code == Some("57014") => broken(
            Invariant::BoundedBlock,
            "was kept waiting beyond the bound".to_owned(),
        ),
        (Right::RefusedOr40001, Said::Fenced(_)) => Ok(()),
        (Right::RefusedOr40001, Said::Failed) if code == Some("40001") => Ok(()),
        (Right::Refused(fence), _) if is_exact(body, fence) => Ok(()),
        (Right::Refused(fence), Said::Fenced(_)) => broken(
            Invariant::Reason,
            format!("was not refused exactly as {}: {:?}", fence.name(), body.reply),
        ),
        (Right::Refused(fence), Said::Declined | Said::Failed) if !cut_short => broken(
            Invariant::Reason,
            format!("was not refused as {}: {:?}", fence.name(), body.reply),
        ),
        // Hidden in the same way, with the wrong code.
        (Right::Refused(fence), _) if code.is_some() && !cut_short => broken(
            Invariant::Reason,
            format!(
                "was refused with {}, not as {}",
                code.unwrap_or_default(),
                fence.name()
            ),
        ),
        _ => Err(Fault::Doubt(format!(
            "{what} on {} shows nothing: {:?}",
            body.key, body.reply
        ))),
    }
}

/// Whether a refusal is the one that this kind of fault gets, by status and code, and by both numbers where it is stale.
fn is_exact(probe: &Probe, fence: Fence) -> bool {
    let code = match fence {
        Fence::Stale => "ZF001",
        Fence::Missing => "ZF002",
        Fence::Malformed => "ZF003",
        Fence::Collision => "ZF004",
        Fence::UnknownEpoch => "ZF005",
        Fence::WrongKey => "ZF006",
        Fence::UnknownClass => "ZF007",
        Fence::HistoryInDoubt => "ZF008",
    };
    match &probe.reply {
        Reply::Http { status, .. } => {
            let right = match fence {
                Fence::Missing => 428,
                Fence::Malformed => 400,
                Fence::Stale | Fence::Collision => 412,
                Fence::UnknownEpoch => 409,
                Fence::WrongKey | Fence::UnknownClass | Fence::HistoryInDoubt => return false,
            };
            let said = of_probe(probe) == Said::Fenced(fence);
            let code_fits = probe.sqlstate.as_deref().is_none_or(|seen| seen == code);
            *status == right && said && code_fits && detail_fits(probe)
        }
        Reply::Sql { sqlstate, detail, .. } => {
            let text = fence == Fence::Malformed && probe.probe == ProbeKind::Malformed;
            let code = if text { "22P02" } else { code };
            sqlstate.as_deref() == Some(code) && (fence != Fence::Stale || *detail == Some(named(probe)))
        }
    }
}

/// The DETAIL of a stale refusal.
fn numbers(probe: &Probe) -> String {
    let presented = probe.presented.token.as_deref().unwrap_or_default();
    let seen = probe.seen.map(|seen| seen.to_string()).unwrap_or_default();
    format!("presented {presented}, seen {seen}")
}

/// The same, with the key that it is about where there are several.
fn named(probe: &Probe) -> String {
    match probe.probe {
        ProbeKind::StaleBatch => format!("{}, class {}, key '{}'", numbers(probe), probe.class, probe.key),
        _ => numbers(probe),
    }
}

/// Whether the database was given the token that was presented to the resource, as far as its DETAIL tells: a resource that
/// reads tokens as doubles presents another.
fn detail_fits(probe: &Probe) -> bool {
    let Some(detail) = &probe.detail else {
        return true;
    };
    if probe.seen.is_some() {
        return *detail == numbers(probe);
    }
    let named = ["presented ", "token "]
        .iter()
        .find_map(|word| detail.strip_prefix(word));
    named.is_none_or(|rest| rest.split(',').next() == probe.presented.token.as_deref())
}

fn sqlstate(probe: &Probe) -> Option<&str> {
    match &probe.reply {
        Reply::Sql { sqlstate, .. } => sqlstate.as_deref(),
        Reply::Http { .. } => probe.sqlstate.as_deref(),
    }
}

/// The right answer, the invariant that any other breaks where the answer does not tell, and the probe in words.
fn expected(kind: ProbeKind) -> (Right, Invariant, &'static str) {
    use Invariant as I;
    let applied = |what| (Right::Applied, I::NoSpuriousRefusal, what);
    let refused = |fence, invariant, what| (Right::Refused(fence), invariant, what);
    match kind {
        ProbeKind::Bystander => applied("an older token where nothing newer was"),
        ProbeKind::OtherClass => applied("an older token in another class"),
        ProbeKind::EqualAgain => applied("the mark's own token and grant once more"),
        ProbeKind::Prepare => applied("a first or larger token"),
        ProbeKind::Larger => applied("a larger token"),
        ProbeKind::RolledBack => applied("a larger token that was to be rolled back"),
        ProbeKind::AfterRollback => applied("a smaller token after a rolled back one"),
        ProbeKind::Smaller => refused(Fence::Stale, I::Order, "a smaller token after a larger one"),
        ProbeKind::Collision => refused(
            Fence::Collision,
            I::Identity,
            "the mark's token with another grant",
        ),
        ProbeKind::OutsideRange => refused(
            Fence::UnknownEpoch,
            I::Identity,
            "a token outside every registered range",
        ),
        ProbeKind::MissingToken => refused(Fence::Missing, I::Identity, "a claim without a token"),
        ProbeKind::MissingGrant => refused(Fence::Missing, I::Identity, "a claim without a grant id"),
        ProbeKind::BelowOne => refused(Fence::Malformed, I::Identity, "a token below 1"),
        ProbeKind::Malformed => refused(Fence::Malformed, I::Identity, "a text that is no token"),
        ProbeKind::UnknownClass => {
            refused(Fence::UnknownClass, I::Identity, "a claim of an undeclared class")
        }
        ProbeKind::Raise => applied("a raise with a larger token"),
        ProbeKind::StaleRaise => refused(
            Fence::Stale,
            I::Order,
            "a raise with a smaller token after a larger one",
        ),
        ProbeKind::CollidingRaise => refused(
            Fence::Collision,
            I::Identity,
            "a raise with the mark's token and another grant",
        ),
        ProbeKind::RaiseOutsideRange => refused(
            Fence::UnknownEpoch,
            I::Identity,
            "a raise with a token outside every registered range",
        ),
        ProbeKind::RaiseWithoutToken => refused(Fence::Missing, I::Identity, "a raise without a token"),
        ProbeKind::HeldToTheEnd => (
            Right::Blocked,
            I::DelayedPacket,
            "a larger admission beside an uncommitted one",
        ),
        ProbeKind::BoundedWait => (
            Right::Blocked,
            I::DelayedPacket,
            "a larger admission beside an uncommitted one, without a bound of its own,",
        ),
        ProbeKind::Unheld => (
            Right::Applied,
            I::BoundedBlock,
            "a token of a key that nobody holds",
        ),
        ProbeKind::Bounds => (
            Right::Applied,
            I::BoundedBlock,
            "the bounds of a transaction that admitted",
        ),
        ProbeKind::Durable => (
            Right::Applied,
            I::DurableMark,
            "the commit of a transaction that admitted",
        ),
        ProbeKind::Admitted => applied("an admitted write"),
        ProbeKind::Forgotten => refused(
            Fence::Missing,
            I::RealTimeRefusal,
            "a late write that forgot its admission",
        ),
        ProbeKind::WrongKey => refused(
            Fence::WrongKey,
            I::RealTimeRefusal,
            "a late write that admitted another key",
        ),
        ProbeKind::Observed => (
            Right::Applied,
            I::BoundedBlock,
            "a write that is only observed, beside another",
        ),
        ProbeKind::Switch => (
            Right::Blocked,
            I::DelayedPacket,
            "the switch to enforcement beside an uncommitted write that was let through",
        ),
        ProbeKind::WrittenDown => (Right::Applied, I::Identity, "the record of what was let through"),
        ProbeKind::Crossed => (
            Right::Applied,
            I::BoundedBlock,
            "one of two batches in opposite orders",
        ),
        ProbeKind::StaleBatch => refused(Fence::Stale, I::Order, "a batch with a smaller token in it"),
        ProbeKind::Stopped => refused(
            Fence::HistoryInDoubt,
            I::DurableMark,
            "an admission while all are stopped",
        ),
        ProbeKind::OldSnapshot => (
            Right::RefusedOr40001,
            I::Linearizable,
            "a larger admission in a snapshot from before its predecessor's commit",
        ),
    }
}
