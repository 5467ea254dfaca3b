//! The stale attempt: invariant 14 and its outcome.

use pause_kit::history::{Event, Half};
use pause_kit::judge::{Invariant as I, Verdict};

use super::{broken, database, good, inconclusive, is_answer, remove, reply, violated};
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
    // The first transaction was committed after all, and the log says so too: then there was nothing to refuse.
    let judgement = broken(idle(Half::Guarded), |tape| {
        tape.answer("H1-first", 5001, done("COMMIT"));
    });
    assert_ne!(judgement.verdict, Verdict::Held);
}
