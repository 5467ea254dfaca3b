//! Scenarios with several attempts, several holders, an old read or a second process: what holds, what breaks, what is void.

use pause_kit::history::{Cause, Event, Half, Op, Outcome, ProbeKind, Read};
use pause_kit::judge::{Invariant as I, Verdict, judge};

use super::mutants::{broken, edit, is_answer, remove, request, violated, void};
use super::takeovers::{fence_then_read, from_disk, in_turn, kept_alive, legal_gap, short_pause, stale_read};
use super::tape::{Tape, http, ms, sql};

#[test]
fn every_guarded_form_holds_with_the_outcome_of_each_attempt() {
    for (tape, outcome) in [
        (legal_gap(Half::Guarded), "LEG; REF; LEG"),
        (stale_read(Half::Guarded), "REF"),
        (fence_then_read(Half::Guarded), "REF"),
        (in_turn(Half::Guarded), "REF; REF; REF; REF"),
        (short_pause(), "LEG"),
        (kept_alive(), "LEG"),
        (from_disk(Half::Guarded), "REF"),
    ] {
        let scenario = tape.run.scenario.clone();
        let judgement = judge(&tape.history());
        let violations = &judgement.violations;
        assert_eq!(judgement.verdict, Verdict::Held, "{scenario}: {violations:#?}");
        assert_eq!(judgement.outcome().as_deref(), Some(outcome), "{scenario}");
        assert_eq!(judgement.refusal.is_some(), outcome.contains("REF"), "{scenario}");
        assert_eq!(judgement.corruption, None, "{scenario}");
    }
}

#[test]
fn every_twin_breaks_what_its_scenario_predicts() {
    for (tape, predicted, words) in [
        (
            legal_gap(Half::Defeated),
            I::RealTimeRefusal,
            "part 2 was refunded twice",
        ),
        (stale_read(Half::Defeated), I::LostUpdate, "refunded twice"),
        (in_turn(Half::Defeated), I::RealTimeRefusal, "refunded twice"),
        (from_disk(Half::Defeated), I::RealTimeRefusal, "refunded twice"),
    ] {
        let scenario = tape.run.scenario.clone();
        let judgement = judge(&tape.history());
        let violations = &judgement.violations;
        assert!(judgement.breaks(predicted), "{scenario}: {violations:#?}");
        assert!(!judgement.breaks(I::Agreement), "{scenario}: {violations:#?}");
        let corruption = judgement.corruption.unwrap();
        assert!(corruption.contains(words), "{scenario}: {corruption}");
    }
    let judgement = judge(&legal_gap(Half::Defeated).history());
    assert_eq!(
        judgement.outcome().as_deref(),
        Some("LEG; ?; LEG"),
        "only the late one is wrong"
    );
}

#[test]
fn a_successor_that_reads_before_it_raises_loses_an_update_and_breaks_nothing_else() {
    let judgement = judge(&fence_then_read(Half::Defeated).history());
    let [only] = &judgement.violations[..] else {
        panic!("{:#?}", judgement.violations)
    };
    assert_eq!(only.invariant, I::LostUpdate);
    assert_eq!(only.invariant.to_string(), "lost update");
    assert!(only.why.starts_with("H2-write-1 of H2 (grant g2"), "{}", only.why);
    assert!(only.why.contains("missed g1:1 of H1 (grant g1"), "{}", only.why);
    assert_eq!(only.lines.len(), 3, "the read, the missed write and the write");
}

#[test]
fn a_write_is_no_lost_update_when_the_read_shows_it_or_there_was_no_read_or_it_is_its_own() {
    let shown = broken(fence_then_read(Half::Defeated), |tape| {
        reads(tape, "H2", |read| read.ids.push("g1:1".to_owned()));
        at(
            tape,
            |event| matches!(event, Event::Read(read) if read.by == "H2"),
            34,
        );
        reads(tape, "H2", |read| read.began = ms(34));
    });
    assert!(!shown.breaks(I::LostUpdate), "{:#?}", shown.violations);
    let unread = broken(fence_then_read(Half::Defeated), |tape| {
        remove(
            tape,
            |event| matches!(event, Event::Read(read) if read.by == "H2"),
        );
    });
    assert!(!unread.breaks(I::LostUpdate), "{:#?}", unread.violations);
    // Its own first part is not in H3's read either.
    assert!(!judge(&in_turn(Half::Guarded).history()).breaks(I::LostUpdate));
    // A later read, and not the first one, is what a write rests on.
    let again = broken(fence_then_read(Half::Defeated), |tape| {
        tape.read("H2", 33, &[]);
    });
    assert!(again.breaks(I::LostUpdate));
}

