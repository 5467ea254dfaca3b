//! What is in order on which day.

use std::collections::BTreeMap;

use fence_core::{
    ClassName, Day, Days, Declared, Demand, Disorder, Enforcement, Proof, ProofOutcome, Purpose, Risk,
    RiskError, RiskField, RiskParts, RiskRegister, disorders,
};
use proptest::prelude::*;

const TODAY: Day = Day::from_epoch(20_786);

fn class() -> ClassName {
    ClassName::new("app.thing").unwrap()
}

fn parts() -> RiskParts {
    RiskParts {
        class: class(),
        owner: "team-1".to_owned(),
        reason: "nothing can refuse it".to_owned(),
        blast_radius: "one thing".to_owned(),
        mitigation: "looked at daily".to_owned(),
        accepted_on: TODAY,
        review_by: TODAY.plus(Risk::LONGEST),
    }
}

fn before(days: i32) -> Day {
    Day::from_epoch(TODAY.since_epoch() - days)
}

fn demand() -> Demand {
    Demand {
        guard: "aa".to_owned(),
        scenarios: vec!["S01".to_owned(), "S02".to_owned()],
        max_age: Days::new(30),
    }
}

fn proof() -> Proof {
    let proven = |name: &str| (name.to_owned(), ProofOutcome::Proven);
    Proof {
        made_on: before(30),
        guard: "aa".to_owned(),
        scenarios: [proven("S01"), proven("S02")].into(),
    }
}

fn found(declared: Option<Declared>, proof: Option<Proof>, risk: Option<RiskParts>) -> Vec<Disorder> {
    let declared: BTreeMap<_, _> = declared.map(|declared| (class(), declared)).into_iter().collect();
    let proofs: BTreeMap<_, _> = proof.map(|proof| (class(), proof)).into_iter().collect();
    let risks = risk.map(|parts| Risk::new(parts).unwrap()).into_iter().collect();
    let register = RiskRegister::new(risks).unwrap();
    let found = disorders(&declared, &proofs, &register, TODAY);
    assert!(found.iter().all(|(name, _)| *name == class()));
    found.into_iter().map(|(_, disorder)| disorder).collect()
}

fn declared(purpose: Purpose, enforcement: Enforcement) -> Declared {
    Declared {
        purpose,
        enforcement,
        demand: (enforcement == Enforcement::Fenced).then(demand),
    }
}

fn of_proof(change: impl FnOnce(&mut Proof)) -> Vec<Disorder> {
    let mut proof = proof();
    change(&mut proof);
    found(
        Some(declared(Purpose::Correctness, Enforcement::Fenced)),
        Some(proof),
        None,
    )
}

#[test]
fn each_way_to_declare_a_class_and_to_register_it_has_its_finding() {
    use Enforcement::{Advisory, Fenced};
    use Purpose::{Correctness, Efficiency};
    for (declaration, registered, expected) in [
        (Some((Correctness, Fenced)), false, None),
        (
            Some((Correctness, Fenced)),
            true,
            Some(Disorder::RegisteredThoughFenced),
        ),
        (Some((Efficiency, Fenced)), false, None),
        (
            Some((Efficiency, Fenced)),
            true,
            Some(Disorder::RegisteredThoughFenced),
        ),
        (
            Some((Correctness, Advisory)),
            false,
            Some(Disorder::NotOnRegister),
        ),
        (Some((Correctness, Advisory)), true, None),
        (Some((Efficiency, Advisory)), false, None),
        (
            Some((Efficiency, Advisory)),
            true,
            Some(Disorder::RegisteredThoughEfficiency),
        ),
        (None, false, None),
        (None, true, Some(Disorder::Unknown)),
    ] {
        let class = declaration.map(|(purpose, enforcement)| declared(purpose, enforcement));
        let fenced = matches!(declaration, Some((_, Fenced)));
        let found = found(class, fenced.then(proof), registered.then(parts));
        assert_eq!(found, Vec::from_iter(expected), "{declaration:?}, {registered}");
    }
}

