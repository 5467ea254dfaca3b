//! One question over SQL.

use std::time::Duration;

use fence_core::GrantId;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::history::{Presented, Probe, ProbeKind, Reply, TokenNumber};
use crate::run::RunError;
use crate::scenario::{Half, connect};

/// How long one question may take. It is far beyond every bound of a guard, so that only one that never answers meets it.
const PATIENCE: Duration = Duration::from_secs(15);

/// What PostgreSQL answers when a statement met that limit.
const QUERY_CANCELED: &str = "57014";

/// A claim as it is put to `fence.admit`, or to `fence.raise_mark` where its kind is about that.
#[derive(Clone, Debug)]
pub(super) struct Ask<'a> {
    pub(super) kind: ProbeKind,
    pub(super) class: &'a str,
    pub(super) key: &'a str,
    /// The token as it stands in the SQL; nothing for NULL.
    pub(super) token: Option<String>,
    pub(super) grant: Option<&'a str>,
    /// The mark that a stale refusal must name.
    pub(super) seen: Option<i64>,
}

impl<'a> Ask<'a> {
    pub(super) fn new(kind: ProbeKind, class: &'a str, key: &'a str, token: i64) -> Ask<'a> {
        Ask {
            kind,
            class,
            key,
            token: Some(token.to_string()),
            grant: None,
            seen: None,
        }
    }

    pub(super) fn by(self, grant: &'a GrantId) -> Ask<'a> {
        Ask {
            grant: Some(grant.as_str()),
            ..self
        }
    }

    /// With an empty text where a grant id belongs.
    pub(super) fn by_nobody(self) -> Ask<'a> {
        Ask {
            grant: Some(""),
            ..self
        }
    }

    pub(super) fn without_token(self) -> Ask<'a> {
        Ask { token: None, ..self }
    }

    pub(super) fn meets(self, seen: i64) -> Ask<'a> {
        Ask {
            seen: Some(seen),
            ..self
        }
    }

    /// The statement.
    pub(super) fn sql(&self) -> String {
        let quoted = |text: Option<&str>| match text {
            Some(text) => format!("'{}'", text.replace('\'', "''")),
            None => "NULL".to_owned(),
        };
        format!(
            "SELECT fence.{}({}, {}, {}, {})",
            self.function(),
            quoted(Some(self.class)),
            quoted(Some(self.key)),
            quoted(self.token.as_deref()),
            quoted(self.grant)
        )
    }

    fn function(&self) -> &'static str {
        match self.kind {
            ProbeKind::Raise
            | ProbeKind::StaleRaise
            | ProbeKind::CollidingRaise
            | ProbeKind::RaiseOutsideRange
            | ProbeKind::RaiseWithoutToken => "raise_mark",
            _ => "admit",
        }
    }

    /// Asks on a connection and records the answer.
    ///
    /// # Errors
    ///
    /// When the connection is lost, or the guard never answers: that is recorded, and nothing more is asked.
    pub(super) async fn put(&self, half: &Half<'_>, sql: &Client) -> Result<(), RunError> {
        let reply = reply(sql, &self.sql()).await?;
        let never = matches!(&reply, Reply::Sql { sqlstate: Some(code), .. } if code == QUERY_CANCELED);
        self.record(half, reply);
        if never && self.kind != ProbeKind::BoundedWait {
            let why = format!("{:?} on {} was not answered", self.kind, self.key);
            return Err(RunError::lost("a probe was given up")(why));
        }
        Ok(())
    }

    /// Runs another statement than the claim's own, which comes to the same, and records the answer.
    pub(super) async fn with(self, half: &Half<'_>, sql: &Client, statement: &str) -> Result<(), RunError> {
        let reply = reply(sql, statement).await?;
        self.record(half, reply);
        Ok(())
    }

    pub(super) fn record(&self, half: &Half<'_>, reply: Reply) {
        half.recorder.record(
            half.recorder.now(),
            Probe {
                probe: self.kind,
                class: self.class.to_owned(),
                key: self.key.to_owned(),
                presented: Presented {
                    token: self.token.clone(),
                    grant: self.grant.map(str::to_owned),
                },
                seen: self.seen.map(TokenNumber::new),
                id: None,
                reply,
                sqlstate: None,
                detail: None,
            },
        );
    }
}

/// A connection of the probes' own, on which no statement takes longer than their patience. The guard may end it.
pub(super) async fn open(half: &Half<'_>) -> Result<Client, RunError> {
    let sql = connect(&half.database).await?;
    run(
        &sql,
        &format!("SET statement_timeout = '{}ms'", PATIENCE.as_millis()),
    )
    .await?;
    Ok(sql)
}

/// Runs one statement and says how it was answered; an error of the server's is an answer.
pub(super) async fn reply(sql: &Client, statement: &str) -> Result<Reply, RunError> {
    match sql.simple_query(statement).await {
        Ok(messages) => {
            let rows = messages.iter().find_map(|message| match message {
                SimpleQueryMessage::CommandComplete(rows) => Some(*rows),
                _ => None,
            });
            let verb = statement.split_whitespace().next().unwrap_or_default();
            Ok(Reply::Sql {
                sqlstate: None,
                detail: None,
                tag: Some(format!("{verb} {}", rows.unwrap_or_default())),
            })
        }
        Err(error) => match error.as_db_error() {
            Some(refusal) => Ok(Reply::Sql {
                sqlstate: Some(refusal.code().code().to_owned()),
                detail: refusal.detail().map(str::to_owned),
                tag: None,
            }),
            None => Err(RunError::lost("PostgreSQL could not be asked")(error)),
        },
    }
}

/// Runs a statement of the probes' own that is no question.
pub(super) async fn run(sql: &Client, statement: &str) -> Result<(), RunError> {
    sql.batch_execute(statement)
        .await
        .map_err(RunError::lost("a statement of the kit's own failed"))
}