#[test]
fn each_attempt_is_judged_by_what_is_expected_of_it() {
    let third = broken(legal_gap(Half::Guarded), |tape| {
        answer(tape, "H2-write-1", http(412, Some("stale")));
    });
    assert!(third.breaks(I::NoSpuriousRefusal), "{:#?}", third.violations);
    let second = broken(in_turn(Half::Guarded), |tape| {
        answer(tape, "H2-write-2", http(409, Some("unknown-epoch")));
    });
    assert!(second.breaks(I::Reason), "{:#?}", second.violations);
    let expected = broken(legal_gap(Half::Guarded), |tape| {
        tape.run.attempts[2].expected = Outcome::Refused
    });
    assert!(
        matches!(&expected.verdict, Verdict::Inconclusive(why) if why == "H2-write-1: expected REF, got LEG"),
        "{}",
        expected.verdict
    );
    let rolled_back = broken(legal_gap(Half::Guarded), |tape| {
        edit(tape, |event| match event {
            Event::Probe(probe) if probe.probe == ProbeKind::RolledBack => {
                probe.reply = sql("ZF004", None);
                true
            }
            _ => false,
        });
    });
    violated(&rolled_back, I::NoSpuriousRefusal);
}

#[test]
fn the_legal_gap_is_void_when_a_step_of_it_is_missing() {
    let gap = |breaks: fn(&mut Tape)| broken(legal_gap(Half::Guarded), breaks);
    let is_void = |breaks: fn(&mut Tape), word: &str| void(&gap(breaks), I::Exercised, word);
    is_void(
        |tape| stops(tape, 0),
        "was never stopped and let go on before H1-write-1",
    );
    is_void(|tape| stops(tape, 1), "no second stop");
    is_void(
        |tape| stops(tape, 2),
        "H2 was never stopped and let go on before H2-write-1",
    );
    is_void(
        |tape| {
            at(
                tape,
                |event| matches!(event, Event::LeaseEnd(end) if end.grant == "g1"),
                9,
            )
        },
        "did not end inside",
    );
    is_void(
        |tape| {
            at(
                tape,
                |event| matches!(event, Event::Request(one) if one.op == Op::new("H2-raise-1")),
                22,
            );
        },
        "in touch before H1-write-1 was answered",
    );
    is_void(
        |tape| reads(tape, "H2", |read| read.began = ms(29)),
        "read nothing inside the second pause",
    );
    is_void(
        |tape| {
            remove(
                tape,
                |event| matches!(event, Event::Probe(probe) if probe.probe == ProbeKind::RolledBack),
            )
        },
        "rolled back",
    );
    is_void(
        |tape| {
            tape.raise("H3-raise-1", "g3", 65)
                .admission(99, "acct-1", "g3", super::tape::token_of("g3"));
            edit(tape, |event| match event {
                Event::Final(last) => {
                    last.marks[0].token = pause_kit::history::TokenNumber::new(super::tape::token_of("g3"));
                    true
                }
                _ => false,
            });
        },
        "the third holder was in touch itself",
    );
    is_void(|tape| tape.run.attempts.truncate(2), "3 attempts belong to this");
    is_void(
        |tape| tape.run.stale_grant = None,
        "not of the grant that goes stale",
    );
}