#[test]
fn a_class_that_is_only_called_fenced_is_found_with_and_without_a_proof() {
    let mut bare = declared(Purpose::Correctness, Enforcement::Fenced);
    bare.demand = None;
    assert_eq!(found(Some(bare.clone()), None, None), [Disorder::NoDemand]);
    assert_eq!(found(Some(bare), Some(proof()), None), [Disorder::NoDemand]);
    let fenced = declared(Purpose::Correctness, Enforcement::Fenced);
    assert_eq!(found(Some(fenced), None, None), [Disorder::NoProof]);
}

#[test]
fn a_proof_is_good_from_its_own_day_to_the_last_of_its_age() {
    assert_eq!(of_proof(|_| ()), []);
    assert_eq!(of_proof(|proof| proof.made_on = TODAY), []);
    assert_eq!(
        of_proof(|proof| proof.made_on = before(31)),
        [Disorder::Stale {
            age: Days::new(31),
            max_age: Days::new(30)
        }]
    );
    let tomorrow = before(-1);
    assert_eq!(
        of_proof(|proof| proof.made_on = tomorrow),
        [Disorder::FromTheFuture { made_on: tomorrow }]
    );
}

#[test]
fn another_guard_than_the_proven_one_is_found() {
    assert_eq!(
        of_proof(|proof| proof.guard = "ab".to_owned()),
        [Disorder::OtherGuard {
            proven: "ab".to_owned(),
            now: "aa".to_owned()
        }]
    );
}

#[test]
fn a_scenario_that_is_missing_or_shows_anything_but_proven_is_found() {
    assert_eq!(
        of_proof(|proof| {
            proof.scenarios.remove("S02");
        }),
        [Disorder::ScenarioMissing {
            scenario: "S02".to_owned()
        }]
    );
    // A control is as good as proven, and no proof by itself.
    let held = |proof: &mut Proof, name: &str| {
        proof.scenarios.insert(name.to_owned(), ProofOutcome::Held);
    };
    assert_eq!(of_proof(|proof| held(proof, "S02")), []);
    assert_eq!(
        of_proof(|proof| {
            held(proof, "S01");
            held(proof, "S02");
        }),
        [Disorder::OnlyControls]
    );
    for outcome in [
        ProofOutcome::Inconclusive,
        ProofOutcome::Violated,
        ProofOutcome::NotBorneOut,
    ] {
        // S07 is not asked for: what it shows counts all the same.
        for name in ["S01", "S07"] {
            let scenario = name.to_owned();
            assert_eq!(
                of_proof(|proof| {
                    proof.scenarios.insert(scenario.clone(), outcome);
                }),
                [Disorder::NotProven {
                    scenario: scenario.clone(),
                    outcome
                }]
            );
        }
    }
}

#[test]
fn a_risk_is_accepted_on_the_day_of_its_review_and_overdue_on_the_next() {
    let of_risk = |change: fn(&mut RiskParts)| {
        let mut risk = parts();
        change(&mut risk);
        found(
            Some(declared(Purpose::Correctness, Enforcement::Advisory)),
            None,
            Some(risk),
        )
    };
    assert_eq!(of_risk(|risk| risk.review_by = TODAY), []);
    let overdue = of_risk(|risk| {
        risk.accepted_on = before(9);
        risk.review_by = before(1);
    });
    assert_eq!(overdue, [Disorder::ReviewPassed { review_by: before(1) }]);
    let early = of_risk(|risk| {
        risk.accepted_on = before(-1);
    });
    assert_eq!(
        early,
        [Disorder::AcceptedInTheFuture {
            accepted_on: before(-1)
        }]
    );
}

