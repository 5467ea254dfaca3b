//! Good histories of the scenarios in which the COMMIT of a write is held, and what is void in them.

use pause_kit::history::{
    Alteration, Attempt, Cause, Event, Exercise, Half, Op, Outcome, Relay, Stop, Uncommitted, Waiting,
};
use pause_kit::judge::{Invariant as I, Verdict, judge};

use super::mutants::{broken, edit, remove, reply, void};
use super::takeovers::{begin, committed, end, late, write};
use super::tape::{NEW, OLD, Tape, done, http, ms, sql, token_of};

/// S25: the resource stopped, its transaction holding the mark's row.
pub(crate) fn client_stopped(half: Half) -> Tape {
    let mut tape = begin("S25", half, Exercise::MarkHeld { idle_ns: 20_000_000 });
    tape.run.attempts = vec![Attempt::new("H1-write-2", Outcome::Blocked)];
    let resumed = match half {
        Half::Guarded => 41,
        Half::Defeated => 3_000,
    };
    tape.request("H1-write-1", "g1", Some("g1:1"), 7, 7);
    held(&mut tape, 8, Some(resumed - 1));
    tape.stop("R", 10, resumed)
        .lease_end(12, "g1", Cause::Revoked)
        .grant(13, "H2", "g2")
        .request("H2-raise-1", "g2", None, 14, 14);
    waits(&mut tape, 16, "R");
    tape.admission(10, "acct-1", "g1", OLD);
    match half {
        Half::Guarded => {
            tape.answer("H2-raise-1", 20, http(503, Some("blocked")))
                .lease_end(21, "g2", Cause::Released)
                .grant(31, "H3", "g3");
            tape.raise("H3-raise-1", "g3", 32).read("H3", 34, &[]);
            write(&mut tape, "H3-write-1", "g3:1", 36);
            tape.read("kit", 39, &["g3:1"])
                .answer("H1-write-1", 42, http(503, Some("unavailable")));
            let (op, of) = (Op::new("H1-write-2"), Op::new("H1-write-1"));
            let how = Alteration::Nothing;
            tape.push(43, Relay { op, of, how });
            late(&mut tape, "H1-write-2", "g1:1", 44, "g3");
            tape.read("kit", 50, &["g3:1"])
                .admission(11, "acct-1", "g3", token_of("g3"));
            committed(&mut tape, 12, "g3", "g3:1");
            end(&mut tape, &["g3:1"], &[], "g3");
        }
        Half::Defeated => {
            waits(&mut tape, 2_900, "R");
            tape.answer("H1-write-1", 3_010, http(201, None))
                .answer("H2-raise-1", 3_015, http(204, None))
                .read("H2", 3_020, &["g1:1"]);
            committed(&mut tape, 11, "g1", "g1:1");
            tape.admission(12, "acct-1", "g2", NEW);
            end(&mut tape, &["g1:1"], &[], "g2");
        }
    }
    tape
}

/// S25b: the backend stopped.
pub(crate) fn backend_stopped() -> Tape {
    let mut tape = begin("S25b", Half::Guarded, Exercise::BackendStopped);
    tape.run.stale_grant = None;
    tape.run.attempts = vec![Attempt::new("H2-raise-1", Outcome::Blocked)];
    tape.request("H1-write-1", "g1", Some("g1:1"), 7, 7);
    held(&mut tape, 8, Some(30));
    tape.stop("B", 10, 31)
        .lease_end(12, "g1", Cause::Revoked)
        .grant(13, "H2", "g2")
        .request("H2-raise-1", "g2", None, 14, 14);
    waits(&mut tape, 16, "B");
    tape.answer("H2-raise-1", 20, http(503, Some("blocked")))
        .answer("H1-write-1", 33, http(201, None))
        .lease_end(35, "g2", Cause::Released)
        .grant(36, "H3", "g3");
    tape.raise("H3-raise-1", "g3", 37).read("H3", 39, &["g1:1"]);
    tape.admission(10, "acct-1", "g1", OLD);
    committed(&mut tape, 11, "g1", "g1:1");
    tape.admission(12, "acct-1", "g3", token_of("g3"));
    end(&mut tape, &["g1:1"], &[], "g3");
    tape
}

