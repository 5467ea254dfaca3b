//! Each probe with its one right answer, and with every kind of wrong one.

use pause_kit::history::{Event, Half, Probe, ProbeKind, Reply, TokenNumber};
use pause_kit::judge::{Invariant, Verdict, judge};

use super::forms::late_send;
use super::tape::{done, http, presented, sql};

const STALE: Option<&str> = Some("presented 9, seen 10");
const STALE_BATCH: Option<&str> = Some("presented 9, seen 10, class kit.open, key 'probe'");

/// The probe, its right answer, and the invariant that is broken when it is accepted instead.
fn refused() -> Vec<(ProbeKind, Reply, Invariant)> {
    use Invariant as I;
    vec![
        (ProbeKind::Smaller, sql("ZF001", STALE), I::Order),
        (ProbeKind::Collision, sql("ZF004", None), I::Identity),
        (ProbeKind::OutsideRange, sql("ZF005", None), I::Identity),
        (ProbeKind::MissingToken, sql("ZF002", None), I::Identity),
        (ProbeKind::MissingGrant, sql("ZF002", None), I::Identity),
        (ProbeKind::BelowOne, sql("ZF003", None), I::Identity),
        (ProbeKind::Malformed, sql("22P02", None), I::Identity),
        (ProbeKind::UnknownClass, sql("ZF007", None), I::Identity),
        (ProbeKind::HeldToTheEnd, sql("55P03", None), I::DelayedPacket),
        (ProbeKind::BoundedWait, sql("55P03", None), I::DelayedPacket),
        (ProbeKind::OldSnapshot, sql("40001", None), I::Linearizable),
        (ProbeKind::StaleRaise, sql("ZF001", STALE), I::Order),
        (ProbeKind::CollidingRaise, sql("ZF004", None), I::Identity),
        (ProbeKind::RaiseOutsideRange, sql("ZF005", None), I::Identity),
        (ProbeKind::RaiseWithoutToken, sql("ZF002", None), I::Identity),
        (ProbeKind::Forgotten, sql("ZF002", None), I::RealTimeRefusal),
        (ProbeKind::WrongKey, sql("ZF006", None), I::RealTimeRefusal),
        (ProbeKind::Switch, sql("55P03", None), I::DelayedPacket),
        (ProbeKind::StaleBatch, sql("ZF001", STALE_BATCH), I::Order),
        (ProbeKind::Stopped, sql("ZF008", None), I::DurableMark),
        (ProbeKind::StaleRaise, http(412, Some("stale")), I::Order),
        (ProbeKind::Collision, http(412, Some("collision")), I::Identity),
        (
            ProbeKind::OutsideRange,
            http(409, Some("unknown-epoch")),
            I::Identity,
        ),
        (
            ProbeKind::MissingToken,
            http(428, Some("missing-token")),
            I::Identity,
        ),
        (ProbeKind::Malformed, http(400, Some("malformed")), I::Identity),
    ]
}

const APPLIED: [ProbeKind; 7] = [
    ProbeKind::Admitted,
    ProbeKind::OtherClass,
    ProbeKind::EqualAgain,
    ProbeKind::Prepare,
    ProbeKind::Larger,
    ProbeKind::AfterRollback,
    ProbeKind::Raise,
];

/// The verdict on a good history with this probe in it.
fn verdict(probe: ProbeKind, reply: &Reply) -> Verdict {
    let mut tape = late_send("S02", Half::Guarded);
    tape.push(
        70,
        Event::Probe(Probe {
            probe,
            class: "kit.open".to_owned(),
            key: "probe".to_owned(),
            presented: presented(9, "g1"),
            seen: Some(TokenNumber::new(10)),
            id: None,
            reply: reply.clone(),
            sqlstate: None,
            detail: None,
        }),
    );
    judge(&tape.history()).verdict
}

#[track_caller]
fn violated(probe: ProbeKind, reply: &Reply, invariant: Invariant) {
    match verdict(probe, reply) {
        Verdict::Violated(first) if first.invariant == invariant => {}
        other => panic!("{probe:?} answered {reply:?}: expected {invariant}, got {other}"),
    }
}

#[test]
fn the_right_answers_hold() {
    for (probe, reply, _) in refused() {
        assert_eq!(verdict(probe, &reply), Verdict::Held, "{probe:?} {reply:?}");
    }
    for probe in APPLIED {
        assert_eq!(verdict(probe, &done("SELECT 1")), Verdict::Held, "{probe:?}");
    }
    assert_eq!(
        verdict(ProbeKind::OldSnapshot, &sql("ZF001", STALE)),
        Verdict::Held
    );
}

