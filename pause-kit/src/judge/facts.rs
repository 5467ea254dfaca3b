//! A history put in order for the checks: who held what, what was asked and answered, what was committed.

use std::collections::BTreeSet;

use super::index::Index;
use super::said::{Said, of_probe};
use crate::history::{
    Alteration, At, Cause, Commit, DbAnswer, Event, Final, GrantRecord, History, Hold, Killed, Op, Probe,
    ProbeKind, Queued, Read, Relay, Reply, Request, Restarted, Run, Started, Stop, Waiting, Withheld, Work,
};

/// A body with its line and time.
#[derive(Debug)]
pub(super) struct Seen<'h, T> {
    pub(super) line: usize,
    pub(super) at: At,
    pub(super) body: &'h T,
}

// Derived, it would ask the body to be `Copy` too.
impl<T> Clone for Seen<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Seen<'_, T> {}

/// A grant and its end in the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted<'h> {
    pub(super) line: usize,
    pub(super) at: At,
    pub(super) record: &'h GrantRecord,
    /// Line and time of the lease's end.
    pub(super) end: Option<(usize, At)>,
    /// What ended it.
    pub(super) cause: Option<Cause>,
    /// Whether its own holder gave it back.
    pub(super) released: bool,
}

/// A guarded operation with all that was said to it.
#[derive(Debug)]
pub(super) struct Guarded<'h> {
    pub(super) line: usize,
    pub(super) began: At,
    pub(super) request: &'h Request,
    /// The store's token of the grant that it belongs to. `None` when the store made no such grant on this key.
    pub(super) token: Option<i64>,
    pub(super) answer: Option<Seen<'h, Reply>>,
    /// The digest of that answer's body, where it is known.
    pub(super) body: Option<&'h str>,
    pub(super) given_up: Option<(usize, At)>,
    pub(super) db: Vec<Seen<'h, DbAnswer>>,
}

impl Guarded<'_> {
    pub(super) fn said(&self) -> Said {
        // The first error is the guard's; what follows it in a failed transaction is only an echo.
        let behind = self.db.iter().find_map(|seen| seen.body.sqlstate.as_deref());
        self.answer
            .map_or(Said::Unknown, |answer| Said::of(answer.body, behind))
    }

    pub(super) fn id(&self) -> Option<&str> {
        self.request.id.as_deref()
    }

    pub(super) fn is_write(&self) -> bool {
        self.request.work == Work::Write
    }

    /// When waiting for the resource began: once it could know the whole request.
    pub(super) fn sent(&self) -> At {
        self.request.sent.unwrap_or(self.began)
    }

    pub(super) fn same_key(&self, other: &Guarded<'_>) -> bool {
        self.request.class == other.request.class && self.request.key == other.request.key
    }
}

/// A right to be admitted: a grant of the store's, or a probe's claim that is right by its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Right<'h> {
    pub(super) class: &'h str,
    pub(super) key: &'h str,
    pub(super) grant: Option<&'h str>,
    pub(super) token: i64,
}

/// Everything that the checks ask about.
#[derive(Debug)]
pub(super) struct Facts<'h> {
    pub(super) history: &'h History,
    pub(super) run: &'h Run,
    pub(super) grants: Vec<Granted<'h>>,
    pub(super) ops: Vec<Guarded<'h>>,
    /// In commit order.
    pub(super) commits: Vec<Seen<'h, Commit>>,
    pub(super) reads: Vec<Seen<'h, Read>>,
    pub(super) probes: Vec<Seen<'h, Probe>>,
    pub(super) stops: Vec<Seen<'h, Stop>>,
    pub(super) holds: Vec<Seen<'h, Hold>>,
    pub(super) queued: Vec<Seen<'h, Queued>>,
    pub(super) waiting: Vec<Seen<'h, Waiting>>,
    pub(super) killed: Vec<Seen<'h, Killed>>,
    pub(super) restarted: Vec<Seen<'h, Restarted>>,
    pub(super) started: Vec<Seen<'h, Started>>,
    pub(super) relays: Vec<Seen<'h, Relay>>,
    pub(super) withheld: Vec<Seen<'h, Withheld>>,
    pub(super) finals: Vec<Seen<'h, Final>>,
    pub(super) rights: Vec<Right<'h>>,
    /// Names that answers and others bear although no request does, with their lines; and requests that share a name.
    pub(super) strays: Vec<(usize, &'h Op)>,
    pub(super) last: At,
    pub(super) index: Index<'h>,
}

