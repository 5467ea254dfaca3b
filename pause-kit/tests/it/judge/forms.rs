//! Good histories of scenarios, guarded and defeated.

use pause_kit::history::{Cause, Event, Exercise, Half, Hold, Killed, Op, Queued, Restarted, Waiting};

use super::tape::{NEW, OLD, Tape, balances, done, http, ms, sql};

/// S01 (the lease expires) and S02 (it is revoked): the holder stopped before its send.
pub(crate) fn late_send(scenario: &str, half: Half) -> Tape {
    let mut tape = Tape::new(scenario, half, Exercise::Stopped);
    let cause = if scenario == "S01" {
        Cause::Expired
    } else {
        Cause::Revoked
    };
    tape.grant(0, "H1", "g1")
        .raise("H1-raise", "g1", 1)
        .read("H1", 3, &[]);
    tape.stop("H1", 10, 40)
        .lease_end(15, "g1", cause)
        .grant(16, "H2", "g2");
    tape.raise("H2-raise", "g2", 17).read("H2", 19, &[]);
    tape.request("H2-write", "g2", Some("g2:1"), 21, 21)
        .answer("H2-write", 23, http(201, None));
    tape.request("H1-late", "g1", Some("g1:1"), 41, 41);
    late_answer(&mut tape, 43);
    tape.read("kit", 50, ids_on_key(half));
    tape.admission(10, "acct-1", "g1", OLD)
        .admission(11, "acct-1", "g2", NEW);
    tape.admission(12, "acct-1", "g2", NEW)
        .written(12, "acct-1", "g2", "g2:1");
    late_commit(&mut tape);
    end(&mut tape);
    tape
}

/// S34: the same, and the resource killed and started again before the holder goes on.
pub(crate) fn restarted_resource(half: Half) -> Tape {
    let mut tape = late_send("S34", half);
    tape.run.exercise = Exercise::ResourceRestarted;
    let target = || "R".to_owned();
    tape.push(
        30,
        Killed {
            target: target(),
            pid: 5_000,
        },
    );
    tape.push(
        32,
        Restarted {
            target: target(),
            pid: 5_001,
        },
    );
    tape
}

/// S07: the path holds the request after its first bytes.
pub(crate) fn held(half: Half) -> Tape {
    let mut tape = Tape::new("S07", half, Exercise::Held);
    tape.grant(0, "H1", "g1")
        .raise("H1-raise", "g1", 1)
        .read("H1", 3, &[]);
    tape.request("H1-late", "g1", Some("g1:1"), 5, 41);
    let op = Op::new("H1-late");
    tape.push(
        6,
        Hold {
            op,
            byte: 17,
            length: None,
            released: Some(ms(40)),
        },
    );
    tape.lease_end(15, "g1", Cause::Revoked).grant(16, "H2", "g2");
    tape.raise("H2-raise", "g2", 17).read("H2", 19, &[]);
    tape.request("H2-write", "g2", Some("g2:1"), 21, 21)
        .answer("H2-write", 23, http(201, None));
    tape.read("kit", 30, &["g2:1"]);
    late_answer(&mut tape, 43);
    tape.read("kit", 50, ids_on_key(half));
    tape.admission(10, "acct-1", "g1", OLD)
        .admission(11, "acct-1", "g2", NEW);
    tape.admission(12, "acct-1", "g2", NEW)
        .written(12, "acct-1", "g2", "g2:1");
    late_commit(&mut tape);
    end(&mut tape);
    tape
}

/// S05: both writes lie in the stopped resource's socket, and it takes the late one first or last.
pub(crate) fn queued(half: Half, late_first: bool) -> Tape {
    let mut tape = Tape::new("S05", half, Exercise::Queued);
    tape.grant(0, "H1", "g1")
        .raise("H1-raise", "g1", 1)
        .read("H1", 3, &[])
        .stop("R", 10, 40);
    tape.request("H1-late", "g1", Some("g1:1"), 11, 11);
    let lies = |op: &str| Queued {
        op: Op::new(op),
        target: "R".to_owned(),
        bytes: 180,
    };
    tape.push(12, lies("H1-late"));
    tape.push(
        13,
        Killed {
            target: "H1".to_owned(),
            pid: 4711,
        },
    );
    tape.lease_end(15, "g1", Cause::Revoked).grant(16, "H2", "g2");
    tape.raise("H2-raise", "g2", 17).read("H2", 19, &[]);
    tape.request("H2-write", "g2", Some("g2:1"), 21, 21);
    tape.push(22, lies("H2-write")).read("kit", 30, &[]);
    late_answer(&mut tape, 43);
    tape.answer("H2-write", 45, http(201, None))
        .read("kit", 50, ids_on_key(half));
    tape.admission(10, "acct-1", "g1", OLD)
        .admission(11, "acct-1", "g2", NEW);
    if late_first {
        late_commit(&mut tape);
    }
    tape.admission(12, "acct-1", "g2", NEW)
        .written(12, "acct-1", "g2", "g2:1");
    if !late_first {
        late_commit(&mut tape);
    }
    end(&mut tape);
    tape
}

