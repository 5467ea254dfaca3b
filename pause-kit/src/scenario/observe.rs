//! From what the paths and the store recorded to the events of the history.

use std::time::Instant;

use sha2::{Digest, Sha256};

use crate::history::{
    Answer, Cause, DbAnswer, GrantRecord, LeaseEnd, Op, Presented, Read, Reply, Request, Unanswered, Work,
};
use crate::store::StoreEvent;
use crate::wire::postgres::{Statement, statements};

use super::exchanges::{Kind, Seen};
use super::half::Half;
use super::holder::Holder;
use super::writer::Writer;

/// A request that got an answer, for attributing what the database answered meanwhile.
struct Span {
    op: Op,
    token: Option<String>,
    began: Instant,
    ended: Instant,
}

impl Half<'_> {
    /// Records what the store, the holders' paths and the resource's own path have seen.
    pub(crate) fn observe(&self) {
        self.store_events();
        let mut spans = Vec::new();
        for holder in self.holders() {
            match &holder.sql {
                None => self.exchanges(&holder, &mut spans),
                Some(forms) => self.transactions(&Writer {
                    name: holder.name,
                    path: &holder.path,
                    forms,
                    granted: holder.grant(),
                    id: None,
                }),
            }
        }
        if let Some(worker) = self.worker.get() {
            self.transactions(&worker.writer());
        }
        self.database_answers(&spans);
    }

    fn store_events(&self) {
        let mut number = 0;
        let revoked = self.revoked().clone();
        let expires = self.task.slot.scenario.ends_leases_by() == Some(Cause::Expired);
        for (at, event) in self.grants.events() {
            let at = self.recorder.at(at);
            match event {
                StoreEvent::Granted {
                    class,
                    key,
                    token,
                    grant,
                } => {
                    let contested = class == self.task.class.name && key == self.keys[0];
                    number += usize::from(contested);
                    let record = GrantRecord {
                        class: class.to_string(),
                        key: key.to_string(),
                        token: token.into(),
                        grant: grant.to_string(),
                        holder: if contested {
                            format!("H{number}")
                        } else {
                            "another".to_owned()
                        },
                    };
                    self.recorder.record(at, record);
                }
                StoreEvent::Ended { grant, released } => {
                    let first = self.holders().first().and_then(|first| first.grant().cloned());
                    let cause = match (released, first) {
                        (true, _) => Cause::Released,
                        (false, _) if revoked.contains(&grant) => Cause::Revoked,
                        (false, Some(first)) if first.grant == grant && expires => Cause::Expired,
                        (false, _) => Cause::Gone,
                    };
                    self.recorder.record(
                        at,
                        LeaseEnd {
                            grant: grant.to_string(),
                            cause,
                        },
                    );
                }
            }
        }
    }

    fn exchanges(&self, holder: &Holder, spans: &mut Vec<Span>) {
        let (mut raises, mut writes) = (0, 0);
        for seen in holder.requests() {
            let (work, op) = match seen.kind {
                Kind::Read => {
                    self.holders_read(holder, &seen);
                    continue;
                }
                Kind::Raise => {
                    raises += 1;
                    (Work::Raise, Op::new(format!("{}-raise-{raises}", holder.name)))
                }
                Kind::Write => {
                    writes += 1;
                    (Work::Write, Op::new(format!("{}-write-{writes}", holder.name)))
                }
            };
            self.exchange(holder, &seen, work, op, spans);
        }
    }

    fn exchange(&self, holder: &Holder, seen: &Seen, work: Work, op: Op, spans: &mut Vec<Span>) {
        let request = &seen.exchange.request;
        let (token, grant) = seen.presented.clone();
        let owner = holder.grant().map(|granted| granted.grant.to_string());
        self.recorder.record(
            self.recorder.at(request.began),
            Request {
                op: op.clone(),
                holder: holder.name.to_owned(),
                work,
                class: self.task.class.name.to_string(),
                key: self.keys[0].to_string(),
                grant: seen.id.as_deref().map(grant_of).map(str::to_owned).or(owner),
                presented: Presented {
                    token: token.clone(),
                    grant,
                },
                id: seen.id.clone(),
                sent: request.sent.map(|at| self.recorder.at(at)),
            },
        );
        let answer = seen.exchange.answer.as_ref();
        let answer = answer.and_then(|answer| match (answer.ended, seen.cut) {
            // What a cut kept back was no answer to anybody.
            (None, Some(_)) => None,
            (ended, _) => Some((answer, ended.or(answer.received)?)),
        });
        match answer {
            Some((answer, ended)) => {
                let reply = Reply::Http {
                    status: answer.status,
                    problem: answer.problem_type(),
                    stored: answer.headers.only("idempotency-replayed").is_some(),
                };
                self.recorder.record(
                    self.recorder.at(ended),
                    Answer {
                        op: op.clone(),
                        reply,
                        body: Some(digest(&answer.body)),
                    },
                );
                spans.push(Span {
                    op,
                    token,
                    // What is held is not under way at the resource.
                    began: request
                        .sent
                        .filter(|sent| *sent <= ended)
                        .unwrap_or(request.began),
                    ended,
                });
            }
            None => {
                let (at, why) = match seen.cut {
                    Some(cut) => (self.recorder.at(cut), "its connection was cut off on the path"),
                    None => (self.recorder.now(), "no whole answer came"),
                };
                let why = why.to_owned();
                self.recorder.record(at, Unanswered { op, why });
            }
        }
    }

    fn holders_read(&self, holder: &Holder, seen: &Seen) {
        let ended = seen.exchange.answer.as_ref().and_then(|answer| answer.received);
        let (Some(ids), Some(ended)) = (seen.shown.clone(), ended) else {
            return;
        };
        self.recorder.record(
            self.recorder.at(ended),
            Read {
                by: holder.name.to_owned(),
                class: self.task.class.name.to_string(),
                key: self.keys[0].to_string(),
                began: self.recorder.at(seen.exchange.request.began),
                ids,
                balances: Default::default(),
            },
        );
    }

    /// Every error that the database answered to the resource. It belongs to the operation that presented the token in its
    /// DETAIL and was under way; without such a DETAIL, to the only one that was.
    fn database_answers(&self, spans: &[Span]) {
        for (connection, statement) in self.statements_of(&self.database_path) {
            let (Some(error), Some(at)) = (statement.error(), statement.completed) else {
                continue;
            };
            let presented = error.detail.as_deref().and_then(presented_in);
            let under_way: Vec<&Span> = spans
                .iter()
                .filter(|span| span.began <= at && at <= span.ended)
                .collect();
            let op = match presented {
                Some(token) => under_way.iter().find(|span| span.token.as_deref() == Some(token)),
                None if under_way.len() == 1 => under_way.first(),
                None => None,
            };
            self.recorder.record(
                self.recorder.at(at),
                DbAnswer {
                    op: op.map(|span| span.op.clone()),
                    connection,
                    sqlstate: Some(error.sqlstate.clone()),
                    detail: error.detail.clone(),
                    tag: None,
                },
            );
        }
    }

    /// Every statement on a path to the database, with the number of its connection.
    pub(crate) fn statements_of(&self, path: &crate::path::Path) -> Vec<(u64, Statement)> {
        path.read(|log| {
            let mut all = Vec::new();
            for connection in log.connections() {
                let number = connection.number.value().into();
                all.extend(
                    statements(connection)
                        .unwrap_or_default()
                        .into_iter()
                        .map(|one| (number, one)),
                );
            }
            all
        })
    }
}

/// What tells two bodies apart.
fn digest(body: &[u8]) -> String {
    let mut whole = hex::encode(Sha256::digest(body));
    whole.truncate(16);
    whole
}

/// The grant under which a write with this id was made: `<grant id>:<n>`, or the grant id alone.
pub(crate) fn grant_of(id: &str) -> &str {
    match id.rsplit_once(':') {
        Some((grant, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => grant,
        _ => id,
    }
}

/// N of `presented N, seen M`.
fn presented_in(detail: &str) -> Option<&str> {
    detail
        .strip_prefix("presented ")?
        .split_once(',')
        .map(|(token, _)| token)
}
