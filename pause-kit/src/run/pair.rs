//! The verdict over a pair of halves.

use crate::evidence::StopEvidence;
use crate::evidence::{InvariantBroken, Verdict};
use crate::history::{Event, Half as HalfKind, History};
use crate::judge::{self, Invariant, Judgement, Violation};
use crate::scenario::{Finished, ScenarioId};

/// A half with the judge's word on it.
pub(crate) struct Judged {
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

    /// A history that was read again. What stopped the kit is not in it.
    pub(crate) fn again(history: History) -> Judged {
        Judged {
            half: history.run().half,
            judgement: judge::judge(&history),
            history,
            stops: Vec::new(),
            trouble: None,
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

    /// How many writes were let in late.
    fn late(&self) -> usize {
        let late = |broken: &&Violation| {
            matches!(
                broken.invariant,
                Invariant::RealTimeRefusal | Invariant::DelayedPacket
            )
        };
        self.judgement.violations.iter().filter(late).count()
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
            (HalfKind::Guarded, judge::Verdict::Void(why)) if scenario.must_be_void() => {
                let mut events = self.history.events();
                let unstopped = events.any(|(_, _, event)| matches!(event, Event::Unstopped(_)));
                match unstopped {
                    true => None,
                    false => inconclusive(format!("void, but not for what it must be: {why}")),
                }
            }
            (HalfKind::Guarded, judge::Verdict::Held) if scenario.must_be_void() => {
                inconclusive("it counts, though it must be void".to_owned())
            }
            (HalfKind::Guarded, judge::Verdict::Held) => None,
            (HalfKind::Guarded, other) => inconclusive(other.to_string()),
            (HalfKind::Defeated, _) if !predicted(scenario).iter().any(|one| self.judgement.breaks(*one)) => {
                inconclusive(format!(
                    "blind: without {} nothing was seen to break that must{}",
                    scenario.left_out(),
                    self.trouble
                        .as_ref()
                        .map(|why| format!("; {why}"))
                        .unwrap_or_default()
                ))
            }
            (HalfKind::Defeated, _)
                if scenario == ScenarioId::S08 && self.late() < self.history.run().attempts.len() =>
            {
                inconclusive(format!(
                    "blind: without the guard {} of {} were let in",
                    self.late(),
                    self.history.run().attempts.len()
                ))
            }
            // The guard is in force there: it must hold whatever the holder leaves out.
            (HalfKind::Defeated, _) if !scenario.defeats_the_guard() => {
                let mut violations = self.judgement.violations.iter();
                let more = violations.find(|violation| !predicted(scenario).contains(&violation.invariant));
                more.map(|violation| (Verdict::Violated, format!("with the guard in force, {violation}")))
            }
            (HalfKind::Defeated, _) => None,
        }
    }
}

/// The verdict over the halves of one scenario, and why, where it is not proven.
pub(super) fn verdict<'a>(
    scenario: ScenarioId,
    halves: impl IntoIterator<Item = &'a Judged>,
) -> (Verdict, Option<String>) {
    let halves: Vec<&Judged> = halves.into_iter().collect();
    if let [half] = halves[..] {
        // The defeated half alone corrupts, or nothing was shown. The guarded one alone held, and that proves nothing.
        return match (half.flaw(scenario), half.half) {
            (Some((verdict, why)), _) => (verdict, Some(why)),
            (None, HalfKind::Defeated) => (Verdict::Violated, None),
            (None, HalfKind::Guarded) => (Verdict::Held, None),
        };
    }
    let flaws = halves.iter().filter_map(|half| half.flaw(scenario));
    // Violated beats inconclusive, and the guarded half's reason is the one to be told.
    match flaws.max_by_key(|(verdict, _)| *verdict) {
        Some((verdict, why)) => (verdict, Some(why)),
        None => (Verdict::Proven, None),
    }
}

