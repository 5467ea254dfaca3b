//! Good histories of the scenarios in which the path itself sends a request, and what is void in them.

use pause_kit::history::{
    Alteration, Attempt, Cause, Event, Exercise, Half, Hold, Op, Outcome, Relay, Reply,
};
use pause_kit::judge::{Invariant as I, Verdict, judge};

use super::mutants::{broken, edit, is_answer, remove, request, violated, void};
use super::takeovers::{begin, committed, end, late, late_commit, write};
use super::tape::{NEW, OLD, Tape, http, ms};

/// S09: the first write had landed, the second is lost; both come again after the takeover.
pub(crate) fn replayed(half: Half) -> Tape {
    let mut tape = begin("S09", half, Exercise::Replayed);
    tape.run.attempts = vec![
        Attempt::new("H1-write-3", Outcome::Legal),
        Attempt::new("H1-write-4", Outcome::Refused),
    ];
    write(&mut tape, "H1-write-1", "g1:1", 5);
    body(&mut tape, "H1-write-1", "aa");
    lost(&mut tape, "H1-write-2", "g1:2", 10);
    taken_over(&mut tape, &["g1:1"], "g2:2");
    relay(&mut tape, 40, "H1-write-3", "H1-write-1", Alteration::Nothing);
    tape.request("H1-write-3", "g1", Some("g1:1"), 41, 41)
        .answer("H1-write-3", 43, known());
    body(&mut tape, "H1-write-3", "aa");
    relay(&mut tape, 44, "H1-write-4", "H1-write-2", Alteration::Nothing);
    late(&mut tape, "H1-write-4", "g1:2", 45, "g2");
    let shown: &[&str] = match half {
        Half::Guarded => &["g1:1", "g2:2"],
        Half::Defeated => &["g1:1", "g2:2", "g1:2"],
    };
    tape.read("kit", 50, shown);
    tape.admission(10, "acct-1", "g1", OLD);
    committed(&mut tape, 11, "g1", "g1:1");
    tape.admission(12, "acct-1", "g2", NEW);
    committed(&mut tape, 13, "g2", "g2:2");
    late_commit(&mut tape, 14, "g2", "g1:2");
    end(&mut tape, &["g1:1", "g2:2"], &["g1:2"], "g2");
    tape
}

/// S39, S67 and S69: the write is lost, and comes with another claim.
pub(crate) fn altered(scenario: &str, half: Half) -> Tape {
    let (how, expected, answer) = match scenario {
        "S39" => (
            Alteration::EqualToken,
            Outcome::Conflict,
            http(412, Some("collision")),
        ),
        "S67" => (
            Alteration::Twice,
            Outcome::Closed,
            http(400, Some("more-than-one")),
        ),
        _ => (
            Alteration::Stripped,
            Outcome::Closed,
            http(428, Some("missing-token")),
        ),
    };
    let mut tape = begin(scenario, half, Exercise::Altered { how });
    tape.run.attempts = vec![Attempt::new("H1-write-2", expected)];
    if scenario == "S67" {
        let more = ["H1-write-3", "H1-write-4"].map(|op| Attempt::new(op, expected));
        tape.run.attempts.extend(more);
    }
    lost(&mut tape, "H1-write-1", "g1:1", 10);
    taken_over(&mut tape, &[], "g2:1");
    let sent = match half {
        Half::Guarded => tape.run.attempts.len() as u64,
        Half::Defeated => 1,
    };
    for number in 0..sent {
        let (op, at) = (format!("H1-write-{}", number + 2), 40 + 4 * number);
        let as_it_was = half == Half::Defeated && scenario != "S39";
        let done = if as_it_was { Alteration::Nothing } else { how };
        relay(&mut tape, at, &op, "H1-write-1", done);
        tape.request(&op, "g1", Some("g1:1"), at + 1, at + 1);
        request(&mut tape, &op, |request| {
            let claim = &mut request.presented;
            match done {
                Alteration::Twice => claim.token = Some(format!("{OLD}, {NEW}")),
                Alteration::EqualToken => claim.token = Some(NEW.to_string()),
                Alteration::Stripped => *claim = Default::default(),
                _ => {}
            }
        });
        let reply = if half == Half::Guarded {
            answer.clone()
        } else {
            http(201, None)
        };
        tape.answer(&op, at + 3, reply);
    }
    let shown: &[&str] = match half {
        Half::Guarded => &["g2:1"],
        Half::Defeated => &["g2:1", "g1:1"],
    };
    tape.read("kit", 54, shown);
    tape.admission(10, "acct-1", "g1", OLD)
        .admission(11, "acct-1", "g2", NEW);
    committed(&mut tape, 12, "g2", "g2:1");
    late_commit(&mut tape, 13, "g2", "g1:1");
    end(&mut tape, &["g2:1"], &["g1:1"], "g2");
    tape
}

