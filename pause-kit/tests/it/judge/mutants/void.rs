//! Whether the run counts: invariants 15 and 16.

use pause_kit::history::{Cause, Event, Exercise, GuardForm, Half, Hold, Op, ProbeKind};
use pause_kit::judge::{Invariant as I, Verdict, judge};

use super::{broken, commit, edit, good, is_answer, remove, request, violated, void};
use crate::judge::forms::{held, idle, late_send, queued, restarted_resource};
use crate::judge::tape::{Tape, http, ms};

#[test]
fn a_resource_that_was_not_killed_and_started_again_in_between_makes_the_run_void() {
    let form = || restarted_resource(Half::Guarded);
    let words = "the resource was not killed";
    for judgement in [
        broken(form(), |tape| {
            remove(tape, |event| matches!(event, Event::Killed(_)))
        }),
        broken(form(), |tape| {
            remove(tape, |event| matches!(event, Event::Restarted(_)))
        }),
        // Before the successor wrote, and after the late write began.
        broken(form(), |tape| {
            let killed = |event: &Event| matches!(event, Event::Killed(_));
            let one = tape.events.iter_mut().find(|(_, event)| killed(event));
            one.expect("it was killed").0 = ms(20);
        }),
        broken(form(), |tape| {
            let again = |event: &Event| matches!(event, Event::Restarted(_));
            let one = tape.events.iter_mut().find(|(_, event)| again(event));
            one.expect("it was started again").0 = ms(45);
        }),
        broken(form(), |tape| {
            edit(tape, |event| match event {
                Event::Restarted(again) => {
                    again.pid = 5_000;
                    true
                }
                _ => false,
            });
        }),
        broken(form(), |tape| {
            edit(tape, |event| match event {
                Event::Killed(killed) => {
                    killed.target = "H2".to_owned();
                    true
                }
                _ => false,
            });
        }),
    ] {
        void(&judgement, I::Exercised, words);
    }
    let judgement = broken(form(), |tape| {
        remove(tape, |event| matches!(event, Event::Stop(_)))
    });
    void(&judgement, I::Exercised, "never stopped");
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
    let judgement = broken(good(), |tape| tape.run.attempts.clear());
    void(&judgement, I::Exercised, "never made");
    for (form, guard) in [
        (good as fn() -> Tape, GuardForm::Mark),
        (|| idle(Half::Guarded), GuardForm::Column),
    ] {
        for kind in ProbeKind::always_asked(guard) {
            // Its write is then nobody's, which is worse.
            if *kind == ProbeKind::Bystander {
                continue;
            }
            let judgement = broken(form(), |tape| {
                remove(
                    tape,
                    |event| matches!(event, Event::Probe(probe) if probe.probe == *kind),
                );
            });
            void(&judgement, I::Exercised, &format!("{kind:?}"));
        }
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

    let nothing_lay = broken(queued(Half::Guarded, false), |tape| {
        edit(tape, |event| match event {
            Event::Queued(queued) => {
                queued.bytes = 0;
                true
            }
            _ => false,
        });
    });
    void(&nothing_lay, I::Exercised, "lay unread");
    let for_another = broken(idle(Half::Guarded), |tape| {
        edit(tape, |event| match event {
            Event::Waiting(waiting) => {
                waiting.on = "H3".to_owned();
                true
            }
            _ => false,
        });
    });
    void(&for_another, I::Exercised, "seen waiting");
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
fn a_lease_that_ended_in_another_way_makes_a_run_void() {
    for (scenario, other) in [
        ("S01", Cause::Revoked),
        ("S02", Cause::Expired),
        ("S02", Cause::Gone),
    ] {
        let judgement = broken(late_send(scenario, Half::Guarded), |tape| {
            edit(tape, |event| match event {
                Event::LeaseEnd(end) => {
                    end.cause = other;
                    true
                }
                _ => false,
            });
        });
        void(&judgement, I::Exercised, &format!("the lease was {other}"));
    }
}

#[test]
fn held_bytes_are_void_without_a_read_of_the_kits_on_either_side_of_their_release() {
    let is_kits = |began: u64| move |event: &Event| matches!(event, Event::Read(read) if read.by == "kit" && read.began == ms(began));
    for (began, word) in [(30, "before the release"), (50, "after the release")] {
        let gone = broken(held(Half::Guarded), |tape| remove(tape, is_kits(began)));
        void(&gone, I::Exercised, word);
    }
    let before_the_write = broken(held(Half::Guarded), |tape| {
        remove(tape, is_kits(30));
        tape.read("kit", 20, &[]);
    });
    void(&before_the_write, I::Exercised, "before the release");
}

#[test]
fn a_queued_write_is_void_unless_its_holder_died_while_it_lay_there() {
    let killed = |at: Option<u64>| {
        broken(queued(Half::Guarded, true), |tape| {
            let kill = tape
                .events
                .iter()
                .position(|(_, event)| matches!(event, Event::Killed(_)));
            let (_, event) = tape.events.remove(kill.unwrap());
            if let Some(at) = at {
                tape.push(at, event);
            }
        })
    };
    assert_eq!(killed(Some(14)).verdict, Verdict::Held);
    for at in [None, Some(11), Some(42)] {
        void(&killed(at), I::Exercised, "H1 was not killed between");
    }
}

#[test]
fn a_transaction_that_stood_idle_is_void_unless_its_bound_ended_it() {
    let first = |change: fn(&mut Tape)| broken(idle(Half::Guarded), change);
    let unanswered = first(|tape| remove(tape, is_answer("H1-first")));
    void(&unanswered, I::Exercised, "H1-first was not answered as failed");
    let too_late = first(|tape| tape.run.exercise = Exercise::IdleInTransaction { idle_ns: 1 });
    void(&too_late, I::Exercised, "H1-first was not ended by the bound");
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
    let backwards = |tape, change: fn(&mut Event) -> bool| {
        let judgement = broken(tape, |tape| edit(tape, change));
        void(&judgement, I::OneClock, "before it begins");
    };
    backwards(good(), |event| match event {
        Event::Stop(stop) => {
            stop.asked = ms(11);
            true
        }
        _ => false,
    });
    // A hold or a stop of another request, which the exercise does not ask about.
    let mut tape = good();
    let (op, released) = (Op::new("H2-write"), Some(ms(20)));
    tape.push(
        21,
        Hold {
            op,
            byte: 3,
            length: None,
            released,
        },
    );
    backwards(tape, |event| matches!(event, Event::Hold(_)));
    let mut tape = good();
    tape.stop("R", 50, 49);
    backwards(tape, |event| matches!(event, Event::Stop(_)));
    backwards(good(), |event| match event {
        Event::Read(read) if read.began == ms(50) => {
            read.began = ms(52);
            true
        }
        _ => false,
    });
    let judgement = broken(good(), |tape| {
        remove(
            tape,
            |event| matches!(event, Event::Answer(answer) if answer.op == Op::new("H1-raise")),
        );
        tape.answer("H1-raise", 0, http(204, None));
    });
    void(&judgement, I::OneClock, "answered before");
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
