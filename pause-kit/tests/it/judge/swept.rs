//! A good history of a byte sweep, and what is void in it.

use pause_kit::history::{Attempt, Cause, Event, Exercise, Half, Hold, Op, Outcome};
use pause_kit::judge::{Invariant as I, Verdict, judge};

use super::mutants::{broken, edit, remove, request, void};
use super::takeovers::{begin, committed, end, late_commit, write};
use super::tape::{NEW, OLD, Tape, http, ms, sql};

/// How many bytes a write has here.
const BYTES: u64 = 6;

/// S08: as many late writes as one has bytes, each held after another number of them.
pub(crate) fn swept(half: Half) -> Tape {
    let mut tape = begin("S08", half, Exercise::Swept { bytes: BYTES });
    tape.run.attempts = (1..=BYTES)
        .map(|number| Attempt::new(format!("H1-write-{number}"), Outcome::Refused))
        .collect();
    for byte in 0..BYTES {
        let (op, released) = (format!("H1-write-{}", byte + 1), 40 + 2 * byte);
        tape.request(&op, "g1", Some(&format!("g1:{}", byte + 1)), 5 + byte, released);
        let hold = Hold {
            op: Op::new(&op),
            byte,
            length: Some(BYTES),
            released: Some(ms(released)),
        };
        tape.push(5 + byte, hold);
        if half == Half::Guarded {
            let detail = format!("presented {OLD}, seen {NEW}");
            tape.db_answer(&op, released + 1, sql("ZF001", Some(&detail)))
                .answer(&op, released + 1, http(412, Some("stale")));
        } else {
            tape.answer(&op, released + 1, http(201, None));
        }
    }
    tape.lease_end(15, "g1", Cause::Revoked).grant(16, "H2", "g2");
    tape.raise("H2-raise-1", "g2", 17).read("H2", 19, &[]);
    write(&mut tape, "H2-write-1", "g2:1", 21);
    tape.read("kit", 30, &["g2:1"]);
    let late: Vec<String> = (1..=BYTES).map(|number| format!("g1:{number}")).collect();
    let late: Vec<&str> = late.iter().map(String::as_str).collect();
    match half {
        Half::Guarded => tape.read("kit", 60, &["g2:1"]),
        Half::Defeated => tape.read("kit", 60, &[&["g2:1"], late.as_slice()].concat()),
    };
    tape.admission(10, "acct-1", "g1", OLD)
        .admission(11, "acct-1", "g2", NEW);
    committed(&mut tape, 12, "g2", "g2:1");
    for (number, id) in (13..).zip(&late) {
        late_commit(&mut tape, number, "g2", id);
    }
    // The bystander's transaction is a later one.
    end(&mut tape, &["g2:1"], &late, "g2");
    tape
}

#[test]
fn a_sweep_holds_with_as_many_refusals_as_bytes_and_its_twin_shows_each_write() {
    let judgement = judge(&swept(Half::Guarded).history());
    assert_eq!(judgement.verdict, Verdict::Held, "{:#?}", judgement.violations);
    assert_eq!(judgement.outcome().as_deref(), Some("REF x6"));
    let twin = judge(&swept(Half::Defeated).history());
    let late = twin
        .violations
        .iter()
        .filter(|one| one.invariant == I::DelayedPacket);
    assert_eq!(late.count(), 6, "{:#?}", twin.violations);
    assert!(!twin.breaks(I::Agreement), "{:#?}", twin.violations);
    // One that is let in among many that are refused is found.
    let one = broken(swept(Half::Guarded), |tape| {
        edit(tape, |event| match event {
            Event::Answer(answer) if answer.op == Op::new("H1-write-4") => {
                answer.reply = http(201, None);
                true
            }
            _ => false,
        });
    });
    assert!(one.breaks(I::DelayedPacket), "{:#?}", one.violations);
}

#[test]
fn a_sweep_that_leaves_a_byte_out_or_lets_a_write_go_too_early_is_void() {
    let holds = |op: &'static str, change: fn(&mut Hold)| {
        broken(swept(Half::Guarded), |tape| {
            edit(tape, |event| match event {
                Event::Hold(hold) if hold.op == Op::new(op) => {
                    change(hold);
                    true
                }
                _ => false,
            });
        })
    };
    let words = "H1-write-3 was not held after 2 of 6 bytes, and let go";
    void(&holds("H1-write-3", |hold| hold.byte = 3), I::Exercised, words);
    void(
        &holds("H1-write-3", |hold| hold.length = Some(7)),
        I::Exercised,
        words,
    );
    void(
        &holds("H1-write-3", |hold| hold.released = None),
        I::Exercised,
        words,
    );
    let early = holds("H1-write-3", |hold| hold.released = Some(ms(20)));
    void(&early, I::Exercised, "no successor wrote");
    let sent = broken(swept(Half::Guarded), |tape| {
        request(tape, "H1-write-5", |one| one.sent = Some(ms(30)));
    });
    void(
        &sent,
        I::Exercised,
        "H1-write-5 was not sent to its end after the release",
    );
    let fewer = broken(swept(Half::Guarded), |tape| drop(tape.run.attempts.pop()));
    void(&fewer, I::Exercised, "5 writes of 6 bytes do not sweep them");
    let unread = broken(swept(Half::Guarded), |tape| {
        remove(
            tape,
            |event| matches!(event, Event::Read(read) if read.by == "kit"),
        );
    });
    void(&unread, I::Exercised, "the kit did not read before");
}
