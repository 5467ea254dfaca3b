//! Builds histories by hand, with times in milliseconds.

use std::collections::BTreeMap;

use pause_kit::history::{
    Answer, At, Attempt, Bounds, Cause, Change, Clock, Commit, DbAnswer, Event, Exercise, Final, GrantRecord,
    GuardForm, Half, History, LeaseEnd, Mark, Move, Op, Outcome, Presented, Probe, ProbeKind, Read, Reply,
    Request, Run, Stop, TokenNumber, Work,
};
use pause_kit::stopper::StoppedBy;

/// The stale holder's token: epoch 1, revision 33.
pub(crate) const OLD: i64 = (1 << 48) + 33;
/// Its successor's.
pub(crate) const NEW: i64 = (1 << 48) + 34;
/// A token of an epoch that nobody registered.
pub(crate) const OUTSIDE: i64 = (2 << 48) + 1;

pub(crate) struct Tape {
    pub(crate) run: Run,
    pub(crate) events: Vec<(At, Event)>,
    order: u64,
}

pub(crate) fn ms(ms: u64) -> At {
    At::from_nanos(ms * 1_000_000)
}

pub(crate) fn http(status: u16, problem: Option<&str>) -> Reply {
    Reply::Http {
        status,
        problem: problem.map(|name| format!("urn:fence:problem:{name}")),
        stored: false,
    }
}

pub(crate) fn sql(sqlstate: &str, detail: Option<&str>) -> Reply {
    Reply::Sql {
        sqlstate: Some(sqlstate.to_owned()),
        detail: detail.map(str::to_owned),
        tag: None,
    }
}

pub(crate) fn done(tag: &str) -> Reply {
    Reply::Sql {
        sqlstate: None,
        detail: None,
        tag: Some(tag.to_owned()),
    }
}

pub(crate) fn presented(token: i64, grant: &str) -> Presented {
    Presented {
        token: Some(token.to_string()),
        grant: Some(grant.to_owned()),
    }
}

/// Grant `g<n>` has the n-th token from [`OLD`] on.
pub(crate) fn token_of(grant: &str) -> i64 {
    OLD - 1 + grant[1..].parse::<i64>().unwrap()
}

impl Tape {
    pub(crate) fn new(scenario: &str, half: Half, exercise: Exercise) -> Tape {
        let account = !matches!(scenario, "S26" | "S53");
        Tape {
            run: Run {
                schema: Run::SCHEMA,
                scenario: scenario.to_owned(),
                class: if account {
                    "paydb.account"
                } else {
                    "paydb.settlement"
                }
                .to_owned(),
                key: if account { "acct-1" } else { "batch-1" }.to_owned(),
                half,
                seed: "7".to_owned(),
                clock: Clock::Monotonic,
                guard: if account {
                    GuardForm::Mark
                } else {
                    GuardForm::Column
                },
                exercise,
                bounds: Bounds {
                    deadline_ns: 2_000_000_000,
                    slack_ns: 500_000_000,
                },
                stale_grant: Some("g1".to_owned()),
                attempts: vec![Attempt::new(
                    "H1-late",
                    if account {
                        Outcome::Refused
                    } else {
                        Outcome::Blocked
                    },
                )],
                deed: if account { "refunded" } else { "settled" }.to_owned(),
                opening: if account {
                    balances(1000, 0)
                } else {
                    BTreeMap::new()
                },
            },
            events: Vec::new(),
            order: 0,
        }
    }

    pub(crate) fn push(&mut self, at: u64, event: impl Into<Event>) -> &mut Tape {
        self.events.push((ms(at), event.into()));
        self
    }

    pub(crate) fn history(self) -> History {
        History::new(self.run, self.events)
    }

    pub(crate) fn grant(&mut self, at: u64, holder: &str, grant: &str) -> &mut Tape {
        let (class, key) = (self.run.class.clone(), self.run.key.clone());
        let token = TokenNumber::new(token_of(grant));
        let (grant, holder) = (grant.to_owned(), holder.to_owned());
        self.push(
            at,
            GrantRecord {
                class,
                key,
                token,
                grant,
                holder,
            },
        )
    }

    pub(crate) fn lease_end(&mut self, at: u64, grant: &str, cause: Cause) -> &mut Tape {
        let grant = grant.to_owned();
        self.push(at, LeaseEnd { grant, cause })
    }

    pub(crate) fn stop(&mut self, target: &str, from: u64, to: u64) -> &mut Tape {
        self.push(
            from,
            Stop {
                target: target.to_owned(),
                pid: 4711,
                tasks: 3,
                confirmed: 3,
                asked: ms(from - 1),
                resumed: Some(ms(to)),
                cpu_before: 12,
                cpu_after: 12,
                by: StoppedBy::Signal,
            },
        )
    }