#[test]
fn what_must_be_refused_and_is_accepted_breaks_the_invariant_that_it_is_about() {
    for (probe, reply, invariant) in refused() {
        let accepted = match reply {
            Reply::Http { .. } => http(201, None),
            Reply::Sql { .. } => done("SELECT 1"),
        };
        violated(probe, &accepted, invariant);
    }
}

#[test]
fn what_must_be_applied_and_is_refused_breaks_no_spurious_refusal() {
    for probe in APPLIED {
        for reply in [
            sql("ZF001", STALE),
            sql("ZF004", None),
            sql("P0001", None),
            http(412, Some("stale")),
            http(404, None),
        ] {
            violated(probe, &reply, Invariant::NoSpuriousRefusal);
        }
    }
}

#[test]
fn another_code_or_other_numbers_than_the_faults_own_break_the_reason() {
    let codes = [
        "ZF001", "ZF002", "ZF003", "ZF004", "ZF005", "ZF006", "ZF007", "ZF008", "P0001", "23505",
    ];
    for (probe, right, _) in refused() {
        let Reply::Sql {
            sqlstate: Some(own), ..
        } = &right
        else {
            continue;
        };
        if matches!(
            probe,
            ProbeKind::HeldToTheEnd | ProbeKind::BoundedWait | ProbeKind::Switch | ProbeKind::OldSnapshot
        ) {
            continue;
        }
        for code in codes.into_iter().filter(|code| code != own) {
            violated(probe, &sql(code, STALE), Invariant::Reason);
        }
    }
    for detail in [
        None,
        Some("presented 10, seen 9"),
        Some("presented 9, seen 10 "),
        Some("presented 9, seen 11"),
    ] {
        violated(ProbeKind::Smaller, &sql("ZF001", detail), Invariant::Reason);
    }
    violated(
        ProbeKind::Collision,
        &http(409, Some("collision")),
        Invariant::Reason,
    );
    violated(
        ProbeKind::MissingToken,
        &http(400, Some("malformed")),
        Invariant::Reason,
    );
    violated(ProbeKind::OutsideRange, &http(404, None), Invariant::Reason);
}

#[test]
fn a_refusal_that_invites_a_retry_is_the_wrong_reason() {
    violated(ProbeKind::Smaller, &sql("40001", STALE), Invariant::Reason);
    violated(ProbeKind::Collision, &sql("40001", None), Invariant::Reason);
}

#[test]
fn whoever_waits_where_nobody_has_to_is_kept_beyond_the_bound() {
    violated(ProbeKind::Observed, &sql("55P03", None), Invariant::BoundedBlock);
    for code in ["40P01", "55P03"] {
        violated(ProbeKind::Crossed, &sql(code, None), Invariant::BoundedBlock);
    }
    for probe in [ProbeKind::Observed, ProbeKind::Crossed] {
        assert_eq!(verdict(probe, &done("UPDATE 1")), Verdict::Held, "{probe:?}");
        violated(probe, &sql("ZF002", None), Invariant::NoSpuriousRefusal);
    }
}

#[test]
fn what_is_let_through_and_not_written_down_belongs_to_nobody() {
    assert_eq!(verdict(ProbeKind::WrittenDown, &done("DO 0")), Verdict::Held);
    violated(ProbeKind::WrittenDown, &sql("P0004", None), Invariant::Identity);
}

#[test]
fn a_stale_batch_names_the_key_that_is_stale() {
    violated(ProbeKind::StaleBatch, &sql("ZF001", STALE), Invariant::Reason);
    let other = Some("presented 9, seen 10, class kit.open, key 'beside'");
    violated(ProbeKind::StaleBatch, &sql("ZF001", other), Invariant::Reason);
}

#[test]
fn a_wait_that_the_kit_had_to_end_breaks_the_bound() {
    for (probe, _, _) in refused() {
        violated(probe, &sql("57014", None), Invariant::BoundedBlock);
    }
    for probe in APPLIED {
        violated(probe, &sql("57014", None), Invariant::BoundedBlock);
    }
}

#[test]
fn a_probe_that_was_cut_short_shows_nothing() {
    for (probe, _, _) in refused() {
        for reply in [sql("08006", None), http(500, None)] {
            assert!(
                matches!(verdict(probe, &reply), Verdict::Inconclusive(_)),
                "{probe:?} {reply:?}: {}",
                verdict(probe, &reply)
            );
        }
    }
    for probe in APPLIED {
        assert!(
            matches!(verdict(probe, &sql("55P03", None)), Verdict::Inconclusive(_)),
            "{probe:?}"
        );
    }
    // Blocked and then refused, where it had to wait to the end: it did not wait.
    assert!(matches!(
        verdict(ProbeKind::HeldToTheEnd, &sql("ZF001", STALE)),
        Verdict::Inconclusive(_)
    ));
}