/// S53: a statement failed in the holder's transaction.
pub(crate) fn commit_failed() -> Tape {
    let mut tape = Tape::new("S53", Half::Guarded, Exercise::CommitFailed);
    tape.run.stale_grant = None;
    tape.run.attempts = vec![Attempt::new("H1-write-1", Outcome::NotCommitted)];
    tape.grant(0, "H1", "g1")
        .request("H1-write-1", "g1", Some("g1"), 5, 5)
        .db_answer("H1-write-1", 6, done("UPDATE 1"))
        .db_answer("H1-write-1", 15, sql("22012", None))
        .answer("H1-write-1", 15, sql("22012", None))
        .read("kit", 17, &[])
        .lease_end(26, "g1", Cause::Released)
        .grant(27, "H2", "g2")
        .request("H2-write-1", "g2", Some("g2"), 32, 32)
        .db_answer("H2-write-1", 33, done("UPDATE 1"))
        .answer("H2-write-1", 34, done("COMMIT"));
    tape.bystander_batch(100);
    tape.written(12, "batch-1", "g2", "g2")
        .written(13, "batch-9", "g1", "g1")
        .last(
            &["g2", "g1"],
            Default::default(),
            &[("batch-1", NEW), ("batch-9", OLD)],
        );
    tape
}

fn held(tape: &mut Tape, at: u64, released: Option<u64>) {
    let (op, released) = (Op::new("H1-write-1"), released.map(ms));
    tape.push(at, Uncommitted { op, released });
}

fn waits(tape: &mut Tape, at: u64, on: &str) {
    let (op, on) = (Op::new("H2-raise-1"), on.to_owned());
    tape.push(
        at,
        Waiting {
            op,
            on,
            backend: 5,
            blocked_by: 4,
        },
    );
}

fn commits(tape: Tape, change: impl Fn(&mut Uncommitted)) -> pause_kit::judge::Judgement {
    broken(tape, |tape| {
        edit(tape, |event| match event {
            Event::Uncommitted(commit) => {
                change(commit);
                true
            }
            _ => false,
        });
    })
}

fn stops(tape: Tape, change: impl Fn(&mut Stop)) -> pause_kit::judge::Judgement {
    broken(tape, |tape| {
        edit(tape, |event| match event {
            Event::Stop(stop) => {
                change(stop);
                true
            }
            _ => false,
        });
    })
}

fn unseen(tape: Tape) -> pause_kit::judge::Judgement {
    broken(tape, |tape| {
        remove(tape, |event| matches!(event, Event::Waiting(_)));
    })
}

#[test]
fn each_holds_with_its_outcome_and_the_twin_waits_beyond_its_bound_and_breaks_nothing_else() {
    for (tape, outcome) in [
        (client_stopped(Half::Guarded), "BLK"),
        (backend_stopped(), "BLK"),
        (commit_failed(), "NOT"),
    ] {
        let judgement = judge(&tape.history());
        assert_eq!(judgement.verdict, Verdict::Held, "{:#?}", judgement.violations);
        assert_eq!(judgement.outcome().as_deref(), Some(outcome));
    }
    let twin = judge(&client_stopped(Half::Defeated).history());
    let broken: Vec<I> = twin.violations.iter().map(|one| one.invariant).collect();
    assert_eq!(broken, [I::BoundedBlock], "{:#?}", twin.violations);
}

