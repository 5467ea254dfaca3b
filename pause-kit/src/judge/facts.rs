//! A history put in order for the checks: who held what, what was asked and answered, what was committed.

use std::collections::BTreeSet;
use std::ops::Range;

use super::index::Index;
use super::join::speaks_of;
use super::said::Said;
use crate::history::{
    Alteration, At, Cause, Commit, DbAnswer, Event, Final, GrantRecord, History, Hold, Killed, Op, Probe,
    ProbeKind, Queued, Read, Relay, Reply, Request, Restarted, Run, Started, Stop, Uncommitted, Waiting,
    Withheld, Work,
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
    /// The number of its key, where it has a token.
    pub(super) on: Option<u32>,
    /// The number of the id that it bears.
    pub(super) bears: Option<u32>,
    /// What [`Guarded::said`] says.
    pub(super) meaning: Said,
    pub(super) answer: Option<Seen<'h, Reply>>,
    /// The digest of that answer's body, where it is known.
    pub(super) body: Option<&'h str>,
    pub(super) given_up: Option<(usize, At)>,
    pub(super) db: Vec<Seen<'h, DbAnswer>>,
}

impl Guarded<'_> {
    pub(super) fn said(&self) -> Said {
        self.meaning
    }

    /// The meaning of all that was answered so far.
    pub(super) fn heard(&self) -> Said {
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
    /// The number of the key.
    pub(super) on: u32,
}

/// What a read showed, by numbers.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// The number of the key.
    pub(super) on: u32,
    /// Where the numbers of its ids stand among those of all reads.
    pub(super) ids: Range<usize>,
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
    /// Whether they were recorded in that order.
    in_commit_order: bool,
    pub(super) reads: Vec<Seen<'h, Read>>,
    /// What each of these showed, and the numbers of the ids.
    pub(super) shown: Vec<Shown>,
    pub(super) shown_ids: Vec<u32>,
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
    pub(super) uncommitted: Vec<Seen<'h, Uncommitted>>,
    pub(super) finals: Vec<Seen<'h, Final>>,
    pub(super) rights: Vec<Right<'h>>,
    /// Names that answers and others bear although no request does, with their lines; and requests that share a name.
    pub(super) strays: Vec<(usize, &'h Op)>,
    pub(super) last: At,
    pub(super) index: Index<'h>,
}

impl<'h> Facts<'h> {
    pub(super) fn of(history: &'h History) -> Facts<'h> {
        // A request and an answer each, mostly.
        let operations = history.events().size_hint().0 / 2;
        let mut facts = Facts {
            history,
            run: history.run(),
            grants: Vec::new(),
            ops: Vec::with_capacity(operations),
            commits: Vec::new(),
            in_commit_order: true,
            reads: Vec::new(),
            shown: Vec::new(),
            shown_ids: Vec::new(),
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
            uncommitted: Vec::new(),
            finals: Vec::new(),
            rights: Vec::new(),
            strays: Vec::new(),
            last: At::from_nanos(0),
            index: Index::for_about(operations),
        };
        // Each event is looked at once, while it is at hand: a long history is larger than any cache.
        let mut early = Vec::new();
        for (line, at, event) in history.events() {
            facts.take(line, at, event);
            if !facts.join(line, at, event) {
                early.push((line, event));
            }
        }
        facts.find_rights();
        if early.iter().any(|(_, event)| facts.speaks_of_any(event)) {
            early = facts.join_again();
        }
        let names = early
            .into_iter()
            .filter_map(|(line, event)| Some((line, speaks_of(event)?)));
        facts.strays.extend(names);
        facts.strays.sort_by_key(|(line, _)| *line);
        let namesakes = facts.index.namesakes().iter();
        let namesakes = namesakes.map(|place| (facts.ops[*place].line, &facts.ops[*place].request.op));
        facts.strays.splice(0..0, namesakes);
        if !facts.in_commit_order {
            facts.commits.sort_by_key(|commit| commit.body.order);
        }
        facts
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
                let (class, key, grant) = (&record.class, &record.key, Some(&*record.grant));
                self.add_right(class, key, grant, record.token.number());
            }
            Event::Request(request) => {
                self.index.add_op(&request.op, self.ops.len());
                let right = self.right_of(request);
                self.ops.push(Guarded {
                    line,
                    began: at,
                    request,
                    token: right.map(|right| right.token),
                    on: right.map(|right| right.on),
                    bears: request.id.as_ref().map(|id| self.index.id(id)),
                    meaning: Said::Unknown,
                    answer: None,
                    body: None,
                    given_up: None,
                    db: Vec::new(),
                });
            }
            Event::Commit(body) => {
                let before = self.commits.last();
                self.in_commit_order &= before.is_none_or(|before| before.body.order <= body.order);
                self.commits.push(Seen { line, at, body });
            }
            Event::Read(body) => {
                let from = self.shown_ids.len();
                self.shown_ids.extend(body.ids.iter().map(|id| self.index.id(id)));
                self.shown.push(Shown {
                    on: self.index.key(&body.class, &body.key),
                    ids: from..self.shown_ids.len(),
                });
                self.reads.push(Seen { line, at, body });
            }
            Event::Probe(body) => {
                self.probes.push(Seen { line, at, body });
                if let Some(token) = right_of_probe(body) {
                    self.add_right(&body.class, &body.key, body.presented.grant.as_deref(), token);
                }
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
            Event::Uncommitted(body) => self.uncommitted.push(Seen { line, at, body }),
            Event::Relay(body) => self.relays.push(Seen { line, at, body }),
            Event::LeaseEnd(_) => {}
            // Few scenarios have these, and look for them themselves.
            Event::Unheard(_) | Event::Unstopped(_) => {}
            // What speaks of a request is joined once all requests are known.
            Event::Answer(_) | Event::Unanswered(_) | Event::DbAnswer(_) => {}
        }
    }

    fn add_right(&mut self, class: &'h str, key: &'h str, grant: Option<&'h str>, token: i64) {
        let on = self.index.key(class, key);
        let right = Right {
            class,
            key,
            grant,
            token,
            on,
        };
        self.index.add_right(&right, self.rights.len());
        self.rights.push(right);
    }

    pub(super) fn right_of(&self, request: &Request) -> Option<Right<'h>> {
        let grant = request.grant.as_deref()?;
        self.right(&request.class, &request.key, Some(grant))
    }
}

/// The token of a probe's claim that is right by its kind.
fn right_of_probe(probe: &Probe) -> Option<i64> {
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
    right.then_some(token)
}
