//! Recognising a holder's guarded transactions on its path to PostgreSQL.

use std::time::Instant;

use crate::history::{Answer, DbAnswer, Op, Presented, Reply, Request, Unanswered, Work};
use crate::path::{Connection, Log};
use crate::wire::postgres::{
    Notice, ServerMessage, Statement, TransactionStatus, server_messages, statements,
};

use super::half::Half;
use super::holder::Holder;

/// One transaction that touches the guarded table.
struct Transaction {
    connection: u64,
    statements: Vec<Statement>,
    /// The server's last word on the session, where it ended it.
    fatal: Option<(Notice, Instant)>,
}

impl Half<'_> {
    /// Records a holder's guarded transactions, each as one operation.
    pub(super) fn transactions(&self, holder: &Holder) {
        let table = self.task.class.proof.writes.table.as_str();
        let table = table.rsplit('.').next().unwrap_or(table);
        let all = holder.path.read(|log| guarded(log, table));
        for (number, transaction) in (1..).zip(all) {
            self.transaction(
                holder,
                &Op::new(format!("{}-write-{number}", holder.name)),
                &transaction,
                table,
            );
        }
    }

    fn transaction(&self, holder: &Holder, op: &Op, transaction: &Transaction, table: &str) {
        let first = &transaction.statements[0];
        let grant = holder.grant().map(|granted| granted.grant.to_string());
        let token = holder.grant().map(|granted| granted.token.as_i64());
        let writes: Vec<&Statement> = transaction
            .statements
            .iter()
            .filter(|statement| touches(statement, table))
            .collect();
        // Letter for letter what stood among the parameters: the grant's own token, or nothing that is known.
        let presented = writes
            .iter()
            .flat_map(|statement| &statement.parameters)
            .filter_map(|parameter| parameter.as_integer())
            .find(|number| Some(*number) == token);
        self.recorder.record(
            self.recorder.at(first.began),
            Request {
                op: op.clone(),
                holder: holder.name.to_owned(),
                work: Work::Write,
                class: self.task.class.name.to_string(),
                key: self.keys[0].to_string(),
                grant: grant.clone(),
                presented: Presented {
                    token: presented.map(|number| number.to_string()),
                    grant: grant.clone(),
                },
                id: grant,
                sent: first.sent.map(|at| self.recorder.at(at)),
            },
        );
        for statement in &transaction.statements {
            let Some(at) = statement.completed else { continue };
            let error = statement.error();
            if error.is_none() && !touches(statement, table) {
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
        match transaction.last_word() {
            Some((at, reply)) => {
                self.recorder.record(
                    self.recorder.at(at),
                    Answer {
                        op: op.clone(),
                        reply,
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
}

impl Transaction {
    /// The first error, or what the COMMIT was answered, or the end of the session.
    fn last_word(&self) -> Option<(Instant, Reply)> {
        let failed = self
            .statements
            .iter()
            .find_map(|one| Some((one.completed?, one.error()?)));
        let ended = self.fatal.as_ref().map(|(notice, at)| (*at, notice));
        if let Some((at, notice)) = failed.or(ended) {
            let reply = Reply::Sql {
                sqlstate: Some(notice.sqlstate.clone()),
                detail: notice.detail.clone(),
                tag: None,
            };
            return Some((at, reply));
        }
        let last = self.statements.last()?;
        let idle = last
            .ready
            .as_ref()
            .is_some_and(|(status, _)| *status == TransactionStatus::Idle);
        let tag = last.tag().filter(|_| idle)?.to_owned();
        Some((
            last.completed?,
            Reply::Sql {
                sqlstate: None,
                detail: None,
                tag: Some(tag),
            },
        ))
    }

    fn committed(&self) -> bool {
        self.statements
            .iter()
            .any(|statement| statement.tag() == Some("COMMIT"))
    }
}

/// Waits until a transaction of a holder was answered COMMIT.
pub(super) async fn commit_answered(holder: &Holder) {
    let committed = |log: &Log| guarded(log, "").iter().any(Transaction::committed).then_some(());
    holder.path.wait(committed).await;
}

/// Waits until a statement of a holder was refused by the guard, with a SQLSTATE of its own class.
pub(super) async fn refused(holder: &Holder) {
    let refused = |statement: &Statement| {
        statement
            .error()
            .is_some_and(|error| error.sqlstate.starts_with("ZF"))
    };
    let any = |log: &Log| {
        guarded(log, "")
            .iter()
            .any(|one| one.statements.iter().any(refused))
            .then_some(())
    };
    holder.path.wait(any).await;
}

/// The transactions on a path that touch a table, in the order in which they began. Every one touches the table "".
fn guarded(log: &Log, table: &str) -> Vec<Transaction> {
    let mut all = Vec::new();
    for connection in log.connections() {
        let mut current: Vec<Statement> = Vec::new();
        // What cannot be read holds no transaction; the run then misses an operation, and says which.
        for statement in statements(connection).unwrap_or_default() {
            let ended = statement
                .ready
                .as_ref()
                .is_some_and(|(status, _)| *status == TransactionStatus::Idle);
            current.push(statement);
            if ended {
                all.push(transaction(connection, std::mem::take(&mut current), None));
            }
        }
        if !current.is_empty() {
            all.push(transaction(connection, current, fatal(connection)));
        }
    }
    all.retain(|one| one.statements.iter().any(|statement| touches(statement, table)));
    all.sort_by_key(|one| one.statements[0].began);
    all
}

fn transaction(
    connection: &Connection,
    statements: Vec<Statement>,
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

fn touches(statement: &Statement, table: &str) -> bool {
    let text = statement.text.to_ascii_uppercase();
    text.trim_start().starts_with("UPDATE") && text.contains(&table.to_ascii_uppercase())
}
