//! Good histories of the scenarios in which an answer is held on its way, and what is void in them.

use pause_kit::history::{
    Answerer, Attempt, Cause, Event, Exercise, Half, Op, Outcome, Stop, Unanswered, Withheld,
};
use pause_kit::judge::{Invariant as I, Verdict, judge};

use super::mutants::{broken, edit, remove, request, void};
use super::takeovers::{begin, committed, end, late_commit, write};
use super::tape::{NEW, OLD, Tape, http, ms, sql};

/// S24: the resource stopped once the database had begun its transaction.
pub(crate) fn between(half: Half) -> Tape {
    let mut tape = begin("S24", half, Exercise::Between);
    tape.run.attempts = vec![Attempt::new("H1-write-1", Outcome::Refused)];
    tape.request("H1-write-1", "g1", Some("g1:1"), 7, 7);
    withheld(&mut tape, "H1-write-1", 8, Answerer::Database, Some(40));
    tape.stop("R", 10, 41)
        .lease_end(15, "g1", Cause::Revoked)
        .grant(16, "H2", "g2");
    tape.raise("H2-raise-1", "g2", 17).read("H2", 19, &[]);
    write(&mut tape, "H2-write-1", "g2:1", 21);
    tape.read("kit", 30, &["g2:1"]);
    match half {
        Half::Guarded => {
            let detail = format!("presented {OLD}, seen {NEW}");
            tape.db_answer("H1-write-1", 43, sql("ZF001", Some(&detail)))
                .answer("H1-write-1", 44, http(412, Some("stale")))
                .read("kit", 50, &["g2:1"]);
        }
        Half::Defeated => {
            tape.answer("H1-write-1", 44, http(201, None))
                .read("kit", 50, &["g2:1", "g1:1"]);
        }
    }
    tape.admission(10, "acct-1", "g1", OLD)
        .admission(11, "acct-1", "g2", NEW);
    committed(&mut tape, 12, "g2", "g2:1");
    late_commit(&mut tape, 13, "g2", "g1:1");
    end(&mut tape, &["g2:1"], &["g1:1"], "g2");
    tape
}

/// S28: two writes that land, and whose holder learns nothing of it.
pub(crate) fn lost() -> Tape {
    let mut tape = begin("S28", Half::Guarded, Exercise::LostAnswers);
    tape.run.stale_grant = None;
    tape.run.attempts = ["H1-write-1", "H1-write-2"]
        .map(|op| Attempt::new(op, Outcome::Unknown))
        .into();
    tape.request("H1-write-1", "g1", Some("g1:1"), 5, 5);
    withheld(&mut tape, "H1-write-1", 7, Answerer::Database, Some(18));
    tape.stop("R", 10, 20).read("kit", 12, &["g1:1"]);
    cut_off(&mut tape, "H1-write-1", 14);
    tape.request("H1-write-2", "g1", Some("g1:2"), 25, 25);
    withheld(&mut tape, "H1-write-2", 27, Answerer::Resource, None);
    tape.stop("H1", 30, 40).read("kit", 32, &["g1:1", "g1:2"]);
    cut_off(&mut tape, "H1-write-2", 35);
    tape.lease_end(45, "g1", Cause::Released).grant(46, "H2", "g2");
    tape.raise("H2-raise-1", "g2", 47)
        .read("H2", 50, &["g1:1", "g1:2"]);
    tape.lease_end(55, "g2", Cause::Released);
    tape.admission(10, "acct-1", "g1", OLD);
    committed(&mut tape, 11, "g1", "g1:1");
    committed(&mut tape, 12, "g1", "g1:2");
    tape.admission(13, "acct-1", "g2", NEW);
    end(&mut tape, &["g1:1", "g1:2"], &[], "g2");
    tape
}

fn withheld(tape: &mut Tape, op: &str, at: u64, by: Answerer, released: Option<u64>) {
    let (op, released) = (Op::new(op), released.map(ms));
    tape.push(at, Withheld { op, by, released });
}

fn cut_off(tape: &mut Tape, op: &str, at: u64) {
    let (op, why) = (Op::new(op), "its connection was cut off on the path".to_owned());
    tape.push(at, Unanswered { op, why });
}

