//! Whether a history's header is the one that its scenario demands.

use crate::history::{Event, Exercise, GrantRecord, History};
use crate::scenario::{ScenarioId, Times};

/// The times to live that a class may have, in nanoseconds.
const TTL_NS: std::ops::RangeInclusive<u64> = 2_000_000_000..=3_600_000_000_000;

/// Everything in the header that the scenario does not demand, or that the events below it belie: what it is, what it must
/// be, and what stands there.
pub(super) fn differences(id: ScenarioId, history: &History) -> Vec<(&'static str, String, String)> {
    let run = history.run();
    let (exercise, attempts) = {
        let times = Times::named_by(run.exercise);
        (id.exercise(times), id.attempts(times))
    };
    let mut fields = vec![
        (
            "what it went through",
            format!("{exercise:?}"),
            format!("{:?}", run.exercise),
        ),
        (
            "the attempts and what is expected of them",
            format!("{attempts:?}"),
            format!("{:?}", run.attempts),
        ),
    ];
    if let Exercise::ShortPause { ttl_ns }
    | Exercise::KeptAlive { ttl_ns }
    | Exercise::StoreStopped { ttl_ns } = run.exercise
    {
        let nearest = ttl_ns.clamp(*TTL_NS.start(), *TTL_NS.end());
        fields.push(("the time to live", nearest.to_string(), ttl_ns.to_string()));
    }
    if let Some(first) = first_grant(history) {
        fields.push(("the class", first.class.clone(), run.class.clone()));
        fields.push(("the contested key", first.key.clone(), run.key.clone()));
        if let Some(stale) = &run.stale_grant {
            fields.push(("the grant that goes stale", first.grant.clone(), stale.clone()));
        }
    }
    if id.is_control() {
        let stale = format!("{:?}", run.stale_grant);
        fields.push(("the grant that goes stale", "None".to_owned(), stale));
    }
    for (_, _, event) in history.events() {
        if let Event::Final(last) = event {
            let names = |accounts: &std::collections::BTreeMap<String, i64>| {
                let names: Vec<&str> = accounts.keys().map(String::as_str).collect();
                names.join(", ")
            };
            fields.push(("the accounts", names(&last.balances), names(&run.opening)));
        }
    }
    fields.retain(|(_, demanded, found)| demanded != found);
    fields
}

/// The first holder's grant. Holders are numbered in the order in which they are granted the contested key.
fn first_grant(history: &History) -> Option<&GrantRecord> {
    history.events().find_map(|(_, _, event)| match event {
        Event::Grant(grant) if grant.holder == "H1" => Some(grant),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::history::{At, Attempt, Bounds, Clock, Final, GuardForm, Half, Outcome, Run, TokenNumber};

    fn run(id: ScenarioId) -> Run {
        let times = Times {
            ttl_ns: 2_000_000_000,
            idle_ns: 5_000_000_000,
            bytes: 3,
        };
        Run {
            schema: Run::SCHEMA,
            scenario: id.to_string(),
            class: "paydb.account".to_owned(),
            key: "acct-1".to_owned(),
            half: Half::Guarded,
            seed: "7".to_owned(),
            clock: Clock::Monotonic,
            guard: GuardForm::Mark,
            exercise: id.exercise(times),
            bounds: Bounds {
                deadline_ns: 1,
                slack_ns: 1,
            },
            stale_grant: (!id.is_control()).then(|| "g1".to_owned()),
            attempts: id.attempts(times),
            deed: "refunded".to_owned(),
            opening: BTreeMap::from([("acct-1".to_owned(), 100)]),
        }
    }

    fn fields(id: ScenarioId, change: impl FnOnce(&mut Run)) -> Vec<&'static str> {
        let mut run = run(id);
        change(&mut run);
        let granted = GrantRecord {
            class: "paydb.account".to_owned(),
            key: "acct-1".to_owned(),
            token: TokenNumber::new(1),
            grant: "g1".to_owned(),
            holder: "H1".to_owned(),
        };
        let last = Final {
            ids: Vec::new(),
            balances: BTreeMap::from([("acct-1".to_owned(), 70)]),
            marks: Vec::new(),
        };
        let at = At::from_nanos;
        let history = History::new(run, vec![(at(1), granted.into()), (at(2), last.into())]);
        let found = differences(id, &history).into_iter();
        found.map(|(field, _, _)| field).collect()
    }

    #[test]
    fn a_header_of_its_own_scenario_is_in_order_and_of_any_other_form_is_not() {
        for id in ScenarioId::ALL {
            assert_eq!(fields(*id, |_| {}), Vec::<&str>::new(), "{id}");
            let forms = ScenarioId::ALL
                .iter()
                .map(|other| other.exercise(Times::default()));
            for form in forms.chain([Exercise::Control]) {
                if std::mem::discriminant(&form) != std::mem::discriminant(&run(*id).exercise) {
                    let found = fields(*id, |run| run.exercise = form);
                    assert_eq!(found[0], "what it went through", "{id} as {form:?}");
                }
            }
        }
    }

    #[test]
    fn whatever_the_scenario_or_the_rest_of_the_history_belies_is_named() {
        let (late, control) = (ScenarioId::S01, ScenarioId::S18);
        let attempts = ["the attempts and what is expected of them"];
        assert_eq!(fields(ScenarioId::S17, |run| run.attempts.clear()), attempts);
        let legal = || vec![Attempt::new("H1-write-1", Outcome::Legal)];
        assert_eq!(fields(late, |run| run.attempts = legal()), attempts);
        let another = |run: &mut Run| run.stale_grant = Some("g2".to_owned());
        assert_eq!(fields(late, another), ["the grant that goes stale"]);
        let some = |run: &mut Run| run.stale_grant = Some("g1".to_owned());
        assert_eq!(fields(control, some), ["the grant that goes stale"]);
        assert_eq!(
            fields(late, |run| run.key = "acct-2".to_owned()),
            ["the contested key"]
        );
        assert_eq!(fields(late, |run| run.class = "other".to_owned()), ["the class"]);
        assert_eq!(fields(late, |run| run.opening.clear()), ["the accounts"]);
        let short = |run: &mut Run| run.exercise = Exercise::ShortPause { ttl_ns: 1 };
        assert_eq!(fields(control, short), ["the time to live"]);
    }
}
