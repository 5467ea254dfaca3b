//! Recognising a holder's guarded transactions, and its reads, on its path to PostgreSQL.
//!
//! A transaction is guarded when it calls `fence.admit` or `fence.raise_mark`, or writes the class's table. It is a write
//! when it writes the table, or when its call of `fence.admit` failed, since the write that was to follow was then never
//! sent; else it raises the mark. A read is the query that the class itself is read by.

use std::time::Instant;

use crate::history::{Answer, DbAnswer, Op, Presented, Read, Reply, Request, Unanswered, Work};
use crate::path::{Connection, Log};
use crate::wire::postgres::{
    Completion, Notice, ServerMessage, Statement, TransactionStatus, server_messages, statements,
};

use super::half::Half;
use super::holder::Holder;
use super::observe::grant_of;
use super::sql_text::{Call, Words};
use super::writer::{SqlForms, Writer};

/// One transaction.
struct Transaction {
    connection: u64,
    statements: Vec<(Statement, Words)>,
    /// The server's last word on the session, where it ended it.
    fatal: Option<(Notice, Instant)>,
}

impl Half<'_> {
    /// Records a writer's guarded transactions, each as one operation, and its reads.
    pub(super) fn transactions(&self, writer: &Writer<'_>) {
        let forms = writer.forms;
        let all = writer.path.read(transactions);
        let (mut raises, mut writes) = (0, 0);
        for transaction in &all {
            for (statement, _) in transaction
                .statements
                .iter()
                .filter(|one| forms.read.as_ref().is_some_and(|read| one.1.is(read)))
            {
                self.read_of_the_writer(writer.name, statement);
            }
            let (work, op) = match transaction.work(forms) {
                None => continue,
                Some(Work::Raise) => {
                    raises += 1;
                    (Work::Raise, Op::new(format!("{}-raise-{raises}", writer.name)))
                }
                Some(Work::Write) => {
                    writes += 1;
                    (Work::Write, Op::new(format!("{}-write-{writes}", writer.name)))
                }
            };
            self.transaction(writer, work, &op, transaction);
        }
    }

    fn transaction(&self, writer: &Writer<'_>, work: Work, op: &Op, transaction: &Transaction) {
        let (first, _) = &transaction.statements[0];
        let (forms, granted) = (writer.forms, writer.granted);
        let owner = granted.map(|granted| granted.grant.to_string());
        let call = transaction.call(forms);
        let id = transaction.id(forms, owner.as_deref());
        let id = id.or_else(|| writer.id.map(str::to_owned));
        let (presented, id) = match call {
            Some(call) => (
                Presented {
                    token: call.token,
                    grant: call.grant,
                },
                id,
            ),
            // The column guard's statement: the grant's own token among its values, or nothing that is known.
            None => {
                let own = granted.map(|granted| granted.token.to_string());
                let presented = Presented {
                    token: own.filter(|own| transaction.written(forms).any(|value| value == own)),
                    grant: owner.clone(),
                };
                (presented, id.or_else(|| owner.clone()))
            }
        };
        self.recorder.record(
            self.recorder.at(first.began),
            Request {
                op: op.clone(),
                holder: writer.name.to_owned(),
                work,
                class: forms.class.clone(),
                key: forms.key.clone(),
                grant: id.as_deref().map(grant_of).map(str::to_owned).or(owner),
                presented,
                id: id.filter(|_| work == Work::Write),
                sent: first.sent.map(|at| self.recorder.at(at)),
            },
        );
        for (statement, words) in &transaction.statements {
            let Some(at) = statement.completed else { continue };
            let error = statement.error();
            if error.is_none() && !words.writes(&forms.table) {
                continue;
            }
            self.recorder.record(
                self.recorder.at(at),
                DbAnswer {
                    op: Some(op.clone()),
                    connection: transaction.connection,
                    sqlstate: error.map(|error| error.sqlstate.clone()),
                    detail: error.and_then(|error| error.detail.clone()),
                    tag: statement.tag().map(str::to_owned),
                },
            );
        }
        match transaction.last_word(forms) {
            Some((at, reply)) => {
                self.recorder.record(
                    self.recorder.at(at),
                    Answer {
                        op: op.clone(),
                        reply,
                        body: None,
                    },
                );
            }
            None => {
                let why = "the transaction was not ended".to_owned();
                self.recorder
                    .record(self.recorder.now(), Unanswered { op: op.clone(), why });
            }
        }
    }

    fn read_of_the_writer(&self, by: &str, statement: &Statement) {
        let (Some(at), Some(_)) = (statement.completed, statement.tag()) else {
            return;
        };
        self.recorder.record(
            self.recorder.at(at),
            Read {
                by: by.to_owned(),
                class: self.task.class.name.to_string(),
                key: self.keys[0].to_string(),
                began: self.recorder.at(statement.began),
                ids: statement.rows.iter().flatten().cloned().collect(),
                balances: Default::default(),
            },
        );
    }
}

