//! What one history tells, looked up by operation, grant and write.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{
    Alteration, Answer, At, Change, Commit, Event, GrantRecord, History, Op, Outcome, Relay, Reply, Request,
    Run, TokenNumber,
};
use crate::judge::Said;

/// One half.
pub(super) struct Facts<'h> {
    pub(super) run: &'h Run,
    pub(super) events: Vec<(usize, At, &'h Event)>,
    pub(super) grants: Vec<(At, &'h GrantRecord)>,
    requests: BTreeMap<&'h Op, (At, &'h Request)>,
    answers: BTreeMap<&'h Op, (At, Option<&'h Reply>)>,
    details: BTreeMap<&'h Op, &'h str>,
    /// The first error that the database answered behind each operation.
    behind: BTreeMap<&'h Op, &'h str>,
    /// The mark that each operation's commit left, from the write-ahead log.
    marks: BTreeMap<&'h Op, TokenNumber>,
    /// The transaction that each operation committed.
    transactions: BTreeMap<&'h Op, u64>,
}

impl<'h> Facts<'h> {
    pub(super) fn of(history: &'h History) -> Facts<'h> {
        let mut facts = Facts {
            run: history.run(),
            events: history.events().collect(),
            grants: Vec::new(),
            requests: BTreeMap::new(),
            answers: BTreeMap::new(),
            details: BTreeMap::new(),
            behind: BTreeMap::new(),
            marks: BTreeMap::new(),
            transactions: BTreeMap::new(),
        };
        for &(_, at, event) in &facts.events {
            match event {
                Event::Grant(grant) => facts.grants.push((at, grant)),
                Event::Request(request) => {
                    facts.requests.insert(&request.op, (at, request));
                }
                Event::Answer(Answer { op, reply, .. }) => {
                    facts.answers.insert(op, (at, Some(reply)));
                    if let Reply::Sql {
                        detail: Some(detail), ..
                    } = reply
                    {
                        facts.details.insert(op, detail);
                    }
                }
                Event::Unanswered(lost) => {
                    facts.answers.insert(&lost.op, (at, None));
                }
                Event::DbAnswer(answer) => {
                    if let (Some(op), Some(sqlstate)) = (&answer.op, &answer.sqlstate) {
                        facts.behind.entry(op).or_insert(sqlstate);
                    }
                    if let (Some(op), Some(detail)) = (&answer.op, &answer.detail) {
                        facts.details.insert(op, detail);
                    }
                }
                _ => {}
            }
        }
        facts.find_commits();
        facts
    }

    /// The attempts that the scenario is about, each with the outcome that a guarded resource must give it.
    pub(super) fn attempts(&self) -> Vec<(&'h Op, Outcome)> {
        let attempts = self.run.attempts.iter();
        attempts.map(|attempt| (&attempt.op, attempt.expected)).collect()
    }

    /// Whether it is an attempt of a holder whose lease had ended by the time of its answer.
    pub(super) fn is_late(&self, op: &Op) -> bool {
        let is_attempt = self.attempts().iter().any(|(attempt, _)| *attempt == op);
        let grant = self.request(op).and_then(|(_, request)| request.grant.as_deref());
        let answered = self.answer(op).map(|(at, _)| at);
        let mut ends = self.events.iter().filter_map(|(_, at, event)| match event {
            Event::LeaseEnd(end) if Some(end.grant.as_str()) == grant => Some(at),
            _ => None,
        });
        is_attempt && ends.any(|ended| answered.is_none_or(|answered| *ended <= answered))
    }

    pub(super) fn request(&self, op: &Op) -> Option<(At, &'h Request)> {
        self.requests.get(op).copied()
    }

    pub(super) fn requests(&self) -> impl Iterator<Item = (At, &'h Request)> {
        self.requests.values().copied()
    }

    /// When it was answered, or given up, and with what.
    pub(super) fn answer(&self, op: &Op) -> Option<(At, Option<&'h Reply>)> {
        self.answers.get(op).copied()
    }

    pub(super) fn said(&self, op: &Op) -> Option<Said> {
        let reply = self.answer(op)?.1?;
        Some(Said::of(reply, self.behind.get(op).copied()))
    }

    /// The mark that a refusal of the operation named.
    pub(super) fn seen(&self, op: &Op) -> Option<&'h str> {
        let (_, seen) = self
            .details
            .get(op)?
            .strip_prefix("presented ")?
            .split_once(", seen ")?;
        Some(seen)
    }

    /// The mark after the operation's commit.
    pub(super) fn mark_after(&self, op: &Op) -> Option<TokenNumber> {
        self.marks.get(op).copied()
    }

    /// The mark as the last operation left it that was answered before the answer to this one.
    pub(super) fn mark_before(&self, op: &Op) -> Option<TokenNumber> {
        let (until, _) = self.answer(op)?;
        let earlier = self.marks.iter().filter(|(other, _)| **other != op);
        let answered = earlier.filter_map(|(other, mark)| Some((self.answer(other)?.0, *mark)));
        let last = answered.filter(|(at, _)| *at < until).max_by_key(|(at, _)| *at);
        last.map(|(_, mark)| mark)
    }

    /// Whether the operation committed this change.
    pub(super) fn is_commit_of(&self, commit: &Commit, op: &Op) -> bool {
        self.transactions.get(op) == Some(&commit.xid)
    }

    /// The line on which the path says that it sends this operation itself, and that event.
    pub(super) fn relay(&self, op: &Op) -> Option<(usize, &'h Relay)> {
        self.events.iter().find_map(|(line, _, event)| match event {
            Event::Relay(relay) if relay.op == *op => Some((*line, relay)),
            _ => None,
        })
    }

