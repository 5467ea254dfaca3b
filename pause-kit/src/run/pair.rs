//! The verdict over a pair of halves.

use crate::evidence::StopEvidence;
use crate::evidence::{InvariantBroken, Verdict};
use crate::history::{Half as HalfKind, History};
use crate::judge::{self, Invariant, Judgement};
use crate::scenario::{Finished, ScenarioId};

/// A half with the judge's word on it.
pub(super) struct Judged {
    pub(super) half: HalfKind,
    pub(super) history: History,
    pub(super) judgement: Judgement,
    pub(super) stops: Vec<StopEvidence>,
    /// Why the half was over before its end.
    pub(super) trouble: Option<String>,
}

impl Judged {
    pub(super) fn of(half: HalfKind, finished: Finished) -> Judged {
        let judgement = judge::judge(&finished.history);
        Judged {
            half,
            judgement,
            history: finished.history,
            stops: finished.stops,
            trouble: finished.trouble.map(|trouble| crate::run::chain(&trouble)),
        }
    }

    /// What was broken, once each invariant.
    pub(super) fn broken(&self) -> Vec<InvariantBroken> {
        let mut broken: Vec<InvariantBroken> = Vec::new();
        for violation in &self.judgement.violations {
            let number = violation.invariant.number();
            if broken
                .iter()
                .any(|known| known.invariant == number && known.name == violation.invariant.name())
            {
                continue;
            }
            broken.push(InvariantBroken {
                invariant: number,
                name: violation.invariant.name().to_owned(),
                why: violation.why.clone(),
                lines: violation.lines.clone(),
            });
        }
        broken
    }

    /// Why this half is no part of a proof; nothing when it is one.
    fn flaw(&self, scenario: ScenarioId) -> Option<(Verdict, String)> {
        let inconclusive = |why: String| Some((Verdict::Inconclusive, why));
        match (self.half, &self.judgement.verdict) {
            (HalfKind::Guarded, judge::Verdict::Violated(violation)) => {
                Some((Verdict::Violated, violation.to_string()))
            }
            // A half that stopped early may look as if nothing was wrong: nothing was asked.
            (HalfKind::Guarded, _) if self.trouble.is_some() => inconclusive(self.trouble.clone()?),
            (HalfKind::Guarded, judge::Verdict::Held) => None,
            (HalfKind::Guarded, other) => inconclusive(other.to_string()),
            (HalfKind::Defeated, _) if predicted(scenario).iter().any(|one| self.judgement.breaks(*one)) => {
                None
            }
            (HalfKind::Defeated, _) => inconclusive(format!(
                "blind: without the guard nothing was seen to break{}",
                self.trouble
                    .as_ref()
                    .map(|why| format!("; {why}"))
                    .unwrap_or_default()
            )),
        }
    }
}

/// The verdict over the halves of one scenario, and why, where it is not proven.
pub(super) fn verdict(scenario: ScenarioId, halves: &[Judged]) -> (Verdict, Option<String>) {
    if let [half] = halves {
        // The defeated half alone: it corrupts, or nothing was shown.
        return match half.flaw(scenario) {
            Some((verdict, why)) => (verdict, Some(why)),
            None => (Verdict::Violated, None),
        };
    }
    let flaws = halves.iter().filter_map(|half| half.flaw(scenario));
    // Violated beats inconclusive, and the guarded half's reason is the one to be told.
    match flaws.max_by_key(|(verdict, _)| *verdict) {
        Some((verdict, why)) => (verdict, Some(why)),
        None => (Verdict::Proven, None),
    }
}

/// What the same schedule must break without the guard; any one of them.
fn predicted(scenario: ScenarioId) -> &'static [Invariant] {
    match scenario {
        ScenarioId::S01 | ScenarioId::S02 => &[Invariant::RealTimeRefusal],
        ScenarioId::S05 => &[Invariant::RealTimeRefusal, Invariant::DelayedPacket],
        ScenarioId::S07 => &[Invariant::DelayedPacket],
        ScenarioId::S26 => &[Invariant::BoundedBlock],
    }
}