impl Transaction {
    /// What it does to the class's key; nothing when it is not guarded.
    fn work(&self, forms: &SqlForms) -> Option<Work> {
        if self
            .statements
            .iter()
            .any(|(_, words)| words.writes(&forms.table))
        {
            return Some(Work::Write);
        }
        let call = self.call(forms)?;
        let admitted_alone = self.error().is_none();
        Some(match call.raises || admitted_alone {
            true => Work::Raise,
            false => Work::Write,
        })
    }

    /// The claim that it presents for the key; where none is for the key, the first one whose key is not known.
    fn call(&self, forms: &SqlForms) -> Option<Call> {
        let calls: Vec<Call> = self
            .statements
            .iter()
            .flat_map(|(_, words)| words.calls())
            .collect();
        let is = |said: &Option<String>, right: &str| said.as_deref().is_none_or(|said| said == right);
        let fits = |call: &&Call| is(&call.class, &forms.class) && is(&call.key, &forms.key);
        calls.iter().find(fits).cloned()
    }

    /// The values in its statements that write the table.
    fn written<'t>(&'t self, forms: &'t SqlForms) -> impl Iterator<Item = &'t str> {
        let writing = self
            .statements
            .iter()
            .filter(|(_, words)| words.writes(&forms.table));
        writing.flat_map(|(_, words)| words.values())
    }

    /// The id of its write: the grant's id, with a number after it or alone, among the values that it writes.
    fn id(&self, forms: &SqlForms, grant: Option<&str>) -> Option<String> {
        let grant = grant?;
        let of_grant = |value: &&str| grant_of(value) == grant;
        let numbered = self.written(forms).filter(of_grant).find(|value| *value != grant);
        numbered
            .or_else(|| self.written(forms).find(of_grant))
            .map(str::to_owned)
    }

    /// The first error.
    fn error(&self) -> Option<(Instant, &Notice)> {
        let mut statements = self.statements.iter();
        statements.find_map(|(one, _)| Some((one.completed?, one.error()?)))
    }

    /// The first error, or what the COMMIT was answered, or the end of the session.
    fn last_word(&self, forms: &SqlForms) -> Option<(Instant, Reply)> {
        let ended = self.fatal.as_ref().map(|(notice, at)| (*at, notice));
        if let Some((at, notice)) = self.error().or(ended) {
            let reply = Reply::Sql {
                sqlstate: Some(notice.sqlstate.clone()),
                detail: notice.detail.clone(),
                tag: None,
            };
            return Some((at, reply));
        }
        let (last, _) = self.statements.last()?;
        let idle = last
            .ready
            .as_ref()
            .is_some_and(|(status, _)| *status == TransactionStatus::Idle);
        let tag = last.tag().filter(|_| idle)?;
        let tag = self.wrote_nothing(forms).unwrap_or(tag).to_owned();
        Some((
            last.completed?,
            Reply::Sql {
                sqlstate: None,
                detail: None,
                tag: Some(tag),
            },
        ))
    }

