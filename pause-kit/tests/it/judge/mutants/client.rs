//! What clients saw: invariants 2 to 5, 9 and 13.

use pause_kit::history::{Event, Exercise, Half, Op, Reply};
use pause_kit::judge::{Invariant as I, Judgement, Verdict};

use super::{broken, edit, good, is_answer, read_back, remove, reply, request, violated};
use crate::judge::forms::{held, idle, late_send, queued};
use crate::judge::tape::{NEW, http, ms, presented, sql};

#[test]
fn the_late_verdict_flipped_is_a_late_write_that_the_commit_order_does_not_bear_out() {
    let judgement = broken(good(), |tape| reply(tape, "H1-late", http(201, None)));
    violated(&judgement, I::RealTimeRefusal);
    assert!(judgement.breaks(I::Agreement) && judgement.breaks(I::Linearizable));
    let both = |judgement: &Judgement| {
        let found = judgement.violations.iter();
        found
            .filter(|violation| violation.why.contains("and the commit order does not"))
            .count()
    };
    assert_eq!(both(&judgement), 1, "{judgement:#?}");
    assert_eq!(both(&broken(late_send("S02", Half::Defeated), |_| {})), 0);
    for tape in [
        held(Half::Guarded),
        queued(Half::Guarded, true),
        queued(Half::Guarded, false),
    ] {
        let judgement = broken(tape, |tape| {
            reply(tape, "H1-late", http(201, None));
            edit(tape, |event| match event {
                Event::Read(read) if read.began == ms(50) => {
                    read.ids.push("g1:1".to_owned());
                    true
                }
                _ => false,
            });
        });
        violated(&judgement, I::DelayedPacket);
        assert!(judgement.breaks(I::Agreement));
    }
}

#[test]
fn a_late_write_counts_by_its_grant_whatever_token_it_bears() {
    // The path gave the late write its successor's token; the guard rightly let that number in, and the write is late.
    let judgement = broken(late_send("S02", Half::Defeated), |tape| {
        request(tape, "H1-late", |late| late.presented = presented(NEW, "g2"));
    });
    violated(&judgement, I::Order);
    assert!(judgement.breaks(I::RealTimeRefusal));
}

#[test]
fn a_refused_id_that_shows_up_has_had_an_effect() {
    let judgement = broken(good(), |tape| {
        read_back(tape, |last| last.ids.push("g1:1".to_owned()))
    });
    violated(&judgement, I::NoEffect);
    let judgement = broken(good(), |tape| {
        tape.read("kit", 55, &["g2:1", "g1:1"]);
    });
    violated(&judgement, I::NoEffect);
    // In the log alone: a row that was deleted again before anybody read.
    let judgement = broken(good(), |tape| {
        tape.written(30, "acct-1", "g1", "g1:1");
    });
    assert!(judgement.breaks(I::NoEffect), "{judgement:#?}");
    // A refused probe's write.
    let judgement = broken(good(), |tape| {
        read_back(tape, |last| last.ids.push("probe-61".to_owned()))
    });
    violated(&judgement, I::NoEffect);
}

#[test]
fn a_rightful_holder_refused_is_a_spurious_refusal_whatever_the_fence_called_it() {
    for (status, problem) in [
        (412, "stale"),
        (412, "collision"),
        (409, "unknown-epoch"),
        (428, "missing-grant"),
    ] {
        let judgement = broken(good(), |tape| {
            reply(tape, "H2-raise", http(status, Some(problem)))
        });
        violated(&judgement, I::NoSpuriousRefusal);
        // Before any newer grant was in touch, the older one is right as well.
        let judgement = broken(good(), |tape| {
            reply(tape, "H1-raise", http(status, Some(problem)))
        });
        violated(&judgement, I::NoSpuriousRefusal);
    }
    // The resource hid it behind a 500, and the path to the database shows it.
    for (sqlstate, spurious) in [("ZF001", true), ("ZF006", true), ("40001", false)] {
        let judgement = broken(good(), |tape| {
            reply(tape, "H2-raise", http(500, None));
            tape.db_answer("H2-raise", 18, sql(sqlstate, None));
        });
        assert_eq!(judgement.breaks(I::NoSpuriousRefusal), spurious, "{sqlstate}");
    }
    // What the resource refuses for its own reasons is none.
    let judgement = broken(good(), |tape| reply(tape, "H1-raise", http(404, None)));
    assert!(!judgement.breaks(I::NoSpuriousRefusal));
}