impl<'h> Facts<'h> {
    pub(super) fn of(history: &'h History) -> Facts<'h> {
        let mut facts = Facts::apart(history);
        facts.index.add_shown(&facts.commits, &facts.reads, &facts.finals);
        facts.join();
        facts
    }

    /// What the commit order is judged by, and nothing joined to anything.
    pub(super) fn apart(history: &'h History) -> Facts<'h> {
        let mut facts = Facts {
            history,
            run: history.run(),
            grants: Vec::new(),
            ops: Vec::new(),
            commits: Vec::new(),
            reads: Vec::new(),
            probes: Vec::new(),
            stops: Vec::new(),
            holds: Vec::new(),
            queued: Vec::new(),
            waiting: Vec::new(),
            killed: Vec::new(),
            restarted: Vec::new(),
            started: Vec::new(),
            relays: Vec::new(),
            withheld: Vec::new(),
            finals: Vec::new(),
            rights: Vec::new(),
            strays: Vec::new(),
            last: At::from_nanos(0),
            index: Index::default(),
        };
        for (line, at, event) in history.events() {
            facts.take(line, at, event);
        }
        facts.commits.sort_by_key(|commit| commit.body.order);
        facts.index = Index::of_names(&facts.ops, &facts.rights);
        facts
    }

    /// The operation of this name.
    pub(super) fn op(&self, name: &Op) -> Option<&Guarded<'h>> {
        self.index.op(name).map(|place| &self.ops[place])
    }

    /// Whether the path changed the claim of this operation.
    pub(super) fn is_altered(&self, op: &Op) -> bool {
        let mut relays = self.relays.iter();
        relays.any(|relay| relay.body.op == *op && relay.body.how != Alteration::Nothing)
    }

    /// The first attempt, which is the only one of most scenarios.
    pub(super) fn attempt(&self) -> Option<&Guarded<'h>> {
        self.op(&self.run.attempts.first()?.op)
    }

