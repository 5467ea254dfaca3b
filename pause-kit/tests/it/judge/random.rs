//! Random histories of a model resource: with its guard they hold, and without it every late write is found.

use proptest::prelude::*;

use pause_kit::history::{Cause, Event, Exercise, GrantRecord, Half, LeaseEnd, TokenNumber};
use pause_kit::judge::{Invariant, Judgement, Verdict, judge};

use super::tape::{NEW, OLD, Tape, http, sql, token_of};

/// One operation of one grant: it begins, takes effect at one moment in between, and is answered.
#[derive(Clone, Copy, Debug)]
struct Step {
    grant: usize,
    kind: Kind,
    began: u64,
    before: u64,
    after: u64,
    /// The answer is lost on its way.
    lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Raise,
    Write,
    Read,
}

impl Step {
    fn effect(&self) -> u64 {
        self.began + self.before
    }
}

/// What the model resource did, beside the history of it.
struct Played {
    judgement: Judgement,
    /// An admission took effect after one with a larger token.
    late: bool,
    /// A late one even began after the larger one was answered.
    late_in_real_time: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![
        Just(Kind::Raise),
        Just(Kind::Write),
        Just(Kind::Write),
        Just(Kind::Read)
    ];
    let step = (
        1..=4_usize,
        kind,
        20..200_u64,
        0..40_u64,
        0..40_u64,
        prop::bool::weighted(0.1),
    );
    let step = step.prop_map(|(grant, kind, began, before, after, lost)| Step {
        grant,
        kind,
        began,
        before,
        after,
        lost,
    });
    prop::collection::vec(step, 1..14)
}

/// Plays the steps against a register that refuses what is smaller than its mark, or, without a guard, nothing.
fn play(steps: &[Step], guarded: bool) -> Played {
    let mut tape = Tape::new("S12", Half::Guarded, Exercise::Control);
    tape.run.stale_grant = None;
    tape.run.attempts.clear();
    for number in 1..=4 {
        let grant = format!("g{number}");
        let at = number * 2;
        if number > 1 {
            tape.lease_end(at - 1, &format!("g{}", number - 1), Cause::Revoked);
        }
        tape.grant(at, &format!("H{number}"), &grant);
    }
    // Effects happen at distinct moments, in the order of their times and then of the list.
    let mut order: Vec<usize> = (0..steps.len()).collect();
    order.sort_by_key(|index| steps[*index].effect());
    let (mut mark, mut mark_grant) = (0, String::new());
    let mut shown: Vec<String> = Vec::new();
    let mut admitted: Vec<(i64, Option<u64>)> = Vec::new();
    let (mut late, mut late_in_real_time) = (false, false);
    for (xid, index) in (100..).zip(order) {
        let step = steps[index];
        let grant = format!("g{}", step.grant);
        let op = format!("H{}-{index}", step.grant);
        let ended = step.effect() + step.after;
        let ids: Vec<&str> = shown.iter().map(String::as_str).collect();
        if step.kind == Kind::Read {
            tape.read_between("kit", step.began, ended, &ids);
            continue;
        }
        let token = token_of(&grant);
        let id = (step.kind == Kind::Write).then(|| format!("{grant}:{}", 100 + index));
        tape.request(&op, &grant, id.as_deref(), step.began, step.began);
        if guarded && token < mark {
            let detail = format!("presented {token}, seen {mark}");
            tape.db_answer(&op, step.effect(), sql("ZF001", Some(&detail)));
            if !step.lost {
                tape.answer(&op, ended, http(412, Some("stale")));
            }
            continue;
        }
        late |= admitted.iter().any(|(other, _)| *other > token);
        late_in_real_time |= !step.lost
            && admitted
                .iter()
                .any(|(other, answered)| *other > token && answered.is_some_and(|at| at < step.began));
        admitted.push((token, (!step.lost).then_some(ended)));
        if token >= mark {
            (mark, mark_grant) = (token, grant.clone());
        }
        tape.admission(xid, "acct-1", &mark_grant, mark);
        if let Some(id) = id {
            tape.written(xid, "acct-1", &grant, &id);
            shown.push(id);
        }
        if !step.lost {
            tape.answer(&op, ended, http(201, None));
        }
    }
    tape.probes(500, 20);
    let sum = 30 * i64::try_from(shown.len()).unwrap();
    let mut ids: Vec<&str> = shown.iter().map(String::as_str).collect();
    ids.push("g1:9");
    let balances = [("acct-1", 1000 - sum), ("acct-2", sum + 30), ("acct-9", 970)];
    let marks = [("acct-1", mark), ("acct-9", OLD)];
    tape.last(
        &ids,
        balances.map(|(name, balance)| (name.to_owned(), balance)).into(),
        &marks,
    );
    Played {
        judgement: judge(&tape.history()),
        late,
        late_in_real_time,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_guarded_resource_holds_however_its_operations_overlap(steps in steps()) {
        let played = play(&steps, true);
        prop_assert!(!played.late);
        prop_assert_eq!(&played.judgement.verdict, &Verdict::Held, "{:#?}", played.judgement.violations);
    }

    #[test]
    fn an_unguarded_resource_is_violated_when_something_came_late_and_not_else(steps in steps()) {
        let played = play(&steps, false);
        let violations = &played.judgement.violations;
        // A raise shows in the log only by the mark, which a late one does not move: only late writes are seen there.
        let order = played.judgement.breaks(Invariant::Order);
        let real_time = played.judgement.breaks(Invariant::RealTimeRefusal);
        prop_assert!(!(order || real_time) || played.late, "{violations:#?}");
        prop_assert!(real_time || !played.late_in_real_time, "{violations:#?}");
        if !played.late {
            prop_assert_eq!(&played.judgement.verdict, &Verdict::Held, "{:#?}", violations);
        }
    }

    #[test]
    fn one_late_write_after_a_guarded_run_is_always_found(steps in steps()) {
        let mut steps = steps;
        let step = |grant, began| Step { grant, kind: Kind::Write, began, before: 1, after: 1, lost: false };
        steps.push(step(4, 300));
        steps.push(step(2, 310));
        let played = play(&steps, false);
        prop_assert!(played.late_in_real_time);
        prop_assert!(played.judgement.breaks(Invariant::Order));
        prop_assert!(played.judgement.breaks(Invariant::RealTimeRefusal));
        prop_assert!(played.judgement.breaks(Invariant::Linearizable));
    }
}

#[test]
fn grants_of_another_key_are_no_successors() {
    let mut tape = super::forms::late_send("S02", Half::Guarded);
    let record = GrantRecord {
        class: tape.run.class.clone(),
        key: "acct-5".to_owned(),
        token: TokenNumber::new(NEW + 5),
        grant: "g7".to_owned(),
        holder: "H7".to_owned(),
    };
    tape.push(5, record);
    // It waits longer than any successor may.
    tape.request("H7-raise", "g7", None, 6, 6);
    if let Some((_, Event::Request(request))) = tape.events.last_mut() {
        request.key = "acct-5".to_owned();
    }
    tape.answer("H7-raise", 5000, http(503, Some("blocked")));
    tape.push(
        60,
        LeaseEnd {
            grant: "g7".to_owned(),
            cause: Cause::Released,
        },
    );
    assert_eq!(judge(&tape.history()).verdict, Verdict::Held);
}