    /// The tag of a write that met no row, where none of its writes met one.
    fn wrote_nothing(&self, forms: &SqlForms) -> Option<&str> {
        let writing = self
            .statements
            .iter()
            .filter(|(_, words)| words.writes(&forms.table));
        let tags: Vec<&str> = writing
            .flat_map(|(statement, _)| &statement.completions)
            .filter_map(|completion| match completion {
                Completion::Done(tag)
                    if ["INSERT ", "UPDATE ", "DELETE ", "MERGE "]
                        .iter()
                        .any(|verb| tag.starts_with(verb)) =>
                {
                    Some(tag.as_str())
                }
                _ => None,
            })
            .collect();
        let all_empty = tags.iter().all(|tag| tag.ends_with(" 0"));
        tags.first().copied().filter(|_| all_empty)
    }

    fn committed(&self) -> bool {
        self.statements
            .iter()
            .any(|(statement, _)| statement.tag() == Some("COMMIT"))
    }
}

/// How many of a holder's guarded writes have been answered whole.
pub(super) fn writes_answered(log: &Log, forms: &SqlForms) -> usize {
    let all = transactions(log);
    let answered =
        |one: &&Transaction| one.work(forms) == Some(Work::Write) && one.last_word(forms).is_some();
    all.iter().filter(answered).count()
}

/// Waits until a transaction of a holder was answered COMMIT.
pub(super) async fn commit_answered(holder: &Holder) {
    let committed = |log: &Log| transactions(log).iter().any(Transaction::committed).then_some(());
    holder.path.wait(committed).await;
}

/// Waits until a statement of a holder was refused by the guard, with a SQLSTATE of its own class.
pub(super) async fn refused(holder: &Holder) {
    let refused = |(statement, _): &(Statement, Words)| {
        statement
            .error()
            .is_some_and(|error| error.sqlstate.starts_with("ZF"))
    };
    let any = |log: &Log| {
        transactions(log)
            .iter()
            .any(|one| one.statements.iter().any(refused))
            .then_some(())
    };
    holder.path.wait(any).await;
}

/// The transactions on a path, in the order in which they began.
fn transactions(log: &Log) -> Vec<Transaction> {
    let mut all = Vec::new();
    for connection in log.connections() {
        let mut current: Vec<(Statement, Words)> = Vec::new();
        // What cannot be read holds no transaction; the run then misses an operation, and says which.
        for statement in statements(connection).unwrap_or_default() {
            let ended = statement
                .ready
                .as_ref()
                .is_some_and(|(status, _)| *status == TransactionStatus::Idle);
            let words = Words::of(&statement);
            current.push((statement, words));
            if ended {
                all.push(transaction(connection, std::mem::take(&mut current), None));
            }
        }
        if !current.is_empty() {
            all.push(transaction(connection, current, fatal(connection)));
        }
    }
    all.sort_by_key(|one| one.statements[0].0.began);
    all
}

fn transaction(
    connection: &Connection,
    statements: Vec<(Statement, Words)>,
    fatal: Option<(Notice, Instant)>,
) -> Transaction {
    Transaction {
        connection: connection.number.value().into(),
        statements,
        fatal,
    }
}

/// An error by which the server ended the session.
fn fatal(connection: &Connection) -> Option<(Notice, Instant)> {
    let (asked, answered) = (&connection.to_resource, &connection.to_holder);
    let stream = server_messages(answered.bytes(), asked.bytes()).ok()?;
    stream
        .messages
        .into_iter()
        .rev()
        .find_map(|framed| match framed.message {
            ServerMessage::Error(notice) if notice.severity == "FATAL" => {
                Some((notice, answered.received_at(framed.range.end - 1)?))
            }
            _ => None,
        })
}
