//! Good histories of the scenarios in which the lock store is stopped or gone, or a holder cannot be stopped, and what is void in
//! them.

use pause_kit::history::{Attempt, Cause, Event, Exercise, Half, Killed, Outcome, Stop, Unheard, Unstopped};
use pause_kit::judge::{Invariant as I, Verdict, judge};

use super::mutants::{broken, edit, remove, void};
use super::takeovers::{begin, committed, end, late, late_commit, write};
use super::tape::{NEW, OLD, Tape, ms};

/// S75: the lock store stopped for longer than a TTL of 20 ms.
pub(crate) fn stopped(half: Half) -> Tape {
    let mut tape = begin("S75", half, Exercise::StoreStopped { ttl_ns: 20_000_000 });
    tape.run.attempts = vec![Attempt::new("H1-write-1", Outcome::Refused)];
    tape.stop("L", 10, 35);
    tape.push(
        20,
        Unheard {
            holder: "H1".to_owned(),
            target: "L".to_owned(),
            bytes: 17,
        },
    );
    tape.lease_end(40, "g1", Cause::Expired).grant(41, "H2", "g2");
    tape.raise("H2-raise-1", "g2", 42).read("H2", 44, &[]);
    write(&mut tape, "H2-write-1", "g2:1", 46);
    tape.read("kit", 50, &["g2:1"]);
    late(&mut tape, "H1-write-1", "g1:1", 55, "g2");
    let shown: &[&str] = match half {
        Half::Guarded => &["g2:1"],
        Half::Defeated => &["g2:1", "g1:1"],
    };
    tape.read("kit", 60, shown)
        .admission(10, "acct-1", "g1", OLD)
        .admission(11, "acct-1", "g2", NEW);
    committed(&mut tape, 12, "g2", "g2:1");
    late_commit(&mut tape, 13, "g2", "g1:1");
    end(&mut tape, &["g2:1"], &["g1:1"], "g2");
    tape
}

/// S82: the lock store killed once H2 had written.
pub(crate) fn gone() -> Tape {
    let mut tape = begin("S82", Half::Guarded, Exercise::StoreGone);
    tape.run.stale_grant = None;
    tape.run.attempts = vec![
        Attempt::new("H1-write-1", Outcome::Refused),
        Attempt::new("H2-write-2", Outcome::Legal),
    ];
    tape.stop("H1", 10, 40)
        .lease_end(12, "g1", Cause::Revoked)
        .grant(13, "H2", "g2");
    tape.raise("H2-raise-1", "g2", 14).read("H2", 16, &[]);
    write(&mut tape, "H2-write-1", "g2:1", 18);
    tape.read("kit", 22, &["g2:1"]);
    let (target, pid) = ("L".to_owned(), 4713);
    tape.push(30, Killed { target, pid });
    late(&mut tape, "H1-write-1", "g1:1", 41, "g2");
    tape.read("kit", 45, &["g2:1"]);
    write(&mut tape, "H2-write-2", "g2:2", 50);
    tape.admission(10, "acct-1", "g1", OLD)
        .admission(11, "acct-1", "g2", NEW);
    committed(&mut tape, 12, "g2", "g2:1");
    committed(&mut tape, 13, "g2", "g2:2");
    end(&mut tape, &["g2:1", "g2:2"], &[], "g2");
    tape
}

/// S16: a holder that could not be stopped, and wrote.
pub(crate) fn unstoppable() -> Tape {
    let mut tape = begin("S16", Half::Guarded, Exercise::Stopped);
    tape.run.stale_grant = None;
    tape.run.attempts = Vec::new();
    tape.push(
        10,
        Unstopped {
            target: "H1".to_owned(),
            pid: 4711,
            tid: 4711,
            state: 'D',
        },
    );
    write(&mut tape, "H1-write-1", "g1:1", 20);
    tape.lease_end(25, "g1", Cause::Released)
        .admission(10, "acct-1", "g1", OLD);
    committed(&mut tape, 11, "g1", "g1:1");
    end(&mut tape, &["g1:1"], &[], "g1");
    tape
}

#[test]
fn each_holds_with_its_outcomes_and_the_twin_shows_the_late_write() {
    for (tape, outcome) in [(stopped(Half::Guarded), "REF"), (gone(), "REF; LEG")] {
        let judgement = judge(&tape.history());
        assert_eq!(judgement.verdict, Verdict::Held, "{:#?}", judgement.violations);
        assert_eq!(judgement.outcome().as_deref(), Some(outcome));
    }
    let twin = judge(&stopped(Half::Defeated).history());
    assert!(twin.breaks(I::RealTimeRefusal), "{:#?}", twin.violations);
    assert!(!twin.breaks(I::Agreement), "{:#?}", twin.violations);
}

#[test]
fn a_lock_store_that_was_not_stopped_past_the_ttl_with_a_keepalive_on_its_way_makes_the_run_void() {
    let stops = |change: fn(&mut Stop)| {
        broken(stopped(Half::Guarded), |tape| {
            edit(tape, |event| match event {
                Event::Stop(stop) => {
                    change(stop);
                    true
                }
                _ => false,
            });
        })
    };
    void(
        &stops(|stop| stop.resumed = Some(ms(29))),
        I::Exercised,
        "within the TTL",
    );
    void(
        &stops(|stop| stop.target = "R".to_owned()),
        I::Exercised,
        "L was never stopped",
    );
    let unheard = |change: fn(&mut Unheard)| {
        broken(stopped(Half::Guarded), |tape| {
            edit(tape, |event| match event {
                Event::Unheard(one) => {
                    change(one);
                    true
                }
                _ => false,
            });
        })
    };
    let read = "no keepalive of H1 lay unread";
    void(&unheard(|one| one.bytes = 0), I::Exercised, read);
    void(&unheard(|one| one.holder = "H2".to_owned()), I::Exercised, read);
    let revoked = broken(stopped(Half::Guarded), |tape| {
        edit(tape, |event| match event {
            Event::LeaseEnd(end) if end.grant == "g1" => {
                end.cause = Cause::Revoked;
                true
            }
            _ => false,
        });
    });
    void(&revoked, I::Exercised, "the lease was revoked, and not expired");
}

#[test]
fn a_lock_store_that_was_there_makes_the_run_void() {
    let there = broken(gone(), |tape| {
        remove(tape, |event| matches!(event, Event::Killed(_)));
    });
    void(&there, I::Exercised, "the lock store was never killed");
    let killed_at = |at: u64| {
        broken(gone(), |tape| {
            let killed = tape.events.iter_mut();
            let killed = killed.filter(|(_, event)| matches!(event, Event::Killed(_)));
            killed.for_each(|(when, _)| *when = ms(at));
        })
    };
    void(&killed_at(15), I::Exercised, "H2 had not written");
    void(&killed_at(42), I::Exercised, "once the lock store was gone");
}

#[test]
fn a_holder_that_could_not_be_stopped_makes_every_run_void() {
    let void_for = "H1 could not be stopped: task 4711 of process 4711 stayed in state D";
    void(&judge(&unstoppable().history()), I::Exercised, void_for);
    let tried = broken(gone(), |tape| {
        tape.push(
            9,
            Unstopped {
                target: "H1".to_owned(),
                pid: 4711,
                tid: 4711,
                state: 'D',
            },
        );
    });
    void(&tried, I::Exercised, void_for);
}