#[test]
fn an_old_read_is_void_without_the_read_or_with_a_newer_one() {
    let stale = |breaks: fn(&mut Tape)| broken(stale_read(Half::Guarded), breaks);
    let unread = stale(|tape| {
        remove(
            tape,
            |event| matches!(event, Event::Read(read) if read.by == "H1"),
        )
    });
    void(&unread, I::Exercised, "had read nothing before its stop");
    let unread_by_the_next = stale(|tape| {
        remove(
            tape,
            |event| matches!(event, Event::Read(read) if read.by == "H2"),
        )
    });
    void(
        &unread_by_the_next,
        I::Exercised,
        "H2 read nothing inside the pause",
    );
    let again = stale(|tape| {
        tape.read("H1", 41, &["g2:1"]);
    });
    void(&again, I::Exercised, "read again after its stop");
    let unraised = stale(|tape| {
        remove(
            tape,
            |event| matches!(event, Event::Request(one) if one.op == Op::new("H2-raise")),
        );
        remove(tape, is_answer("H2-raise"));
    });
    void(&unraised, I::Exercised, "no successor raised the mark");
    void(&stale(|tape| stops(tape, 0)), I::Exercised, "never stopped");
}

#[test]
fn fence_then_read_is_void_when_the_successor_does_not_do_just_that() {
    let fence = |breaks: fn(&mut Tape)| broken(fence_then_read(Half::Guarded), breaks);
    let late_raise = fence(|tape| {
        at(
            tape,
            |event| matches!(event, Event::Request(one) if one.op == Op::new("H2-raise-1")),
            18,
        );
        at(tape, is_answer("H2-raise-1"), 19);
    });
    void(
        &late_raise,
        I::Exercised,
        "had not raised the mark before it read",
    );
    let unread = fence(|tape| {
        remove(
            tape,
            |event| matches!(event, Event::Read(read) if read.by == "H2"),
        )
    });
    void(&unread, I::Exercised, "read nothing inside");
    let again = fence(|tape| {
        tape.read("H2", 34, &[]);
    });
    void(&again, I::Exercised, "H2 read again");
    let early = fence(|tape| {
        at(
            tape,
            |event| matches!(event, Event::Request(one) if one.op == Op::new("H2-write-1")),
            32,
        );
    });
    void(
        &early,
        I::Exercised,
        "H2 did not write once H1-write-1 was answered",
    );
    void(&fence(|tape| stops(tape, 0)), I::Exercised, "never stopped");
}

#[test]
fn two_stopped_holders_are_void_unless_each_stood_in_its_turn() {
    let turn = |breaks: fn(&mut Tape)| broken(in_turn(Half::Guarded), breaks);
    for stop in [0, 1] {
        let judgement = broken(in_turn(Half::Guarded), |tape| stops(tape, stop));
        void(&judgement, I::Exercised, "never stopped");
    }
    for stop in [2, 3] {
        let judgement = broken(in_turn(Half::Guarded), |tape| stops(tape, stop));
        void(&judgement, I::Exercised, "did not write while both stood");
    }
    let neither = turn(|tape| {
        stops(tape, 3);
        stops(tape, 2);
    });
    void(&neither, I::Exercised, "not stopped again");
    let early = turn(|tape| {
        at(
            tape,
            |event| matches!(event, Event::Request(one) if one.op == Op::new("H2-write-1")),
            52,
        );
    });
    void(
        &early,
        I::Exercised,
        "H2-write-1 began before H1-write-1 was answered",
    );
    let unnamed = turn(|tape| tape.run.stale_grant = Some("g2".to_owned()));
    void(&unnamed, I::Exercised, "not of the grant that goes stale");
    let order = turn(|tape| tape.run.attempts.swap(2, 3));
    void(&order, I::Exercised, "not in both orders");
    let unwritten = turn(|tape| {
        request(tape, "H3-write-2", |request| request.sent = None);
        at(tape, is_answer("H3-write-2"), 85);
    });
    void(&unwritten, I::Exercised, "did not write while both stood");
}