    /// The store's record of the grant that goes stale.
    pub(super) fn stale_grant(&self) -> Option<Granted<'h>> {
        let grant = self.run.stale_grant.as_deref()?;
        self.grants
            .iter()
            .copied()
            .find(|granted| granted.record.grant == grant)
    }

    /// Grants of the contested key that came after the stale one.
    pub(super) fn successors(&self) -> impl Iterator<Item = Granted<'h>> + use<'h, '_> {
        let stale = self.stale_grant();
        self.grants.iter().copied().filter(move |granted| {
            stale.is_some_and(|stale| {
                granted.line > stale.line
                    && granted.record.class == stale.record.class
                    && granted.record.key == stale.record.key
            })
        })
    }

    /// Guarded operations that belong to a successor of the stale grant.
    pub(super) fn successor_ops(&self) -> Vec<&Guarded<'h>> {
        let grants: BTreeSet<&str> = self
            .successors()
            .map(|granted| granted.record.grant.as_str())
            .collect();
        let of_successor = |op: &&Guarded<'h>| {
            op.request
                .grant
                .as_deref()
                .is_some_and(|grant| grants.contains(grant))
        };
        self.ops.iter().filter(of_successor).collect()
    }

    /// The true token of what is committed under this grant.
    pub(super) fn right(&self, class: &str, key: &str, grant: Option<&str>) -> Option<Right<'h>> {
        self.index
            .right(class, key, grant)
            .map(|place| self.rights[place])
    }

    /// A line that shows this id of this key: committed, read, or read back at the end.
    pub(super) fn shown(&self, class: &str, key: &str, id: &str) -> Option<usize> {
        let committed = self.index.committed(class, key, id);
        committed
            .map(|place| self.commits[place].line)
            .or_else(|| self.first_read(class, key, id).map(|read| read.line))
            .or_else(|| self.read_back(class, key, id))
    }

    /// The first read of this key that shows this id.
    pub(super) fn first_read(&self, class: &str, key: &str, id: &str) -> Option<Seen<'h, Read>> {
        self.index.read(class, key, id).map(|place| self.reads[place])
    }

    /// The read-back at the end, when it shows this id. It shows no keys: an id that a probe brought to another key, as
    /// happens where the grant itself is the id, tells nothing about this one.
    pub(super) fn read_back(&self, class: &str, key: &str, id: &str) -> Option<usize> {
        let brought_elsewhere = || {
            self.probes.iter().any(|probe| {
                let elsewhere = probe.body.class != class || probe.body.key != key;
                elsewhere && probe.body.id.as_deref() == Some(id) && of_probe(probe.body) == Said::Accepted
            })
        };
        self.index.read_back(id).filter(|_| !brought_elsewhere())
    }

    /// Who an operation's grant is, in words.
    pub(super) fn who(&self, grant: Option<&str>) -> String {
        let Some(grant) = grant else {
            return "nobody's grant".to_owned();
        };
        match self.grants.iter().find(|granted| granted.record.grant == grant) {
            Some(Granted { record, .. }) => {
                format!("{} (grant {grant}, token {})", record.holder, record.token)
            }
            None => format!("grant {grant}, which the store never made"),
        }
    }

    fn take(&mut self, line: usize, at: At, event: &'h Event) {
        self.last = self.last.max(at);
        match event {
            Event::Grant(record) => {
                self.grants.push(Granted {
                    line,
                    at,
                    record,
                    end: None,
                    cause: None,
                    released: false,
                });
                self.rights.push(Right {
                    class: &record.class,
                    key: &record.key,
                    grant: Some(&record.grant),
                    token: record.token.number(),
                });
            }
            Event::Request(request) => self.ops.push(Guarded {
                line,
                began: at,
                request,
                token: None,
                answer: None,
                body: None,
                given_up: None,
                db: Vec::new(),
            }),
            Event::Commit(body) => self.commits.push(Seen { line, at, body }),
            Event::Read(body) => self.reads.push(Seen { line, at, body }),
            Event::Probe(body) => {
                self.probes.push(Seen { line, at, body });
                self.rights.extend(right_of_probe(body));
            }
            Event::Stop(body) => self.stops.push(Seen { line, at, body }),
            Event::Hold(body) => self.holds.push(Seen { line, at, body }),
            Event::Queued(body) => self.queued.push(Seen { line, at, body }),
            Event::Waiting(body) => self.waiting.push(Seen { line, at, body }),
            Event::Final(body) => self.finals.push(Seen { line, at, body }),
            Event::Killed(body) => self.killed.push(Seen { line, at, body }),
            Event::Restarted(body) => self.restarted.push(Seen { line, at, body }),
            Event::Started(body) => self.started.push(Seen { line, at, body }),
            Event::Withheld(body) => self.withheld.push(Seen { line, at, body }),
            Event::Relay(body) => self.relays.push(Seen { line, at, body }),
            Event::LeaseEnd(_) => {}
            // What speaks of a request is joined once all requests are known.
            Event::Answer(_) | Event::Unanswered(_) | Event::DbAnswer(_) => {}
        }
    }

    fn join(&mut self) {
        for index in 0..self.ops.len() {
            let request = self.ops[index].request;
            let grant = request.grant.as_deref();
            let right = grant.and_then(|grant| self.right(&request.class, &request.key, Some(grant)));
            self.ops[index].token = right.map(|right| right.token);
            if self.index.op(&request.op) != Some(index) {
                self.strays.push((self.ops[index].line, &request.op));
            }
        }
        let history = self.history;
        for (line, at, event) in history.events() {
            self.join_one(line, at, event);
        }
    }

    fn join_one(&mut self, line: usize, at: At, event: &'h Event) {
        let named = match event {
            Event::LeaseEnd(end) => {
                let mut open = self.grants.iter_mut().filter(|granted| granted.end.is_none());
                if let Some(granted) = open.find(|granted| granted.record.grant == end.grant) {
                    granted.end = Some((line, at));
                    granted.cause = Some(end.cause);
                    granted.released = end.cause == Cause::Released;
                }
                return;
            }
            Event::Answer(answer) => &answer.op,
            Event::Unanswered(unanswered) => &unanswered.op,
            Event::DbAnswer(DbAnswer { op: Some(op), .. }) => op,
            Event::Hold(hold) => &hold.op,
            Event::Queued(queued) => &queued.op,
            Event::Waiting(waiting) => &waiting.op,
            Event::Relay(relay) => &relay.op,
            Event::Withheld(answer) => &answer.op,
            _ => return,
        };
        let Some(place) = self.index.op(named) else {
            self.strays.push((line, named));
            return;
        };
        let op = &mut self.ops[place];
        match event {
            Event::Answer(answer) if op.answer.is_none() => {
                op.answer = Some(Seen {
                    line,
                    at,
                    body: &answer.reply,
                });
                op.body = answer.body.as_deref();
            }
            Event::Answer(_) => self.strays.push((line, named)),
            Event::Unanswered(_) => op.given_up = Some((line, at)),
            Event::DbAnswer(body) => op.db.push(Seen { line, at, body }),
            _ => {}
        }
    }
}

fn right_of_probe(probe: &Probe) -> Option<Right<'_>> {
    let right = matches!(
        probe.probe,
        ProbeKind::Bystander
            | ProbeKind::OtherClass
            | ProbeKind::EqualAgain
            | ProbeKind::Prepare
            | ProbeKind::Larger
            | ProbeKind::AfterRollback
    );
    let token = probe.presented.token.as_ref()?.parse().ok()?;
    right.then_some(Right {
        class: &probe.class,
        key: &probe.key,
        grant: probe.presented.grant.as_deref(),
        token,
    })
}
