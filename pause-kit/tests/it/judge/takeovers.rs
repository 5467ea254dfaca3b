//! Good histories of the scenarios with several attempts, several holders, an old read or a second process.

use pause_kit::history::{
    Attempt, Cause, Change, Event, Exercise, Half, Killed, Outcome, ProbeKind, Restarted,
};

use super::forms::late_send;
use super::tape::{NEW, OLD, Tape, balances, done, http, presented, sql, token_of};

/// S03: before the successor's contact, after it, and beside an admission that was rolled back.
pub(crate) fn legal_gap(half: Half) -> Tape {
    let mut tape = begin("S03", half, Exercise::LegalGap);
    tape.run.attempts = vec![
        Attempt::new("H1-write-1", Outcome::Legal),
        Attempt::new("H1-write-2", Outcome::Refused),
        Attempt::new("H2-write-1", Outcome::Legal),
    ];
    tape.stop("H1", 10, 20)
        .lease_end(12, "g1", Cause::Revoked)
        .grant(13, "H2", "g2");
    write(&mut tape, "H1-write-1", "g1:1", 21);
    tape.read("kit", 24, &["g1:1"]);
    tape.stop("H1", 30, 40)
        .raise("H2-raise-1", "g2", 32)
        .read("H2", 34, &["g1:1"]);
    late(&mut tape, "H1-write-2", "g1:2", 41, "g2");
    let shown: &[&str] = match half {
        Half::Guarded => &["g1:1"],
        Half::Defeated => &["g1:1", "g1:2"],
    };
    tape.read("kit", 44, shown);
    tape.stop("H2", 50, 60)
        .lease_end(52, "g2", Cause::Revoked)
        .grant(53, "H3", "g3");
    let claim = presented(token_of("g3"), "g3");
    tape.probe(55, ProbeKind::RolledBack, "acct-1", claim, done("SELECT 1"));
    write(&mut tape, "H2-write-1", "g2:2", 61);
    tape.admission(10, "acct-1", "g1", OLD);
    committed(&mut tape, 11, "g1", "g1:1");
    tape.admission(12, "acct-1", "g2", NEW);
    late_commit(&mut tape, 13, "g2", "g1:2");
    committed(&mut tape, 14, "g2", "g2:2");
    end(&mut tape, &["g1:1", "g2:2"], &["g1:2"], "g2");
    tape
}

/// S04: stopped between its read and its write.
pub(crate) fn stale_read(half: Half) -> Tape {
    let mut tape = late_send("S04", half);
    tape.run.exercise = Exercise::StaleRead;
    tape
}

/// S04b: guarded, the successor raises the mark before it reads; in the twin, whose guard is in force, it does not.
pub(crate) fn fence_then_read(half: Half) -> Tape {
    let mut tape = begin("S04b", half, Exercise::FenceThenRead);
    tape.run.attempts = vec![Attempt::new("H1-write-1", Outcome::Refused)];
    tape.stop("H1", 10, 30)
        .lease_end(12, "g1", Cause::Revoked)
        .grant(13, "H2", "g2");
    if half == Half::Guarded {
        tape.raise("H2-raise-1", "g2", 14);
    }
    tape.read("H2", 16, &[]);
    late(&mut tape, "H1-write-1", "g1:1", 31, "g2");
    write(&mut tape, "H2-write-1", "g2:1", 35);
    tape.admission(10, "acct-1", "g1", OLD);
    match half {
        Half::Guarded => tape.admission(11, "acct-1", "g2", NEW),
        Half::Defeated => tape
            .admission(11, "acct-1", "g1", OLD)
            .written(11, "acct-1", "g1", "g1:1"),
    };
    committed(&mut tape, 12, "g2", "g2:1");
    end(&mut tape, &["g2:1"], &["g1:1"], "g2");
    tape
}

/// S17: two stopped in turn, a third that writes; they go on in both orders.
pub(crate) fn in_turn(half: Half) -> Tape {
    let mut tape = begin("S17", half, Exercise::InTurn);
    let attempts = ["H1-write-1", "H2-write-1", "H2-write-2", "H1-write-2"];
    tape.run.attempts = attempts.map(|op| Attempt::new(op, Outcome::Refused)).into();
    tape.stop("H1", 10, 50)
        .lease_end(12, "g1", Cause::Revoked)
        .grant(13, "H2", "g2");
    tape.raise("H2-raise-1", "g2", 14).read("H2", 16, &[]);
    tape.stop("H2", 20, 56)
        .lease_end(22, "g2", Cause::Revoked)
        .grant(23, "H3", "g3");
    tape.raise("H3-raise-1", "g3", 24).read("H3", 26, &[]);
    write(&mut tape, "H3-write-1", "g3:1", 28);
    late(&mut tape, "H1-write-1", "g1:1", 51, "g3");
    late(&mut tape, "H2-write-1", "g2:1", 57, "g3");
    tape.stop("H1", 65, 90).stop("H2", 66, 80);
    write(&mut tape, "H3-write-2", "g3:2", 70);
    late(&mut tape, "H2-write-2", "g2:2", 81, "g3");
    late(&mut tape, "H1-write-2", "g1:2", 91, "g3");
    tape.admission(10, "acct-1", "g1", OLD)
        .admission(11, "acct-1", "g2", NEW)
        .admission(12, "acct-1", "g3", token_of("g3"));
    committed(&mut tape, 13, "g3", "g3:1");
    late_commit(&mut tape, 14, "g3", "g1:1");
    late_commit(&mut tape, 15, "g3", "g2:1");
    committed(&mut tape, 16, "g3", "g3:2");
    late_commit(&mut tape, 17, "g3", "g2:2");
    late_commit(&mut tape, 18, "g3", "g1:2");
    end(
        &mut tape,
        &["g3:1", "g3:2"],
        &["g1:1", "g2:1", "g2:2", "g1:2"],
        "g3",
    );
    tape
}

