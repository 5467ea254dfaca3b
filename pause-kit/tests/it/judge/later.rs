//! Good histories of a write that the resource accepts for later, what is void in them, and what 202 means elsewhere.

use pause_kit::history::{Attempt, Cause, Event, Exercise, Half, Op, Outcome, Started};
use pause_kit::judge::{Invariant as I, Verdict, judge};

use super::forms::late_send;
use super::mutants::{broken, edit, remove, reply, request, void};
use super::takeovers::{begin, committed, end, late_commit, write};
use super::tape::{NEW, OLD, Tape, done, http, ms, sql};

/// S33: accepted with 202, and made by a worker after the takeover.
pub(crate) fn made_later(half: Half) -> Tape {
    let mut tape = begin("S33", half, Exercise::Deferred);
    tape.run.attempts = vec![Attempt::new("W-write-1", Outcome::Refused)];
    tape.request("H1-write-1", "g1", Some("g1:1"), 5, 5)
        .answer("H1-write-1", 7, http(202, None));
    tape.lease_end(15, "g1", Cause::Revoked).grant(16, "H2", "g2");
    tape.raise("H2-raise-1", "g2", 17).read("H2", 19, &[]);
    write(&mut tape, "H2-write-1", "g2:1", 21);
    tape.read("kit", 30, &["g2:1"]);
    let (target, pid) = ("W".to_owned(), 5_002);
    tape.push(35, Started { target, pid })
        .request("W-write-1", "g1", Some("g1:1"), 40, 40);
    match half {
        Half::Guarded => {
            let detail = format!("presented {OLD}, seen {NEW}");
            tape.answer("W-write-1", 42, sql("ZF001", Some(&detail)))
                .read("kit", 50, &["g2:1"]);
        }
        Half::Defeated => {
            tape.answer("W-write-1", 42, done("COMMIT"))
                .read("kit", 50, &["g2:1", "g1:1"]);
        }
    }
    tape.admission(10, "acct-1", "g1", OLD)
        .admission(11, "acct-1", "g1", OLD)
        .admission(12, "acct-1", "g2", NEW);
    committed(&mut tape, 13, "g2", "g2:1");
    late_commit(&mut tape, 14, "g2", "g1:1");
    end(&mut tape, &["g2:1"], &["g1:1"], "g2");
    tape
}

#[test]
fn it_holds_when_the_worker_is_refused_and_its_twin_shows_the_late_write() {
    let judgement = judge(&made_later(Half::Guarded).history());
    assert_eq!(judgement.verdict, Verdict::Held, "{:#?}", judgement.violations);
    assert_eq!(judgement.outcome().as_deref(), Some("REF"));
    let twin = judge(&made_later(Half::Defeated).history());
    assert!(twin.breaks(I::RealTimeRefusal), "{:#?}", twin.violations);
    assert!(!twin.breaks(I::Agreement), "{:#?}", twin.violations);
}

#[test]
fn a_write_that_was_not_accepted_first_and_made_after_the_takeover_makes_the_run_void() {
    let form = || made_later(Half::Guarded);
    let declined = broken(form(), |tape| {
        reply(tape, "H1-write-1", http(503, Some("unavailable")));
    });
    void(&declined, I::Exercised, "no write of H1 was accepted for later");
    let started = |at: Option<u64>| {
        broken(form(), |tape| {
            let is = |(_, event): &(_, Event)| matches!(event, Event::Started(_));
            let place = tape.events.iter().position(is).expect("it was started");
            let (_, event) = tape.events.remove(place);
            if let Some(at) = at {
                tape.push(at, event);
            }
        })
    };
    void(&started(None), I::Exercised, "W was never started");
    void(&started(Some(45)), I::Exercised, "began before W was started");
    void(&started(Some(22)), I::Exercised, "no successor wrote");
    void(&started(Some(17)), I::Exercised, "no successor raised");
    void(&started(Some(10)), I::Exercised, "did not end inside");
    let kits = |began: u64| {
        broken(form(), |tape| {
            remove(
                tape,
                |event| matches!(event, Event::Read(read) if read.by == "kit" && read.began == ms(began)),
            );
        })
    };
    void(&kits(30), I::Exercised, "the kit did not read before");
    void(&kits(50), I::Exercised, "the kit did not read after");
    let another = broken(form(), |tape| {
        request(tape, "W-write-1", |made| made.id = Some("g1:2".to_owned()));
    });
    void(
        &another,
        I::Exercised,
        "is not the write that H1-write-1 asked for",
    );
    let other_worker = broken(form(), |tape| {
        edit(tape, |event| match event {
            Event::Started(started) => {
                started.target = "V".to_owned();
                true
            }
            _ => false,
        });
    });
    void(&other_worker, I::Exercised, "W was never started");
}

#[test]
fn a_job_that_was_refused_and_took_effect_is_an_effect_of_a_refused_write() {
    let judgement = broken(made_later(Half::Guarded), |tape| {
        tape.written(15, "acct-1", "g1", "g1:1");
    });
    assert!(judgement.breaks(I::NoEffect), "{:#?}", judgement.violations);
}

#[test]
fn a_late_write_that_was_accepted_for_later_tells_nothing_until_it_is_read_back() {
    let unknown = broken(late_send("S02", Half::Guarded), |tape| {
        remove(tape, |event| matches!(event, Event::DbAnswer(_)));
        reply(tape, "H1-late", http(202, None));
    });
    match &unknown.verdict {
        Verdict::Inconclusive(why) => assert!(why.contains("H1-late was accepted for later"), "{why}"),
        other => panic!("{other}: {:#?}", unknown.violations),
    }
    let shown = broken(late_send("S02", Half::Defeated), |tape| {
        reply(tape, "H1-late", http(202, None));
    });
    assert!(shown.breaks(I::RealTimeRefusal), "{:#?}", shown.violations);
    assert!(!shown.breaks(I::NoEffect), "it was never refused");
}

#[test]
fn what_was_accepted_for_later_may_have_raised_the_mark() {
    let judgement = broken(late_send("S02", Half::Guarded), |tape| {
        remove(tape, |event| match event {
            Event::Request(raise) => raise.op == Op::new("H2-raise"),
            Event::Answer(answer) => answer.op == Op::new("H2-raise"),
            _ => false,
        });
        reply(tape, "H2-write", http(202, None));
    });
    assert!(!judgement.breaks(I::Linearizable), "{:#?}", judgement.violations);
    assert!(
        !judgement.breaks(I::NoSpuriousRefusal),
        "{:#?}",
        judgement.violations
    );
}
