//! A transaction on a client that is lent for it.

use std::pin::pin;
use std::task::{Context, Waker};

use ::tokio_postgres::types::{ToSql, Type};
use ::tokio_postgres::{Client, Row, SimpleQueryMessage};
use fence_core::Claim;

use super::{sort, sort_at};
use crate::error::{ClosedBefore, EndedInside, GuardError, Phase};
use crate::mark::{ADMIT, ADMIT_MANY, COMMIT};

/// Holds the client for one transaction, and rolls it back when dropped. It is made before BEGIN is sent, so that a caller who
/// gives up waiting leaves no transaction open.
#[derive(Debug)]
pub(super) struct Held<'a> {
    client: &'a mut Client,
    xid: Option<String>,
    open: bool,
}

impl<'a> Held<'a> {
    pub(super) fn new(client: &'a mut Client) -> Held<'a> {
        Held {
            client,
            xid: None,
            open: true,
        }
    }

    pub(super) fn client(&self) -> &Client {
        self.client
    }

    pub(super) fn check_open(&self) -> Result<(), GuardError> {
        if self.open {
            Ok(())
        } else {
            Err(GuardError::Misuse("the transaction has ended"))
        }
    }

    /// Remembers which transaction COMMIT is to end.
    pub(super) fn is(&mut self, xid: Option<String>) {
        self.xid = xid;
    }

    /// Nothing is open any more.
    pub(super) fn is_over(&mut self) {
        self.open = false;
    }

    /// Commits, and knows that it did: COMMIT is only run in the transaction that was begun here, while it has not failed.
    pub(super) async fn commit(&mut self, claims: &[Claim]) -> Result<(), GuardError> {
        self.check_open()?;
        if self.client.is_closed() {
            self.open = false;
            let source = Box::new(ClosedBefore);
            return Err(GuardError::Unavailable { source });
        }
        let answer = self.client.simple_query(COMMIT).await;
        let answer = answer.map_err(|error| sort_at(error, Phase::Commit, claims))?;
        self.open = false;
        if self.xid.is_none() || last_value(&answer) != self.xid {
            let source = Box::new(EndedInside);
            return Err(GuardError::Unknown { source });
        }
        Ok(())
    }

    /// Rolls back, and waits for it.
    pub(super) async fn roll_back(&mut self) -> Result<(), GuardError> {
        self.check_open()?;
        self.client.batch_execute("ROLLBACK").await.map_err(sort)?;
        self.open = false;
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.open {
            // Polled once, the request is in the connection's queue, ahead of whatever the client sends next; nobody waits
            // for its answer.
            let sent =
                pin!(self.client.batch_execute("ROLLBACK")).poll(&mut Context::from_waker(Waker::noop()));
            drop(sent);
        }
    }
}

/// Admits the claims in the client's open transaction by an unnamed statement, and returns the transaction's id.
pub(super) async fn admit(client: &Client, claims: &[Claim]) -> Result<String, GuardError> {
    let admitted = match claims {
        [claim] => present(client, ADMIT, claim).await,
        _ => present_many(client, claims).await,
    };
    admitted.map_err(|error| sort_at(error, Phase::Statement, claims))
}

/// Presents one claim, and returns the transaction's id.
pub(super) async fn present(
    client: &Client,
    statement: &str,
    claim: &Claim,
) -> Result<String, ::tokio_postgres::Error> {
    let grant_id = claim.grant_id.as_ref().map(|grant_id| grant_id.as_str());
    let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
        (&claim.class.as_str(), Type::TEXT),
        (&claim.key.as_str(), Type::TEXT),
        (&claim.token.as_i64(), Type::INT8),
        (&grant_id, Type::TEXT),
    ];
    xid(client.query_typed(statement, &parameters).await)
}

async fn present_many(client: &Client, claims: &[Claim]) -> Result<String, ::tokio_postgres::Error> {
    let classes: Vec<&str> = claims.iter().map(|claim| claim.class.as_str()).collect();
    let keys: Vec<&str> = claims.iter().map(|claim| claim.key.as_str()).collect();
    let tokens: Vec<i64> = claims.iter().map(|claim| claim.token.as_i64()).collect();
    let grant_ids: Vec<Option<&str>> = claims
        .iter()
        .map(|claim| claim.grant_id.as_ref().map(|grant_id| grant_id.as_str()))
        .collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
        (&classes, Type::TEXT_ARRAY),
        (&keys, Type::TEXT_ARRAY),
        (&tokens, Type::INT8_ARRAY),
        (&grant_ids, Type::TEXT_ARRAY),
    ];
    xid(client.query_typed(ADMIT_MANY, &parameters).await)
}

fn xid(rows: Result<Vec<Row>, ::tokio_postgres::Error>) -> Result<String, ::tokio_postgres::Error> {
    let rows = rows?;
    let row = rows.first().expect("a SELECT without FROM returns one row");
    row.try_get(1)
}

/// The first column of the last row.
pub(super) fn last_value(answer: &[SimpleQueryMessage]) -> Option<String> {
    answer
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
        .next_back()
}