#[test]
fn each_holds_with_its_outcomes_and_the_twin_shows_the_delayed_write() {
    for (tape, outcome) in [(between(Half::Guarded), "REF"), (lost(), "UNK; UNK")] {
        let judgement = judge(&tape.history());
        assert_eq!(judgement.verdict, Verdict::Held, "{:#?}", judgement.violations);
        assert_eq!(judgement.outcome().as_deref(), Some(outcome));
    }
    let twin = judge(&between(Half::Defeated).history());
    assert!(twin.breaks(I::DelayedPacket), "{:#?}", twin.violations);
    assert!(!twin.breaks(I::Agreement), "{:#?}", twin.violations);
}

#[test]
fn a_resource_that_was_not_stopped_with_the_answer_on_its_way_makes_the_run_void() {
    let form = || between(Half::Guarded);
    let answers = |change: fn(&mut Withheld)| {
        broken(form(), |tape| {
            edit(tape, |event| match event {
                Event::Withheld(answer) => {
                    change(answer);
                    true
                }
                _ => false,
            });
        })
    };
    let held = "was not held until the resource was to go on";
    void(&answers(|answer| answer.released = None), I::Exercised, held);
    void(
        &answers(|answer| answer.released = Some(ms(9))),
        I::Exercised,
        held,
    );
    let other = answers(|answer| answer.by = Answerer::Resource);
    void(&other, I::Exercised, "no such answer");
    let stops = |change: fn(&mut Stop)| {
        broken(form(), |tape| {
            edit(tape, |event| match event {
                Event::Stop(stop) => {
                    change(stop);
                    true
                }
                _ => false,
            });
        })
    };
    let another = stops(|stop| stop.target = "H1".to_owned());
    void(&another, I::Exercised, "R was never stopped");
    let longer = stops(|stop| stop.resumed = Some(ms(45)));
    void(&longer, I::Exercised, "was answered before the resource went on");
    let early = broken(form(), |tape| {
        let stopped = tape.events.iter_mut();
        let stopped = stopped.filter(|(_, event)| matches!(event, Event::Withheld(_)));
        stopped.for_each(|(at, _)| *at = ms(11));
    });
    void(&early, I::Exercised, "before the database had answered it");
    let unsent = broken(form(), |tape| {
        request(tape, "H1-write-1", |one| one.sent = Some(ms(42)));
    });
    void(&unsent, I::Exercised, "had not arrived before");
    let unread = broken(form(), |tape| {
        remove(
            tape,
            |event| matches!(event, Event::Read(read) if read.by == "kit"),
        );
    });
    void(&unread, I::Exercised, "the kit did not read before");
}

#[test]
fn an_unknown_outcome_must_be_unknown_landed_and_found_by_whoever_comes_next() {
    let answered = broken(lost(), |tape| {
        remove(tape, |event| matches!(event, Event::Unanswered(_)));
        tape.answer("H1-write-1", 16, http(201, None))
            .answer("H1-write-2", 36, http(201, None));
    });
    void(&answered, I::Exercised, "H1-write-1 was answered");
    // What was cut off and is called failed is no unknown outcome any more, and it took effect.
    let failed = broken(lost(), |tape| {
        remove(tape, |event| matches!(event, Event::Unanswered(_)));
        tape.answer("H1-write-1", 16, http(503, Some("unavailable")));
    });
    assert!(failed.breaks(I::NoEffect), "{:#?}", failed.violations);
    let elsewhere = broken(lost(), |tape| {
        let lost = tape.events.iter_mut();
        let mut lost = lost.filter(|(_, event)| matches!(event, Event::Unanswered(_)));
        lost.next().expect("two were lost").0 = ms(21);
    });
    void(&elsewhere, I::Exercised, "was not cut off while R stood");
    let unfound = broken(lost(), |tape| {
        remove(
            tape,
            |event| matches!(event, Event::Read(read) if read.by == "H2"),
        );
    });
    void(&unfound, I::Exercised, "H2 did not find both writes");
    let alone = broken(lost(), |tape| {
        remove(tape, |event| matches!(event, Event::Withheld(_)));
    });
    void(&alone, I::Exercised, "no such answer for H1-write-1");
    let again = broken(lost(), |tape| {
        write(tape, "H2-write-1", "g2:1", 52);
        tape.events
            .retain(|(_, event)| !matches!(event, Event::Final(_) | Event::Probe(_)));
        tape.events
            .retain(|(_, event)| !matches!(event, Event::Commit(commit) if commit.xid == 20));
        committed(tape, 14, "g2", "g2:1");
        end(tape, &["g1:1", "g1:2", "g2:1"], &[], "g2");
    });
    void(&again, I::Exercised, "H2 wrote once more");
}