    /// A request without its answer.
    pub(crate) fn request(
        &mut self,
        op: &str,
        grant: &str,
        id: Option<&str>,
        began: u64,
        sent: u64,
    ) -> &mut Tape {
        let (class, key) = (self.run.class.clone(), self.run.key.clone());
        self.push(
            began,
            Request {
                op: Op::new(op),
                holder: op.split('-').next().unwrap_or_default().to_owned(),
                work: if id.is_some() { Work::Write } else { Work::Raise },
                class,
                key,
                grant: Some(grant.to_owned()),
                presented: presented(token_of(grant), grant),
                id: id.map(str::to_owned),
                sent: Some(ms(sent)),
            },
        )
    }

    pub(crate) fn answer(&mut self, op: &str, at: u64, reply: Reply) -> &mut Tape {
        let op = Op::new(op);
        self.push(
            at,
            Answer {
                op,
                reply,
                body: None,
            },
        )
    }

    pub(crate) fn raise(&mut self, op: &str, grant: &str, began: u64) -> &mut Tape {
        self.request(op, grant, None, began, began)
            .answer(op, began + 1, http(204, None))
    }

    pub(crate) fn db_answer(&mut self, op: &str, at: u64, reply: Reply) -> &mut Tape {
        let Reply::Sql {
            sqlstate,
            detail,
            tag,
        } = reply
        else {
            panic!("a database does not speak HTTP")
        };
        let op = Some(Op::new(op));
        self.push(
            at,
            DbAnswer {
                op,
                connection: 1,
                sqlstate,
                detail,
                tag,
            },
        )
    }

    /// The stale refusal, as the database and the resource answer it.
    pub(crate) fn refused_as_stale(&mut self, op: &str, at: u64) -> &mut Tape {
        let detail = format!("presented {OLD}, seen {NEW}");
        self.db_answer(op, at - 1, sql("ZF001", Some(&detail)))
            .answer(op, at, http(412, Some("stale")))
    }

    pub(crate) fn read(&mut self, by: &str, began: u64, ids: &[&str]) -> &mut Tape {
        self.read_between(by, began, began + 1, ids)
    }

    pub(crate) fn read_between(&mut self, by: &str, began: u64, ended: u64, ids: &[&str]) -> &mut Tape {
        let (class, key) = (self.run.class.clone(), self.run.key.clone());
        let (by, began, ids) = (by.to_owned(), ms(began), owned(ids));
        self.push(
            ended,
            Read {
                by,
                class,
                key,
                began,
                ids,
                balances: BTreeMap::new(),
            },
        )
    }

    pub(crate) fn admission(&mut self, xid: u64, key: &str, grant: &str, token: i64) -> &mut Tape {
        let class = self.run.class.clone();
        let (key, token, grant) = (key.to_owned(), TokenNumber::new(token), Some(grant.to_owned()));
        self.commit(
            xid,
            Change::Admission {
                class,
                key,
                token,
                grant,
            },
        )
    }

    /// A transfer of 30 from `key`, or, under the column guard, a settlement.
    pub(crate) fn written(&mut self, xid: u64, key: &str, grant: &str, id: &str) -> &mut Tape {
        let column = self.run.guard == GuardForm::Column;
        let change = Change::Write {
            class: self.run.class.clone(),
            key: key.to_owned(),
            id: id.to_owned(),
            grant: Some(grant.to_owned()),
            token: column.then(|| TokenNumber::new(token_of(grant))),
            job: (!column && key == "acct-1").then(|| "order-7".to_owned()),
            moves: if column { Vec::new() } else { transfer(key) },
        };
        self.commit(xid, change)
    }

    pub(crate) fn commit(&mut self, xid: u64, change: Change) -> &mut Tape {
        self.order += 1;
        let order = self.order;
        self.push(800 + order, Commit { order, xid, change })
    }

    pub(crate) fn probe(
        &mut self,
        at: u64,
        probe: ProbeKind,
        key: &str,
        claim: Presented,
        reply: Reply,
    ) -> &mut Tape {
        let class = self.run.class.clone();
        let id = match (&reply, probe) {
            (Reply::Http { .. }, ProbeKind::Bystander) => Some("g1:9".to_owned()),
            (Reply::Http { .. }, _) => Some(format!("probe-{at}")),
            _ => None,
        };
        let key = key.to_owned();
        self.push(
            at,
            Probe {
                probe,
                class,
                key,
                presented: claim,
                seen: None,
                id,
                reply,
                sqlstate: None,
                detail: None,
            },
        )
    }

    /// The probes that each guarded half of a column guard carries, rightly answered: the grant is the id there.
    pub(crate) fn bystander_batch(&mut self, at: u64) -> &mut Tape {
        let probe = Probe {
            probe: ProbeKind::Bystander,
            class: self.run.class.clone(),
            key: "batch-9".to_owned(),
            presented: presented(OLD, "g1"),
            seen: None,
            id: Some("g1".to_owned()),
            reply: done("UPDATE 1"),
            sqlstate: None,
            detail: None,
        };
        let smaller = Probe {
            probe: ProbeKind::Smaller,
            key: "batch-1".to_owned(),
            seen: Some(TokenNumber::new(NEW)),
            id: None,
            reply: sql("ZF001", Some(&format!("presented {OLD}, seen {NEW}"))),
            ..probe.clone()
        };
        self.push(at, probe).push(at, smaller)
    }