#[test]
fn a_short_pause_is_void_when_it_is_none_or_none_that_is_short() {
    let pause = |breaks: fn(&mut Tape)| broken(short_pause(), breaks);
    let resumed = |at: u64| {
        broken(short_pause(), |tape| {
            edit(tape, |event| match event {
                Event::Stop(stop) => {
                    stop.resumed = Some(ms(at));
                    true
                }
                _ => false,
            });
        })
    };
    void(&resumed(15), I::Exercised, "between a quarter and three quarters");
    let long = broken(short_pause(), |tape| {
        tape.run.exercise = pause_kit::history::Exercise::ShortPause { ttl_ns: 25_000_000 };
    });
    void(&long, I::Exercised, "between a quarter and three quarters");
    void(&pause(|tape| stops(tape, 0)), I::Exercised, "never stopped");
    let ended = pause(|tape| {
        edit(tape, |event| match event {
            Event::LeaseEnd(end) => {
                end.cause = Cause::Expired;
                true
            }
            _ => false,
        });
    });
    void(&ended, I::Exercised, "the lease ended before");
    let taken = pause(|tape| {
        tape.grant(40, "H2", "g2");
    });
    void(&taken, I::Exercised, "granted to another");
    violated(
        &pause(|tape| answer(tape, "H1-write-1", http(412, Some("stale")))),
        I::NoEffect,
    );
}

#[test]
fn a_writer_held_alone_is_void_when_it_was_sent_within_the_ttl_or_all_of_it_was_stopped_or_the_lease_ended() {
    let held = |breaks: fn(&mut Tape)| broken(kept_alive(), breaks);
    let soon = held(|tape| {
        tape.run.exercise = pause_kit::history::Exercise::KeptAlive { ttl_ns: 31_000_000 };
    });
    void(&soon, I::Exercised, "within the TTL");
    let stopped = held(|tape| {
        tape.stop("H1", 10, 30);
    });
    void(&stopped, I::Exercised, "was stopped");
    let ended = held(|tape| {
        edit(tape, |event| match event {
            Event::LeaseEnd(end) => {
                end.cause = Cause::Expired;
                true
            }
            _ => false,
        });
    });
    void(&ended, I::Exercised, "the lease ended before");
    let taken = held(|tape| {
        tape.grant(40, "H2", "g2");
    });
    void(&taken, I::Exercised, "granted to another");
    let unmade = held(|tape| tape.run.attempts.clear());
    void(&unmade, I::Exercised, "never made");
}

#[test]
fn a_restart_is_void_unless_one_was_killed_and_another_did_nothing_but_write() {
    let disk = |breaks: fn(&mut Tape)| broken(from_disk(Half::Guarded), breaks);
    let unkilled = disk(|tape| remove(tape, |event| matches!(event, Event::Killed(_))));
    void(&unkilled, I::Exercised, "never killed");
    let once = disk(|tape| remove(tape, |event| matches!(event, Event::Restarted(_))));
    void(&once, I::Exercised, "never started again");
    let same = disk(|tape| {
        edit(tape, |event| match event {
            Event::Restarted(again) => {
                again.pid = 4711;
                true
            }
            _ => false,
        });
    });
    void(&same, I::Exercised, "not started again after it was killed");
    let early = disk(|tape| at(tape, |event| matches!(event, Event::Restarted(_)), 20));
    void(&early, I::Exercised, "no successor wrote");
    let more = disk(|tape| {
        tape.read("H1", 40, &["g2:1"]);
    });
    void(&more, I::Exercised, "more than present its write");
    let sent = disk(|tape| at(tape, |event| matches!(event, Event::Restarted(_)), 42));
    void(&sent, I::Exercised, "began before");
}

#[track_caller]
fn reads(tape: &mut Tape, by: &str, change: impl Fn(&mut Read)) {
    edit(tape, |event| match event {
        Event::Read(read) if read.by == by => {
            change(read);
            true
        }
        _ => false,
    });
}

#[track_caller]
fn answer(tape: &mut Tape, op: &str, reply: pause_kit::history::Reply) {
    super::mutants::reply(tape, op, reply);
}

/// Moves the events for which `which` says so to this millisecond.
#[track_caller]
fn at(tape: &mut Tape, which: impl Fn(&Event) -> bool, millis: u64) {
    let moved = tape.events.iter_mut().filter(|(_, event)| which(event));
    assert!(
        moved.map(|(at, _)| *at = ms(millis)).count() > 0,
        "nothing to move"
    );
}

/// Takes stop number `number` away.
#[track_caller]
fn stops(tape: &mut Tape, number: usize) {
    let mut seen = 0;
    remove(tape, |event| {
        let is = matches!(event, Event::Stop(_));
        seen += usize::from(is);
        is && seen == number + 1
    });
}