/// S37: the first of two writes once more, between the two.
pub(crate) fn repeated() -> Tape {
    let mut tape = control("S37", Exercise::Repeated);
    tape.run.attempts = ["H1-write-2", "H1-write-3"]
        .map(|op| Attempt::new(op, Outcome::Legal))
        .into();
    write(&mut tape, "H1-write-1", "g1:1", 10);
    body(&mut tape, "H1-write-1", "aa");
    relay(&mut tape, 20, "H1-write-2", "H1-write-1", Alteration::Nothing);
    tape.request("H1-write-2", "g1", Some("g1:1"), 21, 21)
        .answer("H1-write-2", 23, known());
    body(&mut tape, "H1-write-2", "aa");
    tape.read("kit", 25, &["g1:1"]);
    write(&mut tape, "H1-write-3", "g1:2", 30);
    tape.lease_end(35, "g1", Cause::Released);
    tape.admission(10, "acct-1", "g1", OLD);
    committed(&mut tape, 11, "g1", "g1:1");
    committed(&mut tape, 12, "g1", "g1:2");
    end(&mut tape, &["g1:1", "g1:2"], &[], "g1");
    tape
}

/// S47 and S48: two forms that hold no token, while the write itself is held; then that goes on.
pub(crate) fn closed(scenario: &str) -> Tape {
    let (how, answer) = match scenario {
        "S47" => (Alteration::Malformed, http(400, Some("malformed"))),
        _ => (Alteration::Missing, http(428, Some("missing-token"))),
    };
    let mut tape = control(scenario, Exercise::Closed { how });
    tape.run.attempts = vec![
        Attempt::new("H1-write-2", Outcome::Closed),
        Attempt::new("H1-write-3", Outcome::Closed),
        Attempt::new("H1-write-1", Outcome::Legal),
    ];
    tape.request("H1-write-1", "g1", Some("g1:1"), 10, 40);
    hold(&mut tape, "H1-write-1", 10, Some(40));
    for (op, at) in [("H1-write-2", 20), ("H1-write-3", 24)] {
        relay(&mut tape, at, op, "H1-write-1", how);
        tape.request(op, "g1", Some("g1:1"), at + 1, at + 1)
            .answer(op, at + 3, answer.clone());
        request(&mut tape, op, |request| {
            let claim = &mut request.presented;
            match how {
                Alteration::Malformed => claim.token = Some(format!("+{OLD}")),
                _ => claim.grant = None,
            }
        });
    }
    tape.read("kit", 30, &[])
        .answer("H1-write-1", 43, http(201, None));
    tape.lease_end(45, "g1", Cause::Released);
    tape.admission(10, "acct-1", "g1", OLD);
    committed(&mut tape, 11, "g1", "g1:1");
    end(&mut tape, &["g1:1"], &[], "g1");
    tape
}

fn control(scenario: &str, exercise: Exercise) -> Tape {
    let mut tape = begin(scenario, Half::Guarded, exercise);
    tape.run.stale_grant = None;
    tape
}

fn relay(tape: &mut Tape, at: u64, op: &str, of: &str, how: Alteration) {
    let (op, of) = (Op::new(op), Op::new(of));
    tape.push(at, Relay { op, of, how });
}

fn hold(tape: &mut Tape, op: &str, at: u64, released: Option<u64>) {
    let (op, byte, released) = (Op::new(op), 0, released.map(ms));
    tape.push(
        at,
        Hold {
            op,
            byte,
            length: None,
            released,
        },
    );
}

