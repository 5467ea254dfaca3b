//! Good histories with one thing broken, and the invariant that must be named.

use pause_kit::history::{
    Change, Commit, DbAnswer, Event, Final, Half, LeaseEnd, Op, ProbeKind, Reply, Request, TokenNumber,
};
use pause_kit::judge::{Invariant as I, Judgement, Verdict, judge};

use super::forms::{held, idle, late_send, queued};
use super::tape::{NEW, OLD, Tape, done, http, ms, presented, sql};

fn good() -> Tape {
    late_send("S02", Half::Guarded)
}

/// Breaks something and judges.
fn broken(mut tape: Tape, breaks: impl FnOnce(&mut Tape)) -> Judgement {
    breaks(&mut tape);
    judge(&tape.history())
}

/// The first violation is the one named.
#[track_caller]
fn violated(judgement: &Judgement, invariant: I) {
    match &judgement.verdict {
        Verdict::Violated(first) if first.invariant == invariant => {}
        other => panic!("expected {invariant}, got {other}: {:#?}", judgement.violations),
    }
}

#[track_caller]
fn void(judgement: &Judgement, invariant: I, word: &str) {
    match &judgement.verdict {
        Verdict::Void(reason) if reason.invariant == invariant && reason.why.contains(word) => {}
        other => panic!("expected void by {invariant} with {word:?}, got {other}"),
    }
}

#[track_caller]
fn inconclusive(judgement: &Judgement, word: &str) {
    match &judgement.verdict {
        Verdict::Inconclusive(why) if why.contains(word) => {}
        other => panic!("expected inconclusive with {word:?}, got {other}"),
    }
}

/// Edits every event for which `edit` says that it is the one; at least one must be.
#[track_caller]
fn edit(tape: &mut Tape, mut edit: impl FnMut(&mut Event) -> bool) {
    let edited = tape
        .events
        .iter_mut()
        .filter_map(|(_, event)| edit(event).then_some(()))
        .count();
    assert!(edited > 0, "nothing to break");
}

#[track_caller]
fn remove(tape: &mut Tape, mut which: impl FnMut(&Event) -> bool) {
    let before = tape.events.len();
    tape.events.retain(|(_, event)| !which(event));
    assert!(tape.events.len() < before, "nothing to remove");
}

#[track_caller]
fn reply(tape: &mut Tape, op: &str, reply: Reply) {
    edit(tape, |event| match event {
        Event::Answer(answer) if answer.op == Op::new(op) => {
            answer.reply = reply.clone();
            true
        }
        _ => false,
    });
}

#[track_caller]
fn database(tape: &mut Tape, change: impl Fn(&mut DbAnswer)) {
    edit(tape, |event| match event {
        Event::DbAnswer(answer) => {
            change(answer);
            true
        }
        _ => false,
    });
}

#[track_caller]
fn read_back(tape: &mut Tape, change: impl Fn(&mut Final)) {
    edit(tape, |event| match event {
        Event::Final(last) => {
            change(last);
            true
        }
        _ => false,
    });
}

#[track_caller]
fn request(tape: &mut Tape, op: &str, change: impl Fn(&mut Request)) {
    edit(tape, |event| match event {
        Event::Request(request) if request.op == Op::new(op) => {
            change(request);
            true
        }
        _ => false,
    });
}

#[track_caller]
fn commit(tape: &mut Tape, order: u64, change: impl Fn(&mut Commit)) {
    edit(tape, |event| match event {
        Event::Commit(commit) if commit.order == order => {
            change(commit);
            true
        }
        _ => false,
    });
}

fn is_answer(op: &'static str) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::Answer(answer) if answer.op == Op::new(op))
}

