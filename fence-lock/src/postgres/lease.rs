//! Leases and their renewals.

use fence_core::Ttl;
use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::call::{Row, one, rows};
use super::pool::Connector;
use super::{PostgresStore, sql};
use crate::error::{OpenError, RenewError, StoreError};
use crate::store::{Lease, Renewals, SessionId, SessionRegistry};

impl SessionRegistry for PostgresStore {
    fn open(&self, ttl: Ttl) -> BoxFuture<'_, Result<Lease, OpenError>> {
        Box::pin(async move {
            let name = uuid::Uuid::new_v4().simple().to_string();
            let session = SessionId::new(name).expect("32 digits name a session");
            self.inner
                .pool
                .ask(&sql::open(&session, ttl))
                .await
                .map_err(OpenError::Store)?;
            Ok(Lease { session, ttl })
        })
    }

    fn renewals(&self, session: &SessionId) -> Box<dyn Renewals> {
        Box::new(PostgresRenewals {
            connector: self.inner.pool.connector(),
            session: session.clone(),
            connection: None,
        })
    }

    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.inner.pool.ask(&sql::close(session)).await.map(|_| ()) })
    }
}

/// The renewals of one lease, over a connection of their own: no request in front of them can be in their way.
struct PostgresRenewals {
    connector: Connector,
    session: SessionId,
    connection: Option<Connection>,
}

struct Connection {
    client: Client,
    driven: JoinHandle<Result<(), tokio_postgres::Error>>,
}

impl Renewals for PostgresRenewals {
    fn renew(&mut self) -> BoxFuture<'_, Result<Ttl, RenewError>> {
        Box::pin(async move {
            let row = self.ask().await.map_err(RenewError::Failed)?;
            if row.text(0).is_none() {
                return Err(RenewError::Gone);
            }
            let milliseconds = u64::try_from(row.number(0).map_err(RenewError::Failed)?).unwrap_or(0);
            Ttl::new(std::time::Duration::from_millis(milliseconds))
                .map_err(|_| RenewError::Failed(row.unreadable(0)))
        })
    }

    fn ended(&mut self) -> BoxFuture<'_, RenewError> {
        Box::pin(async move {
            let Some(Connection { driven, .. }) = &mut self.connection else {
                return std::future::pending().await;
            };
            let why: Box<dyn std::error::Error + Send + Sync> = match driven.await {
                Ok(Err(error)) => error.into(),
                Ok(Ok(())) | Err(_) => "the connection ended".into(),
            };
            self.connection = None;
            RenewError::Failed(StoreError::Unreachable {
                endpoints: self.connector.endpoints(),
                source: why,
            })
        })
    }
}

impl PostgresRenewals {
    async fn ask(&mut self) -> Result<Row, StoreError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let (client, connection) = self.connector.open().await?;
                none.insert(Connection {
                    client,
                    driven: tokio::spawn(connection),
                })
            }
        };
        let renew = sql::renew(&self.session);
        let renewing = connection.client.simple_query(&renew);
        let answer = self.connector.within(renewing).await;
        answer.map(rows).and_then(one)
    }
}