#[test]
fn a_read_that_misses_an_acknowledged_write_is_not_linearizable() {
    let judgement = broken(good(), |tape| {
        tape.read("kit", 30, &[]);
    });
    violated(&judgement, I::Linearizable);
    let judgement = broken(idle(Half::Guarded), |tape| {
        tape.read("kit", 5100, &[]);
    });
    violated(&judgement, I::Linearizable);
}

#[test]
fn a_successor_kept_waiting_breaks_the_bound() {
    let judgement = broken(good(), |tape| {
        tape.run.bounds.deadline_ns = 0;
        tape.run.bounds.slack_ns = 900_000;
    });
    violated(&judgement, I::BoundedBlock);
    // Blocked, and told so too late; the second attempt as well as the first.
    for op in ["H2-1", "H2-2"] {
        let judgement = broken(idle(Half::Guarded), |tape| {
            let began = tape.events.iter().find_map(|(at, event)| match event {
                Event::Request(request) if request.op == Op::new(op) => Some(*at),
                _ => None,
            });
            let late = ms(began.unwrap().as_nanos() / 1_000_000 + 2501);
            let answer = tape
                .events
                .iter_mut()
                .find(|(_, event)| is_answer(op)(event))
                .unwrap();
            answer.0 = late;
        });
        violated(&judgement, I::BoundedBlock);
    }
    // Seen waiting, and never answered.
    let judgement = broken(idle(Half::Defeated), |tape| remove(tape, is_answer("H2-1")));
    assert!(judgement.breaks(I::BoundedBlock));
    // Time in which the resource itself was stopped is not its guard's: of 24 ms, R stood still for 19.
    let first_in_the_socket = |deadline_ns| {
        broken(queued(Half::Guarded, true), |tape| {
            tape.run.bounds.deadline_ns = deadline_ns;
            tape.run.bounds.slack_ns = 0;
            remove(tape, |event| {
                is_answer("H2-raise")(event)
                    || matches!(event, Event::Request(raise) if raise.op == Op::new("H2-raise"))
            });
        })
    };
    assert!(!first_in_the_socket(5_000_000).breaks(I::BoundedBlock));
    assert!(first_in_the_socket(4_999_999).breaks(I::BoundedBlock));
}

#[test]
fn a_stale_refusal_before_an_acceptance_of_the_same_token_is_not_linearizable() {
    // H2's raise overlaps both, so either may be right, and each alone is; the two in this order are not.
    let judge_both = |first: Reply, second: Reply| {
        broken(good(), |tape| {
            tape.run.exercise = Exercise::Control;
            remove(tape, |event| {
                is_answer("H2-raise")(event) || matches!(event, Event::Stop(_))
            });
            tape.answer("H2-raise", 20, http(204, None));
            tape.request("H1-b", "g1", None, 17, 17).answer("H1-b", 18, first);
            tape.request("H1-c", "g1", None, 19, 19)
                .answer("H1-c", 20, second);
        })
    };
    let (stale, done) = (http(412, Some("stale")), http(204, None));
    assert_eq!(judge_both(done.clone(), stale.clone()).verdict, Verdict::Held);
    violated(&judge_both(stale, done), I::Linearizable);
}

#[test]
fn a_row_under_the_column_guard_shows_its_last_writer_alone() {
    let judge_reads = |first: &[&str], second: &[&str]| {
        broken(idle(Half::Defeated), |tape| {
            tape.read("kit", 9005, first).read("kit", 9030, second);
        })
    };
    assert!(!judge_reads(&["g1"], &["g2"]).breaks(I::Linearizable));
    assert!(judge_reads(&["g1"], &["g1"]).breaks(I::Linearizable));
    assert!(judge_reads(&["g1"], &["g1", "g2"]).breaks(I::Linearizable));
}