#[test]
fn the_late_verdict_flipped_is_a_late_write_that_the_commit_order_does_not_bear_out() {
    let judgement = broken(good(), |tape| reply(tape, "H1-late", http(201, None)));
    violated(&judgement, I::RealTimeRefusal);
    assert!(judgement.breaks(I::Agreement) && judgement.breaks(I::Linearizable));
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
fn commits_swapped_break_the_order() {
    let judgement = broken(good(), |tape| {
        commit(tape, 1, |commit| commit.order = 100);
    });
    violated(&judgement, I::Order);
    assert!(judgement.breaks(I::DurableMark), "the mark fell, too");
}

#[test]
fn a_grant_that_comes_back_breaks_contiguity() {
    let judgement = broken(late_send("S01", Half::Defeated), |_| {});
    assert!(judgement.breaks(I::Contiguity));
    assert!(!broken(good(), |_| {}).breaks(I::Contiguity));
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
    // What the resource refuses for its own reasons is none.
    let judgement = broken(good(), |tape| reply(tape, "H1-raise", http(404, None)));
    assert!(!judgement.breaks(I::NoSpuriousRefusal));
}

#[test]
fn what_belongs_to_no_grant_breaks_identity() {
    let stranger = |token| Change::Admission {
        class: "paydb.account".to_owned(),
        key: "acct-1".to_owned(),
        token: TokenNumber::new(token),
        grant: Some("px".to_owned()),
    };
    for token in [NEW, NEW + 1, OLD, 0, -1] {
        let judgement = broken(good(), |tape| {
            tape.commit(30, stranger(token));
        });
        assert!(judgement.breaks(I::Identity), "{token}: {judgement:#?}");
    }
    for grant in [None, Some("px".to_owned())] {
        let judgement = broken(good(), |tape| {
            commit(tape, 4, |commit| {
                if let Change::Write { grant: of, .. } = &mut commit.change {
                    *of = grant.clone();
                }
            });
        });
        violated(&judgement, I::Identity);
    }
    // The right grant with a number that is not its own, as when a guard reads tokens as doubles.
    let judgement = broken(good(), |tape| {
        tape.admission(31, "acct-1", "g2", NEW + 1);
    });
    violated(&judgement, I::Identity);
    // A grant of one key used on another.
    let judgement = broken(good(), |tape| {
        tape.admission(31, "acct-2", "g2", NEW);
    });
    violated(&judgement, I::Identity);
    // And the answer alone, with no commit behind it.
    let judgement = broken(good(), |tape| {
        request(tape, "H1-raise", |raise| raise.grant = Some("px".to_owned()))
    });
    violated(&judgement, I::Identity);
}

#[test]
fn two_grants_with_one_token_break_identity() {
    let twin = |event: &mut Event| match event {
        Event::Grant(record) if record.grant == "g2" => {
            record.token = TokenNumber::new(OLD);
            true
        }
        _ => false,
    };
    let judgement = broken(good(), |tape| {
        edit(tape, twin);
        for order in [2, 3] {
            commit(tape, order, |commit| {
                if let Change::Admission { token, .. } = &mut commit.change {
                    *token = TokenNumber::new(OLD);
                }
            });
        }
    });
    assert!(
        judgement.breaks(I::Identity) && judgement.breaks(I::Grants),
        "{judgement:#?}"
    );
}

#[test]
fn grants_out_of_order_or_side_by_side_are_the_stores_fault() {
    let judgement = broken(good(), |tape| {
        edit(tape, |event| match event {
            Event::Grant(record) if record.grant == "g2" => {
                record.token = TokenNumber::new(OLD - 1);
                true
            }
            _ => false,
        });
    });
    assert!(judgement.breaks(I::Grants));
    let judgement = broken(good(), |tape| {
        remove(tape, |event| matches!(event, Event::LeaseEnd(_)))
    });
    violated(&judgement, I::Grants);
    let judgement = broken(good(), |tape| {
        remove(tape, |event| matches!(event, Event::LeaseEnd(_)));
        tape.push(
            18,
            LeaseEnd {
                grant: "g1".to_owned(),
                cause: "revoked".to_owned(),
            },
        );
    });
    violated(&judgement, I::Grants);
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
fn a_write_whose_transaction_did_not_write_the_mark_is_not_one_step() {
    let judgement = broken(good(), |tape| commit(tape, 4, |commit| commit.xid = 99));
    violated(&judgement, I::Linearizable);
}

#[test]
fn an_id_with_two_effects_or_two_answers_breaks_idempotency() {
    let judgement = broken(good(), |tape| {
        tape.admission(30, "acct-1", "g2", NEW)
            .written(30, "acct-1", "g2", "g2:1");
        read_back(tape, |last| {
            *last = Final {
                balances: super::tape::balances(940, 90),
                ..last.clone()
            }
        });
    });
    violated(&judgement, I::Idempotency);
    let twice = |stored| {
        broken(good(), |tape| {
            let reply = Reply::Http {
                status: 201,
                problem: None,
                stored,
            };
            tape.request("H2-again", "g2", Some("g2:1"), 25, 25)
                .answer("H2-again", 26, reply);
        })
    };
    violated(&twice(false), I::Idempotency);
    assert_eq!(twice(true).verdict, Verdict::Held);
    let judgement = broken(good(), |tape| {
        read_back(tape, |last| last.ids.push("g2:1".to_owned()))
    });
    violated(&judgement, I::Idempotency);
}

#[test]
fn a_mark_below_an_acknowledged_token_is_not_durable() {
    let judgement = broken(good(), |tape| {
        read_back(tape, |last| last.marks[0].token = TokenNumber::new(OLD))
    });
    violated(&judgement, I::DurableMark);
    let judgement = broken(good(), |tape| read_back(tape, |last| drop(last.marks.remove(0))));
    violated(&judgement, I::DurableMark);
}

#[test]
fn balances_that_are_not_the_fold_break_the_ledger() {
    let judgement = broken(good(), |tape| {
        read_back(tape, |last| last.balances.extend([("acct-1".to_owned(), 971)]));
    });
    violated(&judgement, I::Ledger);
    let judgement = broken(good(), |tape| {
        commit(tape, 4, |commit| {
            if let Change::Write { moves, .. } = &mut commit.change {
                moves[0].amount -= 1;
            }
        });
        read_back(tape, |last| last.balances.extend([("acct-1".to_owned(), 969)]));
    });
    violated(&judgement, I::Ledger);
    let judgement = broken(good(), |tape| {
        tape.read("kit", 55, &["g2:1"]);
        edit(tape, |event| match event {
            Event::Read(read) if read.began == ms(55) => {
                read.balances = super::tape::balances(970, 0);
                true
            }
            _ => false,
        });
    });
    violated(&judgement, I::Ledger);
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
    // Time in which the resource itself was stopped is not its guard's.
    let judgement = broken(queued(Half::Guarded, true), |tape| {
        tape.run.bounds.deadline_ns = 5_000_000;
        tape.run.bounds.slack_ns = 1_000_000;
    });
    assert_eq!(judgement.verdict, Verdict::Held, "{judgement:#?}");
}

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
fn an_acknowledged_write_that_the_log_does_not_hold_is_a_disagreement() {
    let judgement = broken(good(), |tape| {
        remove(
            tape,
            |event| matches!(event, Event::Commit(commit) if commit.order == 4),
        )
    });
    assert!(judgement.breaks(I::Agreement) && judgement.breaks(I::Ledger));
    let judgement = broken(good(), |tape| {
        remove(
            tape,
            |event| matches!(event, Event::Commit(commit) if commit.order == 1),
        )
    });
    violated(&judgement, I::Agreement);
    // An effect that nobody sent, and one that reading back does not show.
    let judgement = broken(good(), |tape| {
        tape.admission(30, "acct-1", "g2", NEW)
            .written(30, "acct-1", "g2", "g2:2");
    });
    assert!(judgement.breaks(I::Agreement));
    let judgement = broken(good(), |tape| read_back(tape, |last| drop(last.ids.remove(0))));
    violated(&judgement, I::Agreement);
    let judgement = broken(good(), |tape| {
        read_back(tape, |last| last.ids.push("g7:1".to_owned()))
    });
    violated(&judgement, I::Agreement);
    let judgement = broken(idle(Half::Guarded), |tape| {
        read_back(tape, |last| last.ids.clear())
    });
    violated(&judgement, I::Agreement);
}

#[test]
fn a_run_that_did_not_go_through_it_is_void() {
    let stop = |change: fn(&mut pause_kit::history::Stop)| {
        broken(good(), |tape| {
            edit(tape, |event| match event {
                Event::Stop(stop) => {
                    change(stop);
                    true
                }
                _ => false,
            });
        })
    };
    void(&stop(|stop| stop.confirmed = 2), I::Exercised, "2 of 3 tasks");
    void(
        &stop(|stop| (stop.tasks, stop.confirmed) = (0, 0)),
        I::Exercised,
        "0 of 0",
    );
    void(
        &stop(|stop| stop.cpu_after += 1),
        I::Exercised,
        "used the processor",
    );
    void(&stop(|stop| stop.resumed = None), I::Exercised, "never let go on");
    void(
        &stop(|stop| stop.resumed = Some(ms(42))),
        I::Exercised,
        "began before",
    );
    void(
        &stop(|stop| stop.resumed = Some(ms(22))),
        I::Exercised,
        "no successor wrote",
    );
    void(
        &stop(|stop| stop.resumed = Some(ms(15))),
        I::Exercised,
        "no successor was granted",
    );
    void(
        &stop(|stop| stop.resumed = Some(ms(12))),
        I::Exercised,
        "did not end inside",
    );
    void(
        &stop(|stop| stop.target = "H2".to_owned()),
        I::Exercised,
        "never stopped",
    );
    let judgement = broken(good(), |tape| {
        remove(tape, |event| matches!(event, Event::Final(_)))
    });
    void(&judgement, I::Exercised, "read back");
    let judgement = broken(good(), |tape| tape.run.stale_attempt = None);
    void(&judgement, I::Exercised, "never made");
    for kind in [
        ProbeKind::Collision,
        ProbeKind::OutsideRange,
        ProbeKind::MissingToken,
    ] {
        let judgement = broken(good(), |tape| {
            remove(
                tape,
                |event| matches!(event, Event::Probe(probe) if probe.probe == kind),
            );
        });
        void(&judgement, I::Exercised, &format!("{kind:?}"));
    }
}

#[test]
fn each_form_of_the_exercise_has_its_own_reasons_to_be_void() {
    let no_hold = broken(held(Half::Guarded), |tape| {
        remove(tape, |event| matches!(event, Event::Hold(_)))
    });
    void(&no_hold, I::Exercised, "never held");
    let hold = |released| {
        broken(held(Half::Guarded), |tape| {
            edit(tape, |event| match event {
                Event::Hold(hold) => {
                    hold.released = released;
                    true
                }
                _ => false,
            });
        })
    };
    void(&hold(None), I::Exercised, "never released");
    void(&hold(Some(ms(22))), I::Exercised, "no successor wrote");
    void(&hold(Some(ms(42))), I::Exercised, "after the release");

    for op in ["H1-late", "H2-write"] {
        let judgement = broken(queued(Half::Guarded, false), |tape| {
            remove(
                tape,
                |event| matches!(event, Event::Queued(queued) if queued.op == Op::new(op)),
            );
        });
        void(&judgement, I::Exercised, "lay unread");
    }
    let no_raise = broken(queued(Half::Guarded, false), |tape| {
        remove(tape, |event| {
            is_answer("H2-raise")(event)
                || matches!(event, Event::Request(raise) if raise.op == Op::new("H2-raise"))
        });
    });
    void(&no_raise, I::Exercised, "mark raised");

    let unseen = broken(idle(Half::Guarded), |tape| {
        remove(tape, |event| matches!(event, Event::Waiting(_)))
    });
    void(&unseen, I::Exercised, "seen waiting");
    let not_passed = broken(idle(Half::Guarded), |tape| {
        remove(tape, |event| matches!(event, Event::DbAnswer(_)))
    });
    void(&not_passed, I::Exercised, "no guarded statement");
    let early = broken(idle(Half::Guarded), |tape| {
        edit(tape, |event| match event {
            Event::Stop(stop) => {
                stop.resumed = Some(ms(7400));
                true
            }
            _ => false,
        });
    });
    void(&early, I::Exercised, "before all bounds");
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

#[test]
fn violated_beats_void_and_void_beats_inconclusive() {
    let judgement = broken(late_send("S02", Half::Defeated), |tape| {
        remove(tape, |event| matches!(event, Event::Stop(_)));
    });
    violated(&judgement, I::Order);
    let judgement = broken(good(), |tape| {
        remove(tape, |event| {
            matches!(event, Event::Stop(_)) || is_answer("H1-late")(event)
        });
    });
    void(&judgement, I::Exercised, "never stopped");
}

#[test]
fn times_that_run_backwards_make_a_run_void() {
    let judgement = broken(good(), |tape| {
        request(tape, "H2-write", |write| write.sent = Some(ms(20)))
    });
    void(&judgement, I::OneClock, "before it begins");
    let judgement = broken(good(), |tape| {
        tape.answer("H9-write", 70, http(201, None));
    });
    void(&judgement, I::OneClock, "H9-write");
    let judgement = broken(good(), |tape| {
        tape.answer("H2-write", 70, http(201, None));
    });
    void(&judgement, I::OneClock, "H2-write");
    let judgement = broken(good(), |tape| commit(tape, 2, |commit| commit.order = 3));
    void(&judgement, I::OneClock, "one place");
}

#[test]
fn lines_out_of_the_order_of_time_make_a_run_void() {
    let mut file = Vec::new();
    good().history().write(&mut file).unwrap();
    let text = String::from_utf8(file).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let kit = lines
        .iter()
        .position(|line| line.contains(r#""by":"kit""#))
        .unwrap();
    lines.swap(kit, kit - 1);
    let swapped = lines.join("\n") + "\n";
    let history = pause_kit::history::History::read(swapped.as_bytes()).unwrap();
    void(&judge(&history), I::OneClock, "order of time");
}
