//! How times, tokens and rules are written.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::facts::Facts;
use crate::evidence::InvariantBroken;
use crate::history::{Alteration, At, Event, Work};
use crate::judge::Invariant;

/// The time since the run began, in seconds.
pub(super) fn clock(at: At) -> String {
    format!(
        "{}.{:03}\u{A0}s",
        at.as_nanos() / 1_000_000_000,
        at.as_nanos() / 1_000_000 % 1_000
    )
}

/// A length of time, as exactly as a reader needs it.
pub(super) fn length(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    match millis {
        _ if millis < 9.95 => format!("{millis:.1}\u{A0}ms"),
        _ if millis < 999.5 => format!("{millis:.0}\u{A0}ms"),
        _ => format!("{:.1}\u{A0}s", millis / 1e3),
    }
}

/// A process by the name that the kit gives it, at the beginning of a sentence.
pub(super) fn actor(target: &str) -> &str {
    match target {
        "R" => "The resource",
        "W" => "The resource's worker",
        "L" => "The lock store",
        "B" => "The database's backend",
        holder => holder,
    }
}

/// `once`, `twice`, `3 times`.
pub(super) fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

/// `1 thing`, `2 things`.
pub(super) fn count(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

/// The same text with its first letter large.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Long tokens of one scenario, each cut to the last digits that tell it from the others.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    short: BTreeMap<String, String>,
    grants: BTreeSet<(String, String)>,
    /// The judge's names of operations, and what they are.
    operations: BTreeMap<String, String>,
    /// The ids of writes, and whose they are.
    writes: BTreeMap<String, String>,
}

impl Tokens {
    /// The tokens that the halves speak of.
    pub(super) fn of(halves: &[&Facts<'_>]) -> Tokens {
        let mut long = BTreeSet::new();
        let mut grants = BTreeSet::new();
        let mut operations = BTreeMap::new();
        let mut writes = BTreeMap::new();
        for half in halves {
            for (_, grant) in &half.grants {
                long.insert(grant.token.to_string());
                grants.insert((grant.grant.clone(), grant.token.to_string()));
            }
            for (_, request) in half.requests() {
                let work = match request.work {
                    Work::Raise => "raise of the mark",
                    Work::Write => "write",
                };
                let author = half.author(request);
                let name = format!("{} of {author}", request.op);
                operations.insert(name, format!("{author}'s {work}"));
                let id = request.id.iter().filter(|id| request.grant.as_ref() != Some(id));
                writes.extend(id.map(|id| (id.clone(), author.to_owned())));
            }
            // What the path has made of a token may end as the token does.
            let made = |how| !matches!(how, Alteration::Nothing | Alteration::EqualToken);
            let made = |op| half.relay(op).is_some_and(|(_, relay)| made(relay.how));
            let presented = half.requests().filter(|(_, request)| !made(&request.op));
            long.extend(presented.filter_map(|(_, request)| request.presented.token.clone()));
            for (_, _, event) in &half.events {
                if let Event::Final(last) = event {
                    long.extend(last.marks.iter().map(|mark| mark.token.to_string()));
                }
            }
        }
        long.retain(|token| token.len() > 6 && token.bytes().all(|byte| byte.is_ascii_digit()));
        let end = |token: &str, digits: usize| token[token.len().saturating_sub(digits)..].to_owned();
        let distinct = |digits: usize| {
            long.iter()
                .map(|token| end(token, digits))
                .collect::<BTreeSet<_>>()
                .len()
                == long.len()
        };
        let digits = (3..20).find(|digits| distinct(*digits)).unwrap_or(20);
        let short = long.iter().filter(|token| token.len() > digits).map(|token| {
            let cut = format!("…{}", end(token, digits));
            (token.clone(), cut)
        });
        Tokens {
            short: short.collect(),
            grants,
            operations,
            writes,
        }
    }

    /// A token as it is shown.
    pub(super) fn short(&self, token: &str) -> String {
        let each = token.split(", ");
        let each: Vec<&str> = each
            .map(|one| self.short.get(one).map_or(one, String::as_str))
            .collect();
        each.join(" and ")
    }

    /// The judge's words, with tokens cut and grant ids left out where the token tells as much.
    pub(super) fn in_words(&self, words: &str) -> String {
        let mut words = words.to_owned();
        for (grant, token) in &self.grants {
            words = words.replace(
                &format!("grant {grant}, token {token}"),
                &format!("token {}", self.short(token)),
            );
        }
        for (name, what) in &self.operations {
            words = words.replace(name, what);
        }
        for (id, holder) in &self.writes {
            words = words.replace(&format!("{id} of {holder}"), &format!("{holder}'s write"));
            words = words.replace(id, &format!("{holder}'s write"));
        }
        for (token, short) in &self.short {
            words = words.replace(token, short);
        }
        words
    }
}

/// `rule 2 (real-time refusal)`.
pub(super) fn rule(number: Option<u8>, name: &str) -> String {
    match number {
        Some(number) => format!("rule {number} ({name})"),
        None => format!("the rule \"{name}\""),
    }
}

/// Broken rules, the most telling first: late writes, and refused ones that took effect, before what follows from them.
pub(super) fn by_weight(broken: &[InvariantBroken]) -> Vec<&InvariantBroken> {
    let mut broken: Vec<&InvariantBroken> = broken.iter().collect();
    broken.sort_by_key(|one| match one.invariant {
        Some(2..=4) => 0,
        _ if follows(one) => 2,
        _ => 1,
    });
    broken
}

/// Whether the rule breaks because another one did, so that its lines tell of the whole run.
pub(super) fn follows(broken: &InvariantBroken) -> bool {
    matches!(broken.invariant, Some(6 | 9)) || broken.name == Invariant::LostUpdate.name()
}

/// What a rule demands.
pub(super) fn demand(number: Option<u8>, name: &str) -> &'static str {
    match number {
        Some(1) => "In the order of commits, tokens never fall.",
        Some(2) => {
            "A write that began after a newer holder had been in touch with the resource is not accepted."
        }
        Some(3) => {
            "A write that took effect after a newer holder had been in touch is not accepted, whenever it was sent."
        }
        Some(4) => "Nothing ever shows a refused write.",
        Some(5) => "A write is only refused as stale if a newer holder came first.",
        Some(6) => {
            "In the order of commits, each holder's writes stand together: nobody comes back after a successor."
        }
        Some(7) => "Equal tokens belong to one grant, and every accepted write to a recorded grant.",
        Some(8) => "Tokens of successive grants strictly increase.",
        Some(9) => "One order of all operations explains every answer.",
        Some(10) => "A request has one effect and one answer, however often it is sent.",
        Some(11) => "The mark never falls, and is never below a token that was acknowledged.",
        Some(12) => "Balances are the sum of the accepted writes.",
        Some(13) => "The successor's first write returns within its bound.",
        Some(14) => "The late attempt is answered as stale, exactly.",
        Some(15) => "The run went through what the scenario is about.",
        Some(16) => "All times come from one clock.",
        _ if name == Invariant::LostUpdate.name() => {
            "No write rests on a read that misses what another holder had written by then."
        }
        _ => "What clients saw and what the log of commits says agree.",
    }
}
