//! What was committed and granted: invariants 1, 6 to 8, 10 to 12, and the agreement of both records.

use pause_kit::history::{Cause, Change, Event, Final, Half, LeaseEnd, Reply, TokenNumber};
use pause_kit::judge::{Invariant as I, Verdict};

use super::{broken, commit, edit, good, read_back, remove, request, violated};
use crate::judge::forms::{idle, late_send};
use crate::judge::tape::{NEW, OLD, ms};

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
    // The same under the column guard, where the row bears the number.
    let judgement = broken(idle(Half::Guarded), |tape| {
        commit(tape, 1, |commit| {
            if let Change::Write { token, .. } = &mut commit.change {
                *token = Some(TokenNumber::new(NEW + 1));
            }
        });
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
                cause: Cause::Revoked,
            },
        );
    });
    violated(&judgement, I::Grants);
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
                balances: crate::judge::tape::balances(940, 90),
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
                read.balances = crate::judge::tape::balances(970, 0);
                true
            }
            _ => false,
        });
    });
    violated(&judgement, I::Ledger);
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
    // An effect that nobody sent, and that everything else agrees on.
    let judgement = broken(good(), |tape| {
        tape.admission(30, "acct-1", "g2", NEW)
            .written(30, "acct-1", "g2", "g2:2");
        read_back(tape, |last| {
            last.ids.push("g2:2".to_owned());
            last.balances = crate::judge::tape::balances(940, 90);
        });
    });
    violated(&judgement, I::Agreement);
    assert_eq!(judgement.violations.len(), 1, "{judgement:#?}");
    // Committed, and not there when all is read back.
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