/// What the same schedule must break without the guard, or what else is left out; any one of them.
fn predicted(scenario: ScenarioId) -> &'static [Invariant] {
    match scenario {
        ScenarioId::S01
        | ScenarioId::S02
        | ScenarioId::S03
        | ScenarioId::S09
        | ScenarioId::S15
        | ScenarioId::S17
        | ScenarioId::S21
        | ScenarioId::S33
        | ScenarioId::S34
        | ScenarioId::S35
        | ScenarioId::S39
        | ScenarioId::S67
        | ScenarioId::S69
        | ScenarioId::S75 => &[Invariant::RealTimeRefusal],
        ScenarioId::S04 | ScenarioId::S04b => &[Invariant::LostUpdate],
        ScenarioId::S12
        | ScenarioId::S16
        | ScenarioId::S18
        | ScenarioId::S25b
        | ScenarioId::S28
        | ScenarioId::S37
        | ScenarioId::S47
        | ScenarioId::S48
        | ScenarioId::S53
        | ScenarioId::S82 => &[],
        ScenarioId::S05 => &[Invariant::RealTimeRefusal, Invariant::DelayedPacket],
        ScenarioId::S07 | ScenarioId::S08 | ScenarioId::S24 | ScenarioId::S29 => &[Invariant::DelayedPacket],
        ScenarioId::S25 | ScenarioId::S26 => &[Invariant::BoundedBlock],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::history::{At, Attempt, Bounds, Clock, Exercise, GuardForm, Outcome, Run, Unstopped};

    fn broken(invariant: Invariant) -> judge::Verdict {
        judge::Verdict::Violated(violation(invariant))
    }

    fn violation(invariant: Invariant) -> Violation {
        Violation {
            invariant,
            why: "so".to_owned(),
            lines: Vec::new(),
        }
    }

    fn half(half: HalfKind, verdict: judge::Verdict) -> Judged {
        let run = Run {
            schema: Run::SCHEMA,
            scenario: "S02".to_owned(),
            class: "app.thing".to_owned(),
            key: "thing-1".to_owned(),
            half,
            seed: "1".to_owned(),
            clock: Clock::Monotonic,
            guard: GuardForm::Mark,
            exercise: Exercise::Stopped,
            bounds: Bounds {
                deadline_ns: 1,
                slack_ns: 1,
            },
            stale_grant: None,
            attempts: vec![Attempt::new("H1-write-1", Outcome::Refused)],
            deed: "done".to_owned(),
            opening: BTreeMap::new(),
        };
        let violations = match &verdict {
            judge::Verdict::Violated(violation) => vec![violation.clone()],
            _ => Vec::new(),
        };
        Judged {
            half,
            history: History::new(run, Vec::new()),
            judgement: Judgement {
                verdict,
                outcomes: vec![None],
                refusal: None,
                violations,
                corruption: None,
            },
            stops: Vec::new(),
            trouble: None,
        }
    }

    fn pair(on: judge::Verdict, defeated: judge::Verdict) -> (Verdict, Option<String>) {
        verdict(
            ScenarioId::S02,
            &[half(HalfKind::Guarded, on), half(HalfKind::Defeated, defeated)],
        )
    }

    #[test]
    fn a_pair_is_proven_only_when_the_guard_held_and_its_twin_broke_what_was_predicted() {
        use judge::Verdict as V;
        let predicted = || broken(Invariant::RealTimeRefusal);
        assert_eq!(pair(V::Held, predicted()), (Verdict::Proven, None));
        assert_eq!(
            pair(V::Inconclusive("so".to_owned()), predicted()).0,
            Verdict::Inconclusive
        );
        assert_eq!(
            pair(V::Void(violation(Invariant::Exercised)), predicted()).0,
            Verdict::Inconclusive
        );
        assert_eq!(
            pair(broken(Invariant::Identity), predicted()).0,
            Verdict::Violated
        );
    }

    #[test]
    fn a_twin_that_breaks_nothing_or_something_else_is_blind_and_not_a_pass() {
        for twin in [judge::Verdict::Held, broken(Invariant::Ledger)] {
            let (verdict, why) = pair(judge::Verdict::Held, twin);
            assert_eq!(verdict, Verdict::Inconclusive);
            assert!(why.unwrap().starts_with("blind"));
        }
    }

    #[test]
    fn a_sweep_whose_twin_lets_only_a_part_in_is_blind() {
        let twin = |late: usize| {
            let mut twin = half(HalfKind::Defeated, broken(Invariant::DelayedPacket));
            twin.judgement.violations = vec![violation(Invariant::DelayedPacket); late];
            let mut run = twin.history.run().clone();
            run.attempts = ["H1-write-1", "H1-write-2"]
                .map(|op| Attempt::new(op, Outcome::Refused))
                .into();
            twin.history = History::new(run, Vec::new());
            let halves = [half(HalfKind::Guarded, judge::Verdict::Held), twin];
            verdict(ScenarioId::S08, &halves)
        };
        assert_eq!(twin(2), (Verdict::Proven, None));
        let (verdict, why) = twin(1);
        assert_eq!(verdict, Verdict::Inconclusive);
        assert_eq!(why.unwrap(), "blind: without the guard 1 of 2 were let in");
    }

    #[test]
    fn violated_beats_blind() {
        assert_eq!(
            pair(broken(Invariant::Order), judge::Verdict::Held).0,
            Verdict::Violated
        );
    }

    #[test]
    fn a_half_that_stopped_early_is_no_proof_though_nothing_broke_and_none_the_less_violated_when_something_did()
     {
        let predicted = broken(Invariant::RealTimeRefusal);
        let mut early = half(HalfKind::Guarded, judge::Verdict::Held);
        early.trouble = Some("its write was answered did not come within 20 s".to_owned());
        let twin = half(HalfKind::Defeated, predicted.clone());
        let (verdict_then, why) = verdict(ScenarioId::S02, &[early, twin]);
        assert_eq!(verdict_then, Verdict::Inconclusive);
        assert!(why.unwrap().contains("within 20 s"));

        let mut early = half(HalfKind::Guarded, broken(Invariant::NoSpuriousRefusal));
        early.trouble = Some("H2 ended".to_owned());
        let twin = half(HalfKind::Defeated, predicted);
        assert_eq!(verdict(ScenarioId::S02, &[early, twin]).0, Verdict::Violated);
    }

    #[test]
    fn the_defeated_half_alone_corrupts_or_shows_nothing_and_never_proves() {
        let alone = |twin| verdict(ScenarioId::S02, &[half(HalfKind::Defeated, twin)]).0;
        assert_eq!(alone(broken(Invariant::RealTimeRefusal)), Verdict::Violated);
        assert_eq!(alone(judge::Verdict::Held), Verdict::Inconclusive);
    }

    #[test]
    fn a_run_that_must_be_void_holds_when_it_is_for_that_reason_alone() {
        let alone = |on, events: Vec<(At, Event)>| {
            let mut half = half(HalfKind::Guarded, on);
            half.history = History::new(half.history.run().clone(), events);
            verdict(ScenarioId::S16, &[half])
        };
        let void = || judge::Verdict::Void(violation(Invariant::Exercised));
        let unstopped = Event::from(Unstopped {
            target: "H1".to_owned(),
            pid: 1,
            tid: 1,
            state: 'D',
        });
        let tried = || vec![(At::from_nanos(1), unstopped.clone())];
        assert_eq!(alone(void(), tried()), (Verdict::Held, None));
        assert_eq!(alone(void(), Vec::new()).0, Verdict::Inconclusive);
        assert_eq!(alone(judge::Verdict::Held, tried()).0, Verdict::Inconclusive);
        assert_eq!(alone(broken(Invariant::Order), tried()).0, Verdict::Violated);
    }

    #[test]
    fn a_guarded_half_alone_holds_or_not_and_never_proves() {
        let alone = |on| verdict(ScenarioId::S18, &[half(HalfKind::Guarded, on)]).0;
        assert_eq!(alone(judge::Verdict::Held), Verdict::Held);
        assert_eq!(alone(broken(Invariant::NoSpuriousRefusal)), Verdict::Violated);
        let void = judge::Verdict::Void(violation(Invariant::Exercised));
        assert_eq!(alone(void), Verdict::Inconclusive);
    }

    #[test]
    fn a_twin_whose_guard_is_in_force_may_break_what_was_left_out_and_nothing_else() {
        let pair = |twin| {
            let halves = [half(HalfKind::Guarded, judge::Verdict::Held), twin];
            verdict(ScenarioId::S04b, &halves)
        };
        let lost = half(HalfKind::Defeated, broken(Invariant::LostUpdate));
        assert_eq!(pair(lost), (Verdict::Proven, None));
        let mut more = half(HalfKind::Defeated, broken(Invariant::LostUpdate));
        more.judgement.violations.push(violation(Invariant::Order));
        let (verdict, why) = pair(more);
        assert_eq!(verdict, Verdict::Violated);
        assert_eq!(why.unwrap(), "with the guard in force, 1 order: so");
        let (verdict, why) = pair(half(HalfKind::Defeated, judge::Verdict::Held));
        assert_eq!(verdict, Verdict::Inconclusive);
        assert!(why.unwrap().starts_with("blind: without raising the mark"));
    }
}