/// A write that is held whole and then cut off.
fn lost(tape: &mut Tape, op: &str, id: &str, at: u64) {
    tape.request(op, "g1", Some(id), at, at);
    request(tape, op, |request| request.sent = None);
    hold(tape, op, at, None);
    let (op, why) = (Op::new(op), "its connection was cut off on the path".to_owned());
    tape.push(39, pause_kit::history::Unanswered { op, why });
}

/// H2 comes, raises, reads and writes; the kit reads.
fn taken_over(tape: &mut Tape, shown: &[&str], id: &str) {
    tape.lease_end(15, "g1", Cause::Revoked).grant(16, "H2", "g2");
    tape.raise("H2-raise-1", "g2", 17).read("H2", 19, shown);
    write(tape, "H2-write-1", id, 21);
    tape.read("kit", 30, &[shown, &[id]].concat());
}

/// The stored answer.
fn known() -> Reply {
    Reply::Http {
        status: 201,
        problem: None,
        stored: true,
    }
}

fn body(tape: &mut Tape, op: &str, digest: &str) {
    edit(tape, |event| match event {
        Event::Answer(answer) if answer.op == Op::new(op) => {
            answer.body = Some(digest.to_owned());
            true
        }
        _ => false,
    });
}

#[test]
fn every_form_holds_with_the_outcome_of_each_attempt() {
    for (tape, outcome) in [
        (replayed(Half::Guarded), "LEG; REF"),
        (altered("S39", Half::Guarded), "CON"),
        (altered("S67", Half::Guarded), "CLO; CLO; CLO"),
        (altered("S69", Half::Guarded), "CLO"),
        (repeated(), "LEG; LEG"),
        (closed("S47"), "CLO; CLO; LEG"),
        (closed("S48"), "CLO; CLO; LEG"),
    ] {
        let scenario = tape.run.scenario.clone();
        let judgement = judge(&tape.history());
        let violations = &judgement.violations;
        assert_eq!(judgement.verdict, Verdict::Held, "{scenario}: {violations:#?}");
        assert_eq!(judgement.outcome().as_deref(), Some(outcome), "{scenario}");
    }
}

#[test]
fn every_twin_shows_the_late_write() {
    for tape in [
        replayed(Half::Defeated),
        altered("S39", Half::Defeated),
        altered("S67", Half::Defeated),
        altered("S69", Half::Defeated),
    ] {
        let scenario = tape.run.scenario.clone();
        let judgement = judge(&tape.history());
        let violations = &judgement.violations;
        assert!(
            judgement.breaks(I::RealTimeRefusal),
            "{scenario}: {violations:#?}"
        );
        assert!(!judgement.breaks(I::Agreement), "{scenario}: {violations:#?}");
        let void = violations.iter().any(|one| one.invariant == I::Exercised);
        assert!(!void, "{scenario}: {violations:#?}");
    }
}

#[test]
fn one_id_has_one_answer_letter_for_letter() {
    for form in [repeated as fn() -> Tape, || replayed(Half::Guarded)] {
        let again = if form().run.scenario == "S37" {
            "H1-write-2"
        } else {
            "H1-write-3"
        };
        let other = broken(form(), |tape| body(tape, again, "bb"));
        violated(&other, I::Idempotency);
        assert!(
            other.violations[0]
                .why
                .ends_with("was given two different answers")
        );
        let new = broken(form(), |tape| {
            edit(tape, |event| match event {
                Event::Answer(answer) if answer.op == Op::new(again) => {
                    answer.reply = http(201, None);
                    true
                }
                _ => false,
            });
        });
        assert!(new.breaks(I::Idempotency), "{:#?}", new.violations);
    }
}

#[test]
fn a_claim_that_a_door_lets_in_is_found_though_it_bears_the_right_token() {
    for scenario in ["S39", "S67", "S69"] {
        let let_in = broken(altered(scenario, Half::Defeated), |tape| {
            tape.run.half = Half::Guarded
        });
        assert!(
            let_in.breaks(I::RealTimeRefusal),
            "{scenario}: {:#?}",
            let_in.violations
        );
    }
    // And what is refused at the door, and yet lands, is found by its id.
    let landed = broken(closed("S48"), |tape| {
        remove(
            tape,
            |event| matches!(event, Event::Request(one) if one.op == Op::new("H1-write-1")),
        );
        remove(tape, is_answer("H1-write-1"));
        remove(tape, |event| matches!(event, Event::Hold(_)));
    });
    assert!(landed.breaks(I::NoEffect), "{:#?}", landed.violations);
}