    /// What a mark guard is asked on classes of the kit's own, rightly answered.
    fn asked_of_the_guard(&mut self, at: u64) -> &mut Tape {
        for kind in ProbeKind::always_asked(GuardForm::Mark) {
            let (token, grant, code) = match kind {
                // Those of the front door.
                ProbeKind::Bystander
                | ProbeKind::Collision
                | ProbeKind::OutsideRange
                | ProbeKind::MissingToken => continue,
                ProbeKind::Smaller | ProbeKind::StaleRaise => ("9", Some("px"), Some("ZF001")),
                ProbeKind::MissingGrant | ProbeKind::RaiseWithoutToken | ProbeKind::Forgotten => {
                    ("9", None, Some("ZF002"))
                }
                ProbeKind::WrongKey => ("9", None, Some("ZF006")),
                ProbeKind::StaleBatch => ("9", Some("px"), Some("ZF001")),
                ProbeKind::Stopped => ("9", Some("px"), Some("ZF008")),
                ProbeKind::CollidingRaise => ("9", Some("px"), Some("ZF004")),
                ProbeKind::RaiseOutsideRange => ("9", Some("px"), Some("ZF005")),
                ProbeKind::BelowOne => ("0", Some("px"), Some("ZF003")),
                ProbeKind::Malformed => ("nine", Some("px"), Some("22P02")),
                ProbeKind::UnknownClass => ("9", Some("px"), Some("ZF007")),
                ProbeKind::HeldToTheEnd | ProbeKind::Switch => ("9", Some("px"), Some("55P03")),
                ProbeKind::OldSnapshot => ("9", Some("px"), Some("40001")),
                _ => ("9", Some("px"), None),
            };
            let stale = matches!(
                kind,
                ProbeKind::Smaller | ProbeKind::StaleRaise | ProbeKind::StaleBatch
            );
            let detail = match kind {
                ProbeKind::StaleBatch => "presented 9, seen 10, class pause-kit.open, key 'StaleBatch'",
                _ => "presented 9, seen 10",
            };
            let reply = match code {
                Some(code) => sql(code, stale.then_some(detail)),
                None => done("SELECT 1"),
            };
            self.push(
                at,
                Probe {
                    probe: *kind,
                    class: "pause-kit.open".to_owned(),
                    key: format!("{kind:?}"),
                    presented: Presented {
                        token: Some(token.to_owned()),
                        grant: grant.map(str::to_owned),
                    },
                    seen: stale.then_some(TokenNumber::new(10)),
                    id: None,
                    reply,
                    sqlstate: None,
                    detail: None,
                },
            );
        }
        self
    }

    /// The probes that each guarded half of a mark guard carries, rightly answered; the bystander's commit is `xid`'s.
    pub(crate) fn probes(&mut self, at: u64, xid: u64) -> &mut Tape {
        self.probe(
            at,
            ProbeKind::Bystander,
            "acct-9",
            presented(OLD, "g1"),
            http(201, None),
        )
        .probe(
            at + 1,
            ProbeKind::Collision,
            "acct-1",
            presented(NEW, "px"),
            http(412, Some("collision")),
        )
        .probe(
            at + 2,
            ProbeKind::OutsideRange,
            "acct-1",
            presented(OUTSIDE, "px"),
            http(409, Some("unknown-epoch")),
        )
        .probe(
            at + 3,
            ProbeKind::MissingToken,
            "acct-1",
            Presented::default(),
            http(428, Some("missing-token")),
        )
        .asked_of_the_guard(at + 4)
        .admission(xid, "acct-9", "g1", OLD)
        .written(xid, "acct-9", "g1", "g1:9")
    }

    pub(crate) fn last(
        &mut self,
        ids: &[&str],
        balances: BTreeMap<String, i64>,
        marks: &[(&str, i64)],
    ) -> &mut Tape {
        let class = self.run.class.clone();
        let mark = |(key, token): &(&str, i64)| Mark {
            class: class.clone(),
            key: (*key).to_owned(),
            token: TokenNumber::new(*token),
        };
        let marks = marks.iter().map(mark).collect();
        self.push(
            900,
            Final {
                ids: owned(ids),
                balances,
                marks,
            },
        )
    }
}

/// Balances after transfers: what `acct-1` and the two other accounts hold.
pub(crate) fn balances(first: i64, second: i64) -> BTreeMap<String, i64> {
    [
        ("acct-1", first),
        ("acct-2", second),
        ("acct-9", if second == 0 { 1000 } else { 2000 - first - second }),
    ]
    .map(|(name, balance)| (name.to_owned(), balance))
    .into()
}

fn transfer(from: &str) -> Vec<Move> {
    [(from, -30), ("acct-2", 30)]
        .map(|(account, amount)| Move {
            account: account.to_owned(),
            amount,
        })
        .into()
}

fn owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}