/// S18: stopped for half of a TTL of 40 ms.
pub(crate) fn short_pause() -> Tape {
    let ttl_ns = 40_000_000;
    let mut tape = begin("S18", Half::Guarded, Exercise::ShortPause { ttl_ns });
    tape.run.stale_grant = None;
    tape.run.attempts = vec![Attempt::new("H1-write-1", Outcome::Legal)];
    tape.stop("H1", 10, 30);
    write(&mut tape, "H1-write-1", "g1:1", 31);
    tape.lease_end(32, "g1", Cause::Released);
    tape.admission(10, "acct-1", "g1", OLD);
    committed(&mut tape, 11, "g1", "g1:1");
    end(&mut tape, &["g1:1"], &[], "g1");
    tape
}

/// S12: only the writing thread was held, for longer than a TTL of 20 ms.
pub(crate) fn kept_alive() -> Tape {
    let ttl_ns = 20_000_000;
    let mut tape = begin("S12", Half::Guarded, Exercise::KeptAlive { ttl_ns });
    tape.run.stale_grant = None;
    tape.run.attempts = vec![Attempt::new("H1-write-1", Outcome::Legal)];
    tape.read("kit", 30, &[]);
    write(&mut tape, "H1-write-1", "g1:1", 31);
    tape.lease_end(32, "g1", Cause::Released);
    tape.admission(10, "acct-1", "g1", OLD);
    committed(&mut tape, 11, "g1", "g1:1");
    end(&mut tape, &["g1:1"], &[], "g1");
    tape
}

/// S21: killed before its send, and started again with its write from disk.
pub(crate) fn from_disk(half: Half) -> Tape {
    let mut tape = late_send("S21", half);
    tape.run.exercise = Exercise::Restarted;
    tape.events.retain(|(_, event)| !matches!(event, Event::Stop(_)));
    let target = || "H1".to_owned();
    tape.push(
        10,
        Killed {
            target: target(),
            pid: 4711,
        },
    );
    tape.push(
        40,
        Restarted {
            target: target(),
            pid: 4712,
        },
    );
    tape
}

pub(super) fn begin(scenario: &str, half: Half, exercise: Exercise) -> Tape {
    let mut tape = Tape::new(scenario, half, exercise);
    tape.grant(0, "H1", "g1")
        .raise("H1-raise-1", "g1", 1)
        .read("H1", 3, &[]);
    tape
}

/// A write that is accepted.
pub(super) fn write(tape: &mut Tape, op: &str, id: &str, at: u64) {
    tape.request(op, &id[..2], Some(id), at, at)
        .answer(op, at + 2, http(201, None));
}

/// One that a guard which has seen `mark` refuses.
pub(super) fn late(tape: &mut Tape, op: &str, id: &str, at: u64, mark: &str) {
    if tape.run.half == Half::Defeated {
        return write(tape, op, id, at);
    }
    let detail = format!("presented {}, seen {}", token_of(&id[..2]), token_of(mark));
    tape.request(op, &id[..2], Some(id), at, at)
        .db_answer(op, at + 1, sql("ZF001", Some(&detail)))
        .answer(op, at + 2, http(412, Some("stale")));
}

/// A write's commit, with the job that its id's number stands for.
pub(super) fn committed(tape: &mut Tape, xid: u64, mark: &str, id: &str) {
    tape.admission(xid, "acct-1", mark, token_of(mark))
        .written(xid, "acct-1", &id[..2], id);
    let part = format!("order-7 part {}", &id[3..]);
    let Some((_, Event::Commit(commit))) = tape.events.last_mut() else {
        panic!("a commit was just pushed")
    };
    if let Change::Write { job, .. } = &mut commit.change {
        *job = Some(part);
    }
}

pub(super) fn late_commit(tape: &mut Tape, xid: u64, mark: &str, id: &str) {
    if tape.run.half == Half::Defeated {
        committed(tape, xid, mark, id);
    }
}

pub(super) fn end(tape: &mut Tape, ids: &[&str], late: &[&str], mark: &str) {
    let guarded = tape.run.half == Half::Guarded;
    let mut ids = ids.to_vec();
    if !guarded {
        ids.extend(late);
    }
    let paid = 30 * i64::try_from(ids.len()).unwrap();
    let marks = [("acct-1", token_of(mark)), ("acct-9", OLD)];
    if guarded {
        ids.push("g1:9");
        tape.probes(200, 20)
            .last(&ids, balances(1000 - paid, paid + 30), &marks);
    } else {
        tape.last(&ids, balances(1000 - paid, paid), &marks[..1]);
    }
}
