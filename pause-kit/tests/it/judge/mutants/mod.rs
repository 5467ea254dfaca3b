//! Good histories with one thing broken, and the invariant that must be named.

mod client;
mod log;
mod reason;
mod void;

use pause_kit::history::{Commit, DbAnswer, Event, Final, Half, Op, Reply, Request};
use pause_kit::judge::{Invariant as I, Judgement, Verdict, judge};

use super::forms::late_send;
use super::tape::Tape;

fn good() -> Tape {
    late_send("S02", Half::Guarded)
}

/// Breaks something and judges.
pub(super) fn broken(mut tape: Tape, breaks: impl FnOnce(&mut Tape)) -> Judgement {
    breaks(&mut tape);
    judge(&tape.history())
}

/// The first violation is the one named.
#[track_caller]
pub(super) fn violated(judgement: &Judgement, invariant: I) {
    match &judgement.verdict {
        Verdict::Violated(first) if first.invariant == invariant => {}
        other => panic!("expected {invariant}, got {other}: {:#?}", judgement.violations),
    }
}

#[track_caller]
pub(super) fn void(judgement: &Judgement, invariant: I, word: &str) {
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
pub(super) fn edit(tape: &mut Tape, mut edit: impl FnMut(&mut Event) -> bool) {
    let edited = tape
        .events
        .iter_mut()
        .filter_map(|(_, event)| edit(event).then_some(()))
        .count();
    assert!(edited > 0, "nothing to break");
}

#[track_caller]
pub(super) fn remove(tape: &mut Tape, mut which: impl FnMut(&Event) -> bool) {
    let before = tape.events.len();
    tape.events.retain(|(_, event)| !which(event));
    assert!(tape.events.len() < before, "nothing to remove");
}

#[track_caller]
pub(super) fn reply(tape: &mut Tape, op: &str, reply: Reply) {
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
pub(super) fn request(tape: &mut Tape, op: &str, change: impl Fn(&mut Request)) {
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

pub(super) fn is_answer(op: &'static str) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::Answer(answer) if answer.op == Op::new(op))
}
