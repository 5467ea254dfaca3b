//! Whole histories, as a run makes them.

use pause_kit::history::{Event, Half, Outcome};
use pause_kit::judge::{Invariant, Verdict, judge};

use super::forms::{held, idle, late_send, queued, restarted_resource};
use super::tape::{NEW, OLD, Tape, ms};

#[test]
fn every_guarded_form_holds_with_its_outcome_and_its_refusal() {
    let forms: [(Tape, Outcome); 7] = [
        (late_send("S01", Half::Guarded), Outcome::Refused),
        (late_send("S02", Half::Guarded), Outcome::Refused),
        (queued(Half::Guarded, true), Outcome::Refused),
        (queued(Half::Guarded, false), Outcome::Refused),
        (held(Half::Guarded), Outcome::Refused),
        (restarted_resource(Half::Guarded), Outcome::Refused),
        (idle(Half::Guarded), Outcome::Blocked),
    ];
    for (tape, outcome) in forms {
        let scenario = tape.run.scenario.clone();
        let judgement = judge(&tape.history());
        assert_eq!(
            judgement.verdict,
            Verdict::Held,
            "{scenario}: {:#?}",
            judgement.violations
        );
        assert_eq!(judgement.outcomes, [Some(outcome)], "{scenario}");
        assert_eq!(judgement.corruption, None, "{scenario}");
        let refusal = judgement.refusal.unwrap();
        assert_eq!(refusal.presented.unwrap().number(), OLD, "{scenario}");
        assert_eq!(refusal.seen.unwrap().number(), NEW, "{scenario}");
        assert_eq!(refusal.sqlstate.as_deref(), Some("ZF001"), "{scenario}");
        assert_eq!(refusal.status, (scenario != "S26").then_some(412), "{scenario}");
    }
}

#[test]
fn every_defeated_form_shows_the_violation_that_its_scenario_predicts() {
    let late = Invariant::RealTimeRefusal;
    let delayed = Invariant::DelayedPacket;
    let forms: [(Tape, Invariant); 7] = [
        (late_send("S01", Half::Defeated), late),
        (late_send("S02", Half::Defeated), late),
        (queued(Half::Defeated, true), delayed),
        (queued(Half::Defeated, false), delayed),
        (held(Half::Defeated), delayed),
        (restarted_resource(Half::Defeated), late),
        (idle(Half::Defeated), Invariant::BoundedBlock),
    ];
    for (tape, predicted) in forms {
        let scenario = tape.run.scenario.clone();
        let judgement = judge(&tape.history());
        assert!(
            judgement.breaks(predicted),
            "{scenario}: {:#?}",
            judgement.violations
        );
        assert!(
            !judgement.breaks(Invariant::Agreement),
            "{scenario}: {:#?}",
            judgement.violations
        );
        assert_eq!(judgement.outcome(), None, "{scenario}");
        // Everything else that is broken follows from the same late write.
        let follows = [
            Invariant::Order,
            late,
            delayed,
            Invariant::Contiguity,
            Invariant::Linearizable,
            Invariant::LostUpdate,
            predicted,
        ];
        for violation in &judgement.violations {
            assert!(follows.contains(&violation.invariant), "{scenario}: {violation}");
        }
    }
}

#[test]
fn the_corruption_is_named_in_plain_words() {
    let judgement = judge(&late_send("S02", Half::Defeated).history());
    assert_eq!(
        judgement.corruption.unwrap(),
        format!(
            "order-7 was refunded twice: by H2 (grant g2, token {NEW}) and, late, by H1 (grant g1, token {OLD})"
        )
    );
    let judgement = judge(&queued(Half::Defeated, true).history());
    assert_eq!(
        judgement.corruption.unwrap(),
        format!(
            "order-7 was refunded twice: by H1 (grant g1, token {OLD}), late, and by H2 (grant g2, token {NEW})"
        )
    );
    let judgement = judge(&idle(Half::Defeated).history());
    assert_eq!(
        judgement.corruption.unwrap(),
        format!(
            "H2-1 of H2 (grant g2, token {NEW}) was kept waiting for 9.000 s; the bound with its slack is 2.500 s"
        )
    );
}

#[test]
fn a_violation_names_the_lines_that_show_it() {
    let tape = late_send("S02", Half::Defeated);
    let history = tape.history();
    let Verdict::Violated(first) = judge(&history).verdict else {
        panic!("the late write was not seen")
    };
    assert_eq!(first.invariant, Invariant::Order);
    let shown: Vec<String> = history
        .events()
        .filter(|(line, ..)| first.lines.contains(line))
        .map(|(_, _, event)| serde_json::to_string(event).unwrap())
        .collect();
    assert!(shown.len() == 2 && shown[1].contains("g1:1"), "{shown:?}");
}

#[test]
fn a_history_with_fifty_thousand_reads_is_judged_like_a_short_one() {
    let mut tape = late_send("S01", Half::Guarded);
    let (at, read) = tape
        .events
        .iter()
        .find(|(_, event)| matches!(event, Event::Read(read) if read.by == "kit"))
        .cloned()
        .unwrap();
    let again = (0..50_000).map(|_| (at, read.clone()));
    tape.events.extend(again);
    assert_eq!(judge(&tape.history()).verdict, Verdict::Held);
}

#[test]
fn an_answer_before_its_request_is_still_told_to_be_its_own() {
    let mut tape = late_send("S02", Half::Guarded);
    for (at, event) in &mut tape.events {
        if matches!(event, Event::Answer(answer) if answer.op.as_str() == "H2-write") {
            *at = ms(20);
        }
    }
    let verdict = judge(&tape.history()).verdict;
    let Verdict::Void(why) = verdict else {
        panic!("{verdict:?}")
    };
    assert!(why.to_string().contains("answered before it begins"), "{why}");
}