#[test]
fn a_resource_that_was_not_stopped_with_the_marks_row_makes_the_run_void() {
    let form = || client_stopped(Half::Guarded);
    let until = "was not held until the stop was to end";
    void(&commits(form(), |one| one.released = None), I::Exercised, until);
    void(
        &commits(form(), |one| one.released = Some(ms(9))),
        I::Exercised,
        until,
    );
    void(&unseen(form()), I::Exercised, "was seen waiting");
    let another = stops(form(), |stop| stop.target = "H1".to_owned());
    void(&another, I::Exercised, "R was never stopped");
    let longer = stops(form(), |stop| stop.resumed = Some(ms(43)));
    void(&longer, I::Exercised, "was answered before the stop was over");
    let mut longer = form();
    longer.run.exercise = Exercise::MarkHeld { idle_ns: 40_000_000 };
    void(
        &broken(longer, |_| {}),
        I::Exercised,
        "before its idle transaction had to be over",
    );
    let unread = broken(form(), |tape| {
        remove(
            tape,
            |event| matches!(event, Event::Read(read) if read.by == "kit"),
        );
    });
    void(&unread, I::Exercised, "the kit did not read before");
    // A wait that is not the guard's own is not excused because another process of the resource stood still.
    let slow = broken(form(), |tape| {
        tape.run.bounds.deadline_ns = 1_000_000;
        tape.run.bounds.slack_ns = 1_000_000;
    });
    assert!(slow.breaks(I::BoundedBlock), "{:#?}", slow.violations);
}

#[test]
fn a_backend_that_did_not_stand_in_the_way_makes_the_run_void() {
    void(&unseen(backend_stopped()), I::Exercised, "was seen waiting");
    let another = stops(backend_stopped(), |stop| stop.target = "R".to_owned());
    void(&another, I::Exercised, "B was never stopped");
    let late = stops(backend_stopped(), |stop| stop.resumed = Some(ms(32)));
    assert_eq!(late.verdict, Verdict::Held);
    let slow = broken(backend_stopped(), |tape| {
        tape.run.bounds.deadline_ns = 1_000_000;
        tape.run.bounds.slack_ns = 1_000_000;
    });
    assert!(slow.breaks(I::BoundedBlock), "{:#?}", slow.violations);
    let let_in = broken(backend_stopped(), |tape| {
        reply(tape, "H2-raise-1", http(503, Some("unavailable")));
    });
    assert!(
        matches!(&let_in.verdict, Verdict::Inconclusive(why) if why.contains("expected BLK")),
        "{}",
        let_in.verdict
    );
}

#[test]
fn a_transaction_that_did_not_fail_or_was_committed_all_the_same_is_named() {
    let sound = broken(commit_failed(), |tape| {
        remove(
            tape,
            |event| matches!(event, Event::DbAnswer(answer) if answer.sqlstate.is_some()),
        );
    });
    void(&sound, I::Exercised, "nothing failed in the transaction");
    let early = broken(commit_failed(), |tape| {
        remove(tape, |event| {
            let of_first = |op: &Op| op.as_str() == "H1-write-1";
            matches!(event, Event::DbAnswer(one) if one.tag.is_some() && one.op.as_ref().is_some_and(of_first))
        });
    });
    void(&early, I::Exercised, "was not done before its COMMIT");
    let done = broken(commit_failed(), |tape| reply(tape, "H1-write-1", done("COMMIT")));
    assert!(done.breaks(I::Linearizable), "{:#?}", done.violations);
    // It took effect, whatever was answered.
    let landed = broken(commit_failed(), |tape| {
        tape.written(11, "batch-1", "g1", "g1");
    });
    assert!(landed.breaks(I::NoEffect), "{:#?}", landed.violations);
    let alone = broken(commit_failed(), |tape| {
        reply(tape, "H2-write-1", sql("40001", None));
        tape.events.retain(|(_, event)| {
            let of_second = |one: &pause_kit::history::Commit| one.xid == 12;
            !matches!(event, Event::Final(_)) && !matches!(event, Event::Commit(one) if of_second(one))
        });
        tape.last(&["g1"], Default::default(), &[("batch-9", OLD)]);
    });
    void(&alone, I::Exercised, "nothing was written after H1-write-1");
}