#[test]
fn a_repetition_that_is_none_makes_the_run_void() {
    let relays = |change: fn(&mut Relay)| {
        move |tape: &mut Tape| {
            edit(tape, |event| match event {
                Event::Relay(relay) => {
                    change(relay);
                    true
                }
                _ => false,
            });
        }
    };
    let unsent = |tape: &mut Tape| remove(tape, |event| matches!(event, Event::Relay(_)));
    let forms: [fn() -> Tape; 5] = [
        || replayed(Half::Guarded),
        || altered("S39", Half::Guarded),
        || altered("S67", Half::Guarded),
        repeated,
        || closed("S47"),
    ];
    for form in forms {
        void(&broken(form(), unsent), I::Exercised, "was not sent by the path");
        let other = broken(form(), relays(|relay| relay.how = Alteration::Stripped));
        void(&other, I::Exercised, "is not what the scenario makes of it");
        let of = broken(form(), relays(|relay| relay.of = Op::new("H2-write-1")));
        void(&of, I::Exercised, "");
    }
    let plain = broken(altered("S67", Half::Guarded), |tape| {
        request(tape, "H1-write-3", |one| {
            one.presented.token = Some(OLD.to_string())
        });
    });
    void(
        &plain,
        I::Exercised,
        "H1-write-3 is not what the scenario makes of it",
    );
}

#[test]
fn what_had_arrived_or_came_too_early_or_without_a_takeover_makes_the_run_void() {
    let arrived = broken(altered("S69", Half::Guarded), |tape| {
        request(tape, "H1-write-1", |one| one.sent = Some(ms(12)));
    });
    void(&arrived, I::Exercised, "H1-write-1 did arrive");
    let arrived = broken(replayed(Half::Guarded), |tape| {
        request(tape, "H1-write-2", |one| one.sent = Some(ms(12)));
    });
    void(&arrived, I::Exercised, "H1-write-2 did arrive");
    let unanswered = broken(replayed(Half::Guarded), |tape| {
        remove(tape, is_answer("H1-write-1"))
    });
    void(
        &unanswered,
        I::Exercised,
        "had not been accepted before the lease ended",
    );
    for form in [replayed(Half::Guarded), altered("S67", Half::Guarded)] {
        let unread = broken(form, |tape| {
            remove(
                tape,
                |event| matches!(event, Event::Read(read) if read.by == "kit"),
            );
        });
        void(&unread, I::Exercised, "the kit did not read before");
    }
    for form in [replayed(Half::Guarded), altered("S39", Half::Guarded)] {
        let unended = broken(form, |tape| {
            remove(
                tape,
                |event| matches!(event, Event::LeaseEnd(end) if end.grant == "g1"),
            );
        });
        // The store then granted what another still had.
        assert!(unended.breaks(I::Grants), "{:#?}", unended.violations);
    }
}

#[test]
fn a_control_whose_lease_ended_or_whose_write_was_not_held_to_the_end_is_void() {
    let lapsed = broken(repeated(), |tape| {
        tape.events
            .retain(|(_, event)| !matches!(event, Event::LeaseEnd(_)));
        tape.lease_end(19, "g1", Cause::Gone);
    });
    void(&lapsed, I::Exercised, "the lease ended before");
    let lapsed = broken(closed("S47"), |tape| {
        tape.events
            .retain(|(_, event)| !matches!(event, Event::LeaseEnd(_)));
        tape.lease_end(19, "g1", Cause::Gone);
    });
    void(&lapsed, I::Exercised, "the lease ended before");
    let early = broken(closed("S48"), |tape| {
        edit(tape, |event| match event {
            Event::Hold(hold) => {
                hold.released = Some(ms(22));
                true
            }
            _ => false,
        });
    });
    void(&early, I::Exercised, "was not answered while H1-write-1 was held");
    let never = broken(closed("S48"), |tape| {
        remove(tape, |event| matches!(event, Event::Hold(_)))
    });
    void(&never, I::Exercised, "was not held and let go");
}