/// S26: the holder stopped idle in its transaction, on PostgreSQL itself, under the column guard.
pub(crate) fn idle(half: Half) -> Tape {
    let mut tape = Tape::new(
        "S26",
        half,
        Exercise::IdleInTransaction {
            idle_ns: 5_000_000_000,
        },
    );
    tape.grant(0, "H1", "g1")
        .request("H1-first", "g1", Some("g1"), 2, 2);
    tape.db_answer("H1-first", 3, done("UPDATE 1"));
    tape.stop("H1", 10, 9000)
        .lease_end(15, "g1", Cause::Revoked)
        .grant(16, "H2", "g2");
    let waits = |op: &str| Waiting {
        op: Op::new(op),
        on: "H1".to_owned(),
        backend: 52,
        blocked_by: 51,
    };
    tape.request("H2-1", "g2", Some("g2"), 20, 20)
        .push(30, waits("H2-1"));
    if half == Half::Guarded {
        let too_long = sql("55P03", None);
        tape.answer("H2-1", 2030, too_long.clone());
        tape.request("H2-2", "g2", Some("g2"), 2100, 2100)
            .answer("H2-2", 4110, too_long);
        tape.request("H2-3", "g2", Some("g2"), 4200, 4200)
            .answer("H2-3", 5020, done("COMMIT"));
        tape.answer("H1-first", 5003, sql("25P03", None));
        let detail = format!("presented {OLD}, seen {NEW}");
        tape.request("H1-late", "g1", Some("g1"), 9010, 9010).answer(
            "H1-late",
            9015,
            sql("ZF001", Some(&detail)),
        );
        tape.bystander_batch(9100);
        tape.written(12, "batch-1", "g2", "g2");
    } else {
        tape.run.attempts.clear();
        tape.push(8500, waits("H2-1"));
        tape.answer("H1-first", 9002, done("COMMIT"))
            .answer("H2-1", 9020, done("COMMIT"));
        tape.written(11, "batch-1", "g1", "g1")
            .written(12, "batch-1", "g2", "g2");
    }
    match half {
        Half::Guarded => tape.written(13, "batch-9", "g1", "g1").last(
            &["g2", "g1"],
            Default::default(),
            &[("batch-1", NEW), ("batch-9", OLD)],
        ),
        Half::Defeated => tape.last(&["g2"], Default::default(), &[("batch-1", NEW)]),
    };
    // Reading the log and reading back come last, as they do in a run.
    for (at, event) in &mut tape.events {
        if matches!(event, Event::Commit(_) | Event::Final(_)) {
            *at = ms(9200 + at.as_nanos() / 1_000_000);
        }
    }
    tape
}

fn ids_on_key(half: Half) -> &'static [&'static str] {
    match half {
        Half::Guarded => &["g2:1"],
        Half::Defeated => &["g2:1", "g1:1"],
    }
}

fn late_answer(tape: &mut Tape, at: u64) {
    match tape.run.half {
        Half::Guarded => tape.refused_as_stale("H1-late", at),
        Half::Defeated => tape.answer("H1-late", at, http(201, None)),
    };
}

/// The late write as the defeated guard lets it in: the mark stays the successor's.
fn late_commit(tape: &mut Tape) {
    if tape.run.half == Half::Defeated {
        tape.admission(13, "acct-1", "g2", NEW)
            .written(13, "acct-1", "g1", "g1:1");
    }
}

fn end(tape: &mut Tape) {
    match tape.run.half {
        Half::Guarded => tape.probes(60, 20).last(
            &["g2:1", "g1:9"],
            balances(970, 60),
            &[("acct-1", NEW), ("acct-9", OLD)],
        ),
        Half::Defeated => tape.last(&["g2:1", "g1:1"], balances(940, 60), &[("acct-1", NEW)]),
    };
}
