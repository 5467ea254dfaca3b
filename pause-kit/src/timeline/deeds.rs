//! What the successors did, each thing at its time.

use super::attempt::Answered;
use super::facts::Facts;
use super::words::{Tokens, length, times};
use crate::history::{At, Event, GrantRecord, Op, ProbeKind, Reply, Request, Work};
use crate::judge::Said;

/// Something to be told, at its time.
pub(super) enum Part {
    /// A sentence of its own.
    Told(String),
    /// How a holder came to the lock: what stands before its name, its name, and what it did.
    Came(String, String, String),
    /// What a holder did then; without more in between, it goes on in the same sentence.
    Did(String, String),
}

/// The parts in the order of their times, as sentences.
pub(super) fn sentences(mut parts: Vec<(At, Part)>) -> Vec<String> {
    parts.sort_by_key(|(at, _)| *at);
    let mut all = Vec::new();
    // The sentence that may go on: what stands before the holder, the holder, and what it did.
    let mut open: Option<(String, String, Vec<String>)> = None;
    for (_, part) in parts {
        match part {
            Part::Did(holder, deed) => match &mut open {
                Some((_, who, deeds)) if *who == holder => deeds.push(deed),
                _ => {
                    all.extend(open.replace((String::new(), holder, vec![deed])).map(joined));
                }
            },
            Part::Came(how, holder, deed) => all.extend(open.replace((how, holder, vec![deed])).map(joined)),
            Part::Told(sentence) => {
                all.extend(open.take().map(joined));
                all.push(sentence);
            }
        }
    }
    all.extend(open.map(joined));
    all
}

fn joined((how, who, deeds): (String, String, Vec<String>)) -> String {
    match deeds.split_last() {
        Some((last, [])) => format!("{how}{who} {last}."),
        Some((last, others)) => format!("{how}{who} {} and {last}.", others.join(", ")),
        None => String::new(),
    }
}

/// How each successor came to the lock, and all that it did that is no late attempt.
pub(super) fn of_successors(facts: &Facts<'_>, tokens: &Tokens) -> Vec<(At, Part)> {
    let mut parts = Vec::new();
    for &(at, grant) in facts.grants.iter().skip(1) {
        let token = tokens.short(&grant.token.to_string());
        parts.push((
            at,
            Part::Came(
                ended(facts, at),
                grant.holder.clone(),
                format!("was granted token {token}"),
            ),
        ));
        of_successor(facts, tokens, grant, &mut parts);
    }
    parts.extend(rolled_back(facts, tokens));
    parts.extend(timed_out(facts));
    parts
}

/// How the lease before this grant ended before its time.
fn ended(facts: &Facts<'_>, at: At) -> String {
    let mut ends = facts.events.iter().filter_map(|(_, ended, event)| match event {
        Event::LeaseEnd(end) if *ended <= at => Some(end),
        _ => None,
    });
    let last = ends.next_back();
    let last = last.and_then(|end| Some((facts.holder_of(&end.grant)?, end.cause.as_str())));
    match last {
        None | Some((_, "released")) => String::new(),
        Some((holder, "expired")) => format!("{holder}'s lease ran out; "),
        Some((holder, "revoked")) => format!("{holder}'s lease was revoked; "),
        Some((holder, _)) => format!("{holder}'s lease ended; "),
    }
}

fn of_successor(facts: &Facts<'_>, tokens: &Tokens, grant: &GrantRecord, parts: &mut Vec<(At, Part)>) {
    let holder = &grant.holder;
    let did = |deed: &str| Part::Did(holder.clone(), deed.to_owned());
    for (_, at, event) in &facts.events {
        if let Event::Read(read) = event
            && read.by == *holder
            && facts.run.key == read.key
        {
            parts.push((*at, did("read")));
        }
    }
    let attempts: Vec<&Op> = facts.attempts().into_iter().map(|(op, _)| op).collect();
    let mut requests: Vec<(At, &Request)> = facts.requests().collect();
    requests.retain(|(_, request)| {
        request.grant.as_deref() == Some(&grant.grant) && !attempts.contains(&&request.op)
    });
    requests.sort_by_key(|(at, _)| *at);
    let (mut blocked, mut written) = (Vec::new(), 0);
    for (sent, request) in requests {
        let at = facts.answer(&request.op).map_or(sent, |(at, _)| at);
        let words = || Answered::of(facts, &request.op, tokens).words;
        match (request.work, facts.said(&request.op)) {
            (Work::Raise, Some(Said::Accepted)) => parts.push((at, did("raised the mark"))),
            (Work::Raise, _) => {
                let told = format!("{holder}'s raise of the mark came to this: {}.", words());
                parts.push((at, Part::Told(told)));
            }
            (Work::Write, Some(Said::Blocked)) => blocked.push((sent, at)),
            (Work::Write, Some(Said::Accepted)) => {
                let lay = facts
                    .events
                    .iter()
                    .any(|(_, _, event)| matches!(event, Event::Queued(queued) if queued.op == request.op));
                parts.extend(waited(holder, &blocked));
                let after = blocked.first().map(|(first, _)| length(at.since(*first)));
                let deed = match (after, written) {
                    _ if lay => Part::Told(format!("The resource read {holder}'s write and accepted it.")),
                    (Some(after), _) => did(&format!("wrote after {after}")),
                    (None, 0) => did("wrote"),
                    (None, _) => did("wrote again"),
                };
                parts.push((at, deed));
                (blocked, written) = (Vec::new(), written + 1);
            }
            (Work::Write, _) => {
                parts.push((
                    at,
                    Part::Told(format!("{holder}'s write came to this: {}.", words())),
                ));
            }
        }
    }
    parts.extend(waited(holder, &blocked));
}

/// What a holder was told whose writes were in another's way.
fn waited(holder: &str, blocked: &[(At, At)]) -> Option<(At, Part)> {
    let (_, last) = blocked.last()?;
    let deed = format!(
        "was told {} that an older transaction was in the way",
        times(blocked.len())
    );
    Some((*last, Part::Did(holder.to_owned(), deed)))
}

/// The admissions that the kit made in a holder's name and rolled back.
fn rolled_back(facts: &Facts<'_>, tokens: &Tokens) -> Vec<(At, Part)> {
    let told = |(_, at, event): &(usize, At, &Event)| {
        let Event::Probe(probe) = event else { return None };
        if probe.probe != ProbeKind::RolledBack || probe.key != facts.run.key {
            return None;
        }
        let holder = facts.holder_of(probe.presented.grant.as_deref()?)?;
        let token = tokens.short(probe.presented.token.as_deref()?);
        let came = match &probe.reply {
            Reply::Sql { sqlstate: None, .. } => "was made and rolled back",
            _ => "that was to be rolled back was not made",
        };
        let told = format!("An admission of {holder}, with token {token}, {came}.");
        Some((*at, Part::Told(told)))
    };
    facts.events.iter().filter_map(told).collect()
}

/// The transactions that PostgreSQL ended because they idled.
fn timed_out(facts: &Facts<'_>) -> Vec<(At, Part)> {
    let told = |(_, at, event): &(usize, At, &Event)| {
        let Event::Answer(answer) = event else { return None };
        let (_, request) = facts.request(&answer.op)?;
        match &answer.reply {
            Reply::Sql {
                sqlstate: Some(state),
                ..
            } if state == "25P03" => {
                let told = format!("PostgreSQL ended {}'s idle transaction.", request.holder);
                Some((*at, Part::Told(told)))
            }
            _ => None,
        }
    };
    facts.events.iter().filter_map(told).collect()
}
