//! The stale attempt: invariant 14 and its outcome.

use pause_kit::history::{Cause, Event, Half, TokenNumber};
use pause_kit::judge::{Invariant as I, Verdict};

use super::{
    broken, commit, database, good, inconclusive, is_answer, read_back, remove, reply, violated, void,
};
use crate::judge::forms::idle;
use crate::judge::tape::{NEW, OLD, done, http, sql};

#[test]
fn the_stale_attempt_refused_in_other_words_breaks_the_reason() {
    let details = [
        format!("presented {NEW}, seen {NEW}"),
        format!("presented {OLD}, seen {OLD}"),
        format!("presented {OLD}, seen {}", NEW + 1),
        format!("presented {NEW}, seen {OLD}"),
        format!("presented {OLD}, seen {NEW}."),
        format!("Presented {OLD}, seen {NEW}"),
        String::new(),
    ];
    for detail in details {
        let judgement = broken(good(), |tape| {
            database(tape, |answer| answer.detail = Some(detail.clone()))
        });
        violated(&judgement, I::Reason);
    }
    let judgement = broken(good(), |tape| database(tape, |answer| answer.detail = None));
    violated(&judgement, I::Reason);
    for sqlstate in ["ZF002", "ZF004", "ZF005", "P0001", "42501", "22P02"] {
        for status in [412, 500] {
            let judgement = broken(good(), |tape| {
                database(tape, |answer| answer.sqlstate = Some(sqlstate.to_owned()));
                reply(tape, "H1-late", http(status, (status == 412).then_some("stale")));
            });
            violated(&judgement, I::Reason);
        }
    }
    for (status, problem) in [
        (409, Some("stale")),
        (412, Some("collision")),
        (428, Some("missing-token")),
        (404, None),
        (422, None),
    ] {
        let judgement = broken(good(), |tape| reply(tape, "H1-late", http(status, problem)));
        violated(&judgement, I::Reason);
    }
    let wrong = sql("ZF001", Some(&format!("presented {OLD}, seen {OLD}")));
    let judgement = broken(idle(Half::Guarded), |tape| reply(tape, "H1-late", wrong));
    violated(&judgement, I::Reason);
}

#[test]
fn an_attempt_without_a_clear_answer_is_inconclusive() {
    let judgement = broken(good(), |tape| remove(tape, is_answer("H1-late")));
    inconclusive(&judgement, "no answer");
    for (status, problem) in [
        (500, Some("unknown-outcome")),
        (500, None),
        (503, Some("blocked")),
        (503, None),
    ] {
        let judgement = broken(good(), |tape| reply(tape, "H1-late", http(status, problem)));
        inconclusive(&judgement, "neither as stale nor as done");
    }
    let judgement = broken(good(), |tape| {
        remove(tape, |event| matches!(event, Event::DbAnswer(_)))
    });
    inconclusive(&judgement, "were not seen");
    for sqlstate in ["40001", "55P03", "57P01", "08006"] {
        let judgement = broken(idle(Half::Guarded), |tape| {
            reply(tape, "H1-late", sql(sqlstate, None))
        });
        inconclusive(&judgement, "H1-late");
    }
}

#[test]
fn a_takeover_that_never_blocked_is_not_what_the_scenario_expects() {
    let judgement = broken(idle(Half::Guarded), |tape| {
        remove(tape, |event| is_answer("H2-1")(event) || is_answer("H2-2")(event));
        tape.answer("H2-1", 2030, sql("40001", None))
            .answer("H2-2", 4110, sql("40001", None));
    });
    inconclusive(&judgement, "expected BLK, got REF");
    // The first transaction was committed before the takeover, and the log says so too: nothing was wrong, and the successor
    // had nobody's end to wait for. It did not stand idle until its bound ended it.
    let judgement = broken(idle(Half::Guarded), |tape| {
        reply(tape, "H1-first", done("COMMIT"));
        tape.written(11, "batch-1", "g1", "g1");
        commit(tape, 3, |commit| commit.order = 0);
    });
    void(&judgement, I::Exercised, "H1-first was not answered as failed");
}

#[test]
fn the_mark_named_is_the_one_that_was_there_when_the_attempt_began() {
    for (seen, right) in [(NEW, false), (NEW + 1, true), (NEW + 2, false)] {
        let judgement = broken(good(), |tape| {
            tape.lease_end(25, "g2", Cause::Released)
                .grant(26, "H3", "g3")
                .raise("H3-raise", "g3", 27);
            tape.admission(14, "acct-1", "g3", NEW + 1);
            read_back(tape, |last| last.marks[0].token = TokenNumber::new(NEW + 1));
            let detail = format!("presented {OLD}, seen {seen}");
            database(tape, |answer| answer.detail = Some(detail.clone()));
        });
        if right {
            assert_eq!(judgement.verdict, Verdict::Held, "{judgement:#?}");
        } else {
            violated(&judgement, I::Reason);
        }
    }
}