    /// The request that had been accepted for later and that this operation carries out, for its holder.
    pub(super) fn deferred(&self, op: &Op) -> Option<&'h Request> {
        let id = self.request(op)?.1.id.as_deref()?;
        let mut requests = self.requests().map(|(_, request)| request);
        requests.find(|other| {
            other.op != *op && other.id.as_deref() == Some(id) && self.said(&other.op) == Some(Said::Deferred)
        })
    }

    /// Whose operation it is: who sent it, or who had asked for it.
    pub(super) fn author(&self, request: &'h Request) -> &'h str {
        self.deferred(&request.op)
            .map_or(&request.holder, |asked| &asked.holder)
    }

    /// Whether the path sent this operation again once it had been answered.
    pub(super) fn is_repeated(&self, op: &Op) -> bool {
        let answered = self.answer(op).is_some_and(|(_, reply)| reply.is_some());
        let mut events = self.events.iter();
        let again = |relay: &Relay| relay.of == *op && relay.how == Alteration::Nothing;
        answered && events.any(|(_, _, event)| matches!(event, Event::Relay(relay) if again(relay)))
    }

    /// Whether the COMMIT of its transaction was held on its way.
    pub(super) fn is_uncommitted(&self, op: &Op) -> bool {
        let mut events = self.events.iter();
        events.any(|(_, _, event)| matches!(event, Event::Uncommitted(commit) if commit.op == *op))
    }

    /// Who was granted it.
    pub(super) fn holder_of(&self, grant: &str) -> Option<&'h str> {
        let mut grants = self.grants.iter();
        grants
            .find(|(_, record)| record.grant == grant)
            .map(|(_, record)| record.holder.as_str())
    }

    /// Who wrote this id.
    pub(super) fn writer(&self, id: &str) -> Option<&'h str> {
        let mut requests = self.requests.values();
        let found = requests.find(|(_, request)| request.id.as_deref() == Some(id));
        found.map(|(_, request)| request.holder.as_str())
    }

    /// Whether holders speak to the resource over HTTP; otherwise they speak to PostgreSQL themselves.
    pub(super) fn has_front(&self) -> bool {
        let mut replies = self.answers.values().filter_map(|(_, reply)| *reply);
        replies.any(|reply| matches!(reply, Reply::Http { .. }))
    }

    /// Each job of the contested key, with the writes that did it.
    pub(super) fn jobs(&self) -> BTreeMap<&'h str, BTreeSet<&'h str>> {
        let mut jobs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (_, _, event) in &self.events {
            if let Event::Commit(commit) = event
                && let Change::Write {
                    class,
                    key,
                    id,
                    job: Some(job),
                    ..
                } = &commit.change
                && (class, key) == (&self.run.class, &self.run.key)
            {
                jobs.entry(job).or_default().insert(id);
            }
        }
        jobs
    }

    /// The writes that the resource held on the contested key at the end, as far as requests tell whose they are.
    pub(super) fn kept(&self) -> Vec<&'h str> {
        let finals = self.events.iter().rev().find_map(|(_, _, event)| match event {
            Event::Final(last) => Some(last),
            _ => None,
        });
        finals
            .iter()
            .flat_map(|last| &last.ids)
            .filter_map(|id| self.writer(id))
            .collect()
    }

    /// A write is found in the log by its id. A raise bears none: it is the next admission of its grant that no write made.
    fn find_commits(&mut self) {
        let mut writes: BTreeMap<&str, (u64, Option<TokenNumber>)> = BTreeMap::new();
        let mut admissions: Vec<(u64, TokenNumber, Option<&str>)> = Vec::new();
        for (_, _, event) in &self.events {
            let Event::Commit(commit) = event else { continue };
            match &commit.change {
                Change::Admission {
                    class,
                    key,
                    token,
                    grant,
                } if (class, key) == (&self.run.class, &self.run.key) => {
                    admissions.push((commit.xid, *token, grant.as_deref()));
                }
                Change::Admission { .. } => {}
                Change::Write { id, token, .. } => {
                    writes.entry(id).or_insert((commit.xid, *token));
                }
            }
        }
        let of_writes: BTreeSet<u64> = writes.values().map(|(xid, _)| *xid).collect();
        let mut raises: Vec<_> = admissions
            .iter()
            .filter(|(xid, ..)| !of_writes.contains(xid))
            .collect();
        let mut requests: Vec<_> = self
            .requests
            .values()
            .map(|(at, request)| (*at, *request))
            .collect();
        requests.sort_by_key(|(at, _)| *at);
        for (_, request) in requests {
            let may_have = self
                .said(&request.op)
                .is_none_or(|said| matches!(said, Said::Accepted | Said::Unknown));
            let found = match &request.id {
                _ if !may_have => None,
                Some(id) => writes.get(id.as_str()).map(|(xid, column)| {
                    let admitted = admissions.iter().find(|(admitted, ..)| admitted == xid);
                    (*xid, column.or(admitted.map(|(_, token, _)| *token)))
                }),
                None => {
                    let next = raises
                        .iter()
                        .position(|(.., grant)| *grant == request.grant.as_deref());
                    let next = next.map(|next| raises.remove(next));
                    next.map(|(xid, token, _)| (*xid, Some(*token)))
                }
            };
            if let Some((xid, mark)) = found {
                self.transactions.insert(&request.op, xid);
                self.marks.extend(mark.map(|mark| (&request.op, mark)));
            }
        }
    }
}