#[test]
fn a_tag_that_says_nothing_was_done_is_no_acceptance() {
    for tag in ["ROLLBACK", "UPDATE 0", "DELETE 0", "INSERT 0 0", "MERGE 0"] {
        violated(ProbeKind::Bystander, &done(tag), Invariant::NoSpuriousRefusal);
        violated(ProbeKind::Smaller, &done(tag), Invariant::Reason);
    }
    assert_eq!(verdict(ProbeKind::Larger, &done("UPDATE 1")), Verdict::Held);
}

#[test]
fn blocked_is_blocked_over_http_as_well() {
    assert_eq!(
        verdict(ProbeKind::HeldToTheEnd, &http(503, Some("blocked"))),
        Verdict::Held
    );
    for reply in [
        http(503, None),
        http(503, Some("unavailable")),
        http(409, Some("blocked")),
    ] {
        assert_ne!(
            verdict(ProbeKind::HeldToTheEnd, &reply),
            Verdict::Held,
            "{reply:?}"
        );
    }
}

#[test]
fn a_refusal_behind_a_500_is_known_by_the_code_on_the_path() {
    let hidden = |probe, sqlstate: &str| {
        let mut tape = late_send("S02", Half::Guarded);
        let hidden = Probe {
            probe,
            class: "kit.open".to_owned(),
            key: "probe".to_owned(),
            presented: presented(9, "g1"),
            seen: None,
            id: None,
            reply: http(500, None),
            sqlstate: Some(sqlstate.to_owned()),
            detail: None,
        };
        tape.push(70, hidden);
        judge(&tape.history())
    };
    assert!(hidden(ProbeKind::Bystander, "P0001").breaks(Invariant::NoSpuriousRefusal));
    assert!(hidden(ProbeKind::Collision, "P0001").breaks(Invariant::Reason));
    for probe in [ProbeKind::Bystander, ProbeKind::Collision] {
        assert!(
            matches!(hidden(probe, "40001").verdict, Verdict::Inconclusive(_)),
            "{probe:?}"
        );
    }
}

#[test]
fn a_refusal_over_http_whose_detail_names_another_token_is_the_wrong_reason() {
    let given = |probe: ProbeKind, seen, reply: &Reply, detail: &str| {
        let mut tape = late_send("S02", Half::Guarded);
        let passed_on = Probe {
            probe,
            class: "kit.open".to_owned(),
            key: "probe".to_owned(),
            presented: presented(9, "g1"),
            seen,
            id: None,
            reply: reply.clone(),
            sqlstate: None,
            detail: Some(detail.to_owned()),
        };
        tape.push(70, passed_on);
        judge(&tape.history())
    };
    let outside = http(409, Some("unknown-epoch"));
    let collision = http(412, Some("collision"));
    let stale = http(412, Some("stale"));
    let mark = Some(TokenNumber::new(10));
    for (probe, seen, reply, right, wrong) in [
        (
            ProbeKind::OutsideRange,
            None,
            &outside,
            "presented 9",
            "presented 8",
        ),
        (
            ProbeKind::Collision,
            None,
            &collision,
            "token 9, presented by grant g1, seen from grant g2",
            "token 90, presented by grant g1, seen from grant g2",
        ),
        (
            ProbeKind::StaleRaise,
            mark,
            &stale,
            "presented 9, seen 10",
            "presented 9, seen 11",
        ),
        (
            ProbeKind::StaleRaise,
            mark,
            &stale,
            "presented 9, seen 10",
            "presented 8, seen 10",
        ),
    ] {
        assert_eq!(given(probe, seen, reply, right).verdict, Verdict::Held, "{right}");
        assert!(
            given(probe, seen, reply, wrong).breaks(Invariant::Reason),
            "{wrong}"
        );
    }
}

#[test]
fn another_keys_holder_keeps_nobody_waiting() {
    assert!(matches!(verdict(ProbeKind::Unheld, &done("DO 0")), Verdict::Held));
    violated(ProbeKind::Unheld, &sql("55P03", None), Invariant::BoundedBlock);
    violated(
        ProbeKind::Unheld,
        &sql("ZF001", STALE),
        Invariant::NoSpuriousRefusal,
    );
}

#[test]
fn what_an_admission_sets_for_its_transaction_is_asked_for() {
    for (probe, invariant) in [
        (ProbeKind::Bounds, Invariant::BoundedBlock),
        (ProbeKind::Durable, Invariant::DurableMark),
    ] {
        assert!(matches!(verdict(probe, &done("DO 0")), Verdict::Held));
        violated(probe, &sql("P0004", None), invariant);
        assert!(matches!(
            verdict(probe, &sql("08006", None)),
            Verdict::Inconclusive(_)
        ));
    }
}