#[test]
fn a_risk_lasts_at_most_180_days_and_none_backwards() {
    let reviewed = |days: u32| {
        Risk::new(RiskParts {
            review_by: TODAY.plus(Days::new(days)),
            ..parts()
        })
    };
    assert!(reviewed(0).is_ok() && reviewed(180).is_ok());
    let late = reviewed(181);
    assert_eq!(late, Err(RiskError::ReviewTooLate { days: Days::new(181) }));
    let backwards = Risk::new(RiskParts {
        review_by: before(1),
        ..parts()
    });
    assert_eq!(backwards, Err(RiskError::ReviewBeforeAcceptance));
}

#[test]
fn each_text_of_a_risk_says_something_on_one_line() {
    type TextOf = fn(&mut RiskParts) -> &mut String;
    let fields: [(RiskField, TextOf); 4] = [
        (RiskField::Owner, |parts| &mut parts.owner),
        (RiskField::Reason, |parts| &mut parts.reason),
        (RiskField::BlastRadius, |parts| &mut parts.blast_radius),
        (RiskField::Mitigation, |parts| &mut parts.mitigation),
    ];
    for (field, of) in fields {
        let with = |text: String| {
            let mut parts = parts();
            *of(&mut parts) = text;
            Risk::new(parts)
        };
        for empty in ["", " ", "-", "…"] {
            assert_eq!(with(empty.to_owned()), Err(RiskError::SaysNothing { field }));
        }
        for split in [" a", "a ", "a\nb", "a\tb", "a\u{85}b", "a\u{9b}b", "a\u{2028}b"] {
            assert_eq!(with(split.to_owned()), Err(RiskError::NotOneLine { field }));
        }
        for character in "\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}".chars() {
            let turned = Err(RiskError::TurnsText { field, character });
            assert_eq!(with(format!("a{character}b")), turned);
        }
        assert!(with("ä".repeat(500)).is_ok());
        let characters = 501;
        let long = with("ä".repeat(characters));
        assert_eq!(long, Err(RiskError::TooLong { field, characters }));
    }
}

#[test]
fn a_class_stands_on_the_register_once_and_both_places_are_told() {
    let risk = |name: &str| {
        Risk::new(RiskParts {
            class: ClassName::new(name).unwrap(),
            ..parts()
        })
        .unwrap()
    };
    let twice = RiskRegister::new(vec![risk("a"), risk("b"), risk("c"), risk("b")]).unwrap_err();
    assert_eq!((twice.first, twice.second), (1, 3));
    assert_eq!(twice.class.as_str(), "b");
}

#[test]
fn what_is_due_comes_with_what_is_overdue_and_the_most_urgent_first() {
    let risk = |name: &str, review_by: Day| {
        Risk::new(RiskParts {
            class: ClassName::new(name).unwrap(),
            accepted_on: before(90),
            review_by,
            ..parts()
        })
        .unwrap()
    };
    let on = |days| TODAY.plus(Days::new(days));
    let register = RiskRegister::new(vec![
        risk("later", on(31)),
        risk("due", on(30)),
        risk("past", before(3)),
    ])
    .unwrap();
    let due = |days| -> Vec<String> {
        let due = register.due(TODAY, Days::new(days));
        due.iter().map(|risk| risk.class().to_string()).collect()
    };
    assert_eq!(due(30), ["past", "due"]);
    assert_eq!(due(0), ["past"]);
    assert_eq!(due(u32::MAX), ["past", "due", "later"]);
}

proptest! {
    #[test]
    fn days_added_are_the_days_between(start in -1_000_000..1_000_000_i32, days in 0..1_000_000_u32) {
        let first = Day::from_epoch(start);
        let last = first.plus(Days::new(days));
        prop_assert_eq!(last.days_after(first), Some(Days::new(days)));
        prop_assert_eq!(first.days_after(last), (days == 0).then_some(Days::new(0)));
    }

    #[test]
    fn the_ends_of_the_calendar_do_not_wrap(start in any::<i32>(), days in any::<u32>()) {
        let first = Day::from_epoch(start);
        prop_assert!(first.plus(Days::new(days)) >= first);
    }
}
